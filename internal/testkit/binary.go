package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// BinaryEnv names an already built hookledger to test instead of a fresh one.
const BinaryEnv = "HOOKLEDGER_TEST_BINARY"

// builtBinary builds hookledger once for this test process.
var builtBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := scratchDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hookledger")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, ".")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// Binary returns the path of the hookledger binary: built from this tree once
// per test process, with the race detector if the tests have it, or what
// HOOKLEDGER_TEST_BINARY names.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := builtBinary()
	if err != nil {
		tb.Fatalf("build hookledger: %v", err)
	}
	return path
}
