// Package arch holds the rules of who may import whom, as tests.
//
// # Guarantee
//
// The laws that depend on code not sharing code hold by construction: what checks the
// books shares nothing with what writes them, the receiver cannot reach the database,
// and the contract of the topic can be used by anybody. Each rule says why it is there.
//
// # Flow
//
//	go list ./... ──▶ imports of every package ──▶ rules, documentation, size of folders
//
// # Failure modes
//
// The tests need the go command, as all tests do. A rule that fails names the package,
// what it imports, and through which packages it came there.
package arch
