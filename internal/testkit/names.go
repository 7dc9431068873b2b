package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
)

var nameCounter atomic.Int64

// uniqueName is a name that no other test of this machine uses, fit for
// databases, topics and groups.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), nameCounter.Add(1))
}

// UniqueName returns a name that no other test uses, for a topic or a group on
// a shared broker.
func UniqueName(prefix string) string { return uniqueName(prefix) }
