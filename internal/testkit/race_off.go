//go:build !race

package testkit

const raceEnabled = false

// RaceFactor is 1: there is no race detector.
const RaceFactor = 1
