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
	return build("hookledger", ".", "")
})

// build builds a program of this tree, with the race detector if the tests have it.
func build(name, pkg, tags string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := scratchDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	args := []string{"build", "-o", path, "-tags", tags}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, pkg)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// BuildProgram builds the program in a folder of this tree, such as
// "./internal/e2e/kfaked", with build tags, and returns its path.
func BuildProgram(tb testing.TB, pkg, tags string) string {
	tb.Helper()
	once, _ := programs.LoadOrStore(pkg+" "+tags, sync.OnceValues(func() (string, error) { return build(programName(pkg), pkg, tags) }))
	path, err := once.(func() (string, error))()
	if err != nil {
		tb.Fatalf("build %s: %v", pkg, err)
	}
	return path
}

// programs are those of BuildProgram, each built once for this test process.
var programs sync.Map // package and tags → func() (string, error)

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

// programName is a file name for the program in a folder.
func programName(pkg string) string {
	if pkg == "." {
		return "hookledger"
	}
	return filepath.Base(pkg)
}
