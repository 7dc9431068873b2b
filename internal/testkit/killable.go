package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/devstack/process"
)

// ProcessOptions says what to run.
type ProcessOptions struct {
	// Program is the binary. Empty means hookledger itself, from Binary.
	Program string
	Args    []string
	// Env is added to the environment of the test, "NAME=value".
	Env []string
	// Dir is the working folder. Empty means a fresh one.
	Dir string
	// ReadyURL answers 200 when the process can work. Empty: do not wait.
	ReadyURL string
	// ReadyWithin bounds that wait. Zero means a minute.
	ReadyWithin time.Duration
}

// KillableProcess is a running program whose end a test controls. Its methods
// fail the test on errors; Kill, Signal and Wait may be called from any
// goroutine of it.
type KillableProcess struct {
	tb   testing.TB
	opts ProcessOptions
	log  string
	proc atomic.Pointer[process.Process]
}

// StartHookledger starts a program and waits until it is ready. Its output
// goes to a file that is shown when the test fails. It is killed after the
// test, and by the kernel should the test process die.
func StartHookledger(tb testing.TB, opts ProcessOptions) *KillableProcess {
	tb.Helper()
	if opts.Program == "" {
		opts.Program = Binary(tb)
	}
	if opts.Dir == "" {
		opts.Dir = tb.TempDir()
	}
	if opts.ReadyWithin == 0 {
		opts.ReadyWithin = time.Minute
	}
	p := &KillableProcess{tb: tb, opts: opts, log: filepath.Join(tb.TempDir(), "output.log")}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("the end of the output of %s %v:\n%s", filepath.Base(opts.Program), opts.Args, tail(p.log, 100))
		}
	})
	p.Restart()
	return p
}

// Restart starts the program again after it has ended, and waits until it is
// ready. Output is appended.
func (p *KillableProcess) Restart() {
	p.tb.Helper()
	if old := p.proc.Load(); old != nil {
		select {
		case <-old.Done():
		default:
			p.tb.Fatalf("restart of process %d, which still runs", old.PID())
		}
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.tb.Fatalf("open output file: %v", err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := exec.Command(p.opts.Program, p.opts.Args...)
	cmd.Dir = p.opts.Dir
	cmd.Env = append(os.Environ(), p.opts.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.proc.Store(proc)
	if p.opts.ReadyURL != "" {
		p.awaitReady(proc)
	}
}

func (p *KillableProcess) awaitReady(proc *process.Process) {
	p.tb.Helper()
	Eventually(p.tb, p.opts.ReadyWithin, func() error {
		select {
		case <-proc.Done():
			p.tb.Fatalf("the process ended before it was ready: %v", proc.Err())
		default:
		}
		return answers200(p.opts.ReadyURL)
	})
}

// answers200 asks a URL once.
func answers200(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// PID is the process id.
func (p *KillableProcess) PID() int { return p.proc.Load().PID() }

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *KillableProcess) Kill() {
	if proc := p.proc.Load(); proc != nil {
		proc.Kill()
	}
}

// Signal sends a signal, such as SIGSTOP, SIGCONT or SIGTERM.
func (p *KillableProcess) Signal(sig syscall.Signal) {
	p.tb.Helper()
	if err := p.proc.Load().Signal(sig); err != nil {
		p.tb.Error(err)
	}
}

// Wait waits for the process to end by itself and returns its exit code, −1
// when a signal ended it.
func (p *KillableProcess) Wait(within time.Duration) int {
	p.tb.Helper()
	proc := p.proc.Load()
	select {
	case <-proc.Done():
	case <-time.After(within):
		p.tb.Errorf("process %d still runs after %s", proc.PID(), within)
		return -1
	}
	err := proc.Err()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		p.tb.Errorf("wait for process %d: %v", proc.PID(), err)
		return -1
	}
}

// Stop sends SIGTERM and returns the exit code, as Wait does.
func (p *KillableProcess) Stop(within time.Duration) int {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait(within)
}

// Output is what the process has written so far, to both streams.
func (p *KillableProcess) Output() string {
	p.tb.Helper()
	content, err := os.ReadFile(p.log)
	if err != nil {
		p.tb.Errorf("read output: %v", err)
	}
	return string(content)
}
