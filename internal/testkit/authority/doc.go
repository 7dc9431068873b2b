// Package authority makes the certificates of tests: an authority, and what it signs.
//
// # Guarantee
//
// Certificates are real, of the test alone, and end within a day. Keys are in files of
// mode 0600, in a folder that is removed with the test.
//
// # Flow
//
//	New ──▶ Issue (a new pair of files)    for servers and clients
//	    └─▶ IssueTo (files of a name)      to renew a pair in place, by renaming
//
// # Failure modes
//
// Whatever goes wrong fails the test.
package authority
