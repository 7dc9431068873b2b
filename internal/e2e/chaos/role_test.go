package chaos

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// shell is a role that runs a script, what it complained of, and what crashes it had.
func shell(t *testing.T, script string, crashes ...Step) (r *role, complaints chan string, fired chan Step) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	r = newRole("role", t.TempDir(), []string{sh, "-c", script}, nil, "", crashes)
	complaints, fired = make(chan string, 100), make(chan Step, 100)
	r.complain = func(format string, args ...any) {
		select {
		case complaints <- fmt.Sprintf(format, args...):
		default: // more than a test wants
		}
	}
	r.fired = func(s Step) { fired <- s }
	go r.live() // ends with close
	t.Cleanup(r.close)
	r.up()
	return r, complaints, fired
}

// awaitLife waits for the n-th life.
func awaitLife(t *testing.T, r *role, n int) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.lives < n || r.proc == nil {
			return fmt.Errorf("it is life %d, running: %t", r.lives, r.proc != nil)
		}
		return nil
	})
}

func TestRole_AnEndThatNobodyCausedIsComplainedOf(t *testing.T) {
	t.Parallel()
	r, complaints, _ := shell(t, "exit 3")
	select {
	case <-complaints:
	case <-time.After(time.Minute):
		t.Fatal("a process that ended by itself: got no complaint")
	}
	awaitLife(t, r, 2) // and it is started again
}

func TestRole_WhatWeEndIsNotComplainedOf(t *testing.T) {
	t.Parallel()
	r, complaints, _ := shell(t, "trap 'exit 0' TERM; while :; do sleep 0.02; done")
	awaitLife(t, r, 1)
	r.down(syscall.SIGKILL)
	r.up()
	awaitLife(t, r, 2)
	r.signal(syscall.SIGSTOP)
	r.signal(syscall.SIGCONT)
	r.down(syscall.SIGTERM)
	r.awaitDown(t.Context(), time.Minute)
	r.up()
	awaitLife(t, r, 3)
	select {
	case c := <-complaints:
		t.Errorf("got complaint %q, want none", c)
	default:
	}
}

// A crash of the plan is one only if the process came to its point.
func TestRole_ACrashIsToldWhenItHappened(t *testing.T) {
	t.Parallel()
	crash := Step{Kind: CrashKill, Point: "ledger.sent", Nth: 7}
	r, complaints, fired := shell(t, `[ "$CRASHPOINT" = ledger.sent@7=kill ] && { : > "$CRASHPOINT_MARK"; kill -9 $$; }; sleep 600`, crash)
	select {
	case got := <-fired:
		if got != crash {
			t.Errorf("got crash %+v, want %+v", got, crash)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process crashed where it should: got no word of it")
	}
	awaitLife(t, r, 2) // which has no crash left
	if len(complaints) != 0 {
		t.Errorf("got complaint %q, want none", <-complaints)
	}
}

func TestRole_AFrozenProcessIsThawed(t *testing.T) {
	t.Parallel()
	crash := Step{Kind: CrashStop, Point: "ledger.sent", Nth: 1, For: 10}
	r, complaints, fired := shell(t, `: > "$CRASHPOINT_MARK"; kill -STOP $$; : > thawed; sleep 600`, crash)
	select {
	case <-fired:
	case <-time.After(time.Minute):
		t.Fatal("the process froze where it should: got no word of it")
	}
	testkit.Eventually(t, time.Minute, func() error {
		if text := exec.CommandContext(t.Context(), "test", "-e", r.dir+"/thawed").Run(); text != nil {
			return fmt.Errorf("it is still frozen: %w", text)
		}
		return nil
	})
	if len(complaints) != 0 {
		t.Errorf("got complaint %q, want none", <-complaints)
	}
}
