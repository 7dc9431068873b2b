package testkit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

func TestKfake(t *testing.T) {
	t.Parallel()
	c := testkit.Kfake(t, kfake.SeedTopics(1, "topic"))
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	produce(t.Context(), t, cl, "topic")
}

func TestEventually(t *testing.T) {
	t.Parallel()
	calls := 0
	testkit.Eventually(t, time.Minute, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 3 {
		t.Fatalf("calls: got %d, want 3", calls)
	}

	failed := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // ends with Fatalf, as a test's goroutine does
		defer close(done)
		testkit.Eventually(failed, 0, func() error { return errors.New("never") })
	}()
	<-done
	if failed.format == "" {
		t.Fatal("a check that never holds did not fail the test")
	}
}
