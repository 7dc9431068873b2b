package testkit

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Kfake starts Kafka inside this process, in memory, with one broker unless
// opts say otherwise, and closes it after the test. Addresses:
// ListenAddrs. Faults: Control, ControlKey and their relatives.
func Kfake(tb testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	tb.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		tb.Fatalf("start kfake: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}
