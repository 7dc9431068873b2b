//go:build race

package testkit

// raceEnabled says that the tests were built with the race detector; then the
// binary they start is too.
const raceEnabled = true

// RaceFactor is how much more memory a binary may take than without the race detector,
// which keeps a shadow of it: five to ten times, says its documentation.
const RaceFactor = 10
