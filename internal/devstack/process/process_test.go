//go:build unix

package process_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/devstack/process"
)

// parentEnv turns this test binary into a parent that starts a child, prints
// its pid and waits to be killed.
const parentEnv = "HOOKLEDGER_TEST_PROCESS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		p, err := process.Start(exec.Command("sleep", "600"), syscall.SIGKILL)
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(p.PID()) + "\n")
		<-p.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestStop_WaitsForTheChild(t *testing.T) {
	t.Parallel()
	p, err := process.Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Stop(ctx, syscall.SIGTERM); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	var exit *exec.ExitError
	if err := p.Err(); !errors.As(err, &exit) {
		t.Fatalf("Err: got %v, want an exit error", err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("Signal after the end: got %v, want nil", err)
	}
}

func TestStop_KillsAChildThatIgnoresTheSignal(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx, syscall.SIGTERM); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Stop: got %v, want the deadline", err)
	}
	<-p.Done()
}

func TestStart_ChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("only Linux signals children of a dead parent: nothing to check here")
		return
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for running(child) {
		if time.Now().After(deadline) {
			t.Fatalf("child %d still runs after its parent was killed", child)
		}
		runtime.Gosched()
	}
}

// running reports whether pid is neither gone nor a zombie that nobody reaps.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
