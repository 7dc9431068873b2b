// Package vectors judges cases of signed deliveries with the receiver's own code: a file
// of cases in, a verdict for each out.
//
// # Guarantee
//
// A case takes the way of a delivery: it becomes the configuration of a source, a keyring
// and a verifier, and then a request at the time that the case names. Nothing is judged
// here. The case's own certificate, key or set of keys is the one believed, and nothing is
// ever fetched.
//
// # Flow
//
//	cases (JSON array or lines) ──Read──▶ Case ──Judge──▶ Verdict
//	                                       │ config.go: provider, secrets, knobs
//	                                       └ request: method, query, headers, body, sender
//
// # Failure modes
//
// A case whose secrets no receiver would start with is invalid, with reason configuration.
// A case that is not JSON, or of a provider that does not exist, is an error that names its
// place: the file is wrong, not a delivery.
package vectors
