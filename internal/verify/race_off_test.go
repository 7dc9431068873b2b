//go:build !race

package verify_test

// raceFactor is how much more memory the race detector takes.
const raceFactor = 1
