package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
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
