package broker

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/testkit"
)

// The first group of a broker has no coordinator for a moment.
func TestPatiently_WaitsForACoordinator(t *testing.T) {
	t.Parallel()
	cluster := testkit.Kfake(t, kfake.SeedTopics(1, "t"))
	cfg := DefaultConfig()
	cfg.Brokers = cluster.ListenAddrs()
	cl, err := Open(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	look := func() error {
		_, err := CommittedOffsets(t.Context(), cl, "g", "t")
		return err
	}
	if err := look(); !errors.Is(err, kerr.CoordinatorNotAvailable) {
		t.Fatalf("at once: got %v, want COORDINATOR_NOT_AVAILABLE: the test needs it", err)
	}
	calls := 0
	err = Patiently(t.Context(), func() error {
		if calls++; calls == 3 {
			fault.Remove()
		}
		return look()
	})
	if err != nil || calls != 3 {
		t.Errorf("got %v after %d calls, want an answer to the third", err, calls)
	}
}

func TestPatiently_ReturnsWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	for _, want := range []error{kerr.GroupAuthorizationFailed, kerr.UnknownTopicOrPartition, ErrNoTopic, errors.New("no")} {
		calls := 0
		err := Patiently(t.Context(), func() error { calls++; return want })
		if !errors.Is(err, want) || calls != 1 {
			t.Errorf("got %v after %d calls, want %v at once", err, calls, want)
		}
	}
}
