package testkit_test

import (
	"runtime"
	"testing"
)

// recorder is a test that notes its failure instead of failing.
type recorder struct {
	testing.TB
	format string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.format = format
	runtime.Goexit()
}
