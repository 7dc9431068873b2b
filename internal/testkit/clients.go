package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/devstack"
)

// Python returns the path of a Python that has the module confluent_kafka, a
// second client built on librdkafka. `make test` prepares it.
func Python(tb testing.TB) string {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	venv := filepath.Join(root, ".cache", "python")
	if _, err := os.Stat(filepath.Join(venv, ".complete")); err != nil {
		tb.Fatal("this test needs the Python client in .cache/python: run `make test`, or `make python` to fetch it alone")
	}
	return filepath.Join(venv, "bin", "python")
}

var nameCounter atomic.Int64

// uniqueName is a name that no other test of this machine uses, fit for
// databases, topics and groups.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), nameCounter.Add(1))
}

// UniqueName returns a name that no other test uses, for a topic or a group on
// a shared broker.
func UniqueName(prefix string) string { return uniqueName(prefix) }

// FreePort returns a port on 127.0.0.1 that no other test uses, until the test process
// ends.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := devstack.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// FreeAddr is 127.0.0.1 with a FreePort.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(tb))
}

// Member joins a group that reads a topic and returns once it has a partition. It
// commits nothing, and leaves with the test.
func Member(tb testing.TB, brokers []string, group, topic string) {
	tb.Helper()
	assigned := make(chan struct{})
	tell := sync.OnceFunc(func() { close(assigned) })
	member, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { tell() }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(member.Close)
	select {
	case <-assigned:
	case <-time.After(2 * startWithin):
		tb.Fatal("the member was not assigned a partition")
	}
}
