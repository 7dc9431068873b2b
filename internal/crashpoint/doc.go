// Package crashpoint names moments at which a process may die, so that a test can make
// it die at exactly that moment.
//
// # Guarantee
//
// In an ordinary build Reach is empty and inlined: nothing is left of it. Only a build
// with the tag chaos looks at the environment, and then a process ends, or freezes, at
// the moment that a test named, by a signal to itself that nothing can catch.
//
// # Flow
//
//	CRASHPOINT=ingest.acked@3=kill          at the third time: SIGKILL
//	CRASHPOINT=ledger.sent@12=stop          at the twelfth: SIGSTOP, until SIGCONT
//	CRASHPOINT_MARK=/path                   holds the point's name once it happened
//
// A point is named after the package that reaches it and what has just happened there,
// or is about to. Points stand between the steps whose order is the promise: read,
// verify, produce, acknowledge, answer; begin, each round trip, commit, the commit of
// the offset.
//
// # Failure modes
//
//   - An environment that cannot be read panics at the start of a build with the tag: a
//     test that does not do what it says proves nothing.
package crashpoint
