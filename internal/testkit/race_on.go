//go:build race

package testkit

// raceEnabled says that the tests were built with the race detector; then the
// binary they start is too.
const raceEnabled = true
