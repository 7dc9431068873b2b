package testkit

import (
	"fmt"
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
	if err := eventually(within, check); err != nil {
		tb.Fatalf("%v", err)
	}
}

// eventually is Eventually where there is no test.
func eventually(within time.Duration, check func() error) error {
	deadline := time.Now().Add(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", within, err)
		}
		<-tick.C
	}
}
