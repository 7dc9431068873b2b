package testkit

import (
	"testing"
	"time"
)

// pollEvery is how often Eventually asks.
const pollEvery = 20 * time.Millisecond

// Eventually calls check until it returns nil, and fails the test with its
// last error when that has not happened within the time given. check runs at
// least once, and on the test's goroutine.
func Eventually(tb testing.TB, within time.Duration, check func() error) {
	tb.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %s: %v", within, err)
		}
		<-tick.C
	}
}
