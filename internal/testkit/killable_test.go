package testkit_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

const untilTerm = `trap 'echo bye; exit 7' TERM; echo started; while :; do sleep 0.05; done`

func TestStartHookledger_StopKillRestart(t *testing.T) {
	t.Parallel()
	p := testkit.StartHookledger(t, testkit.ProcessOptions{Program: "/bin/sh", Args: []string{"-c", untilTerm}})
	testkit.Eventually(t, time.Minute, func() error { return contains(p.Output(), "started") })
	p.Signal(syscall.SIGSTOP)
	p.Signal(syscall.SIGCONT)
	if code := p.Stop(time.Minute); code != 7 {
		t.Fatalf("exit code: got %d, want 7", code)
	}
	if err := contains(p.Output(), "bye"); err != nil {
		t.Fatal(err)
	}
	p.Restart()
	p.Kill()
	if code := p.Wait(time.Second); code != -1 {
		t.Fatalf("exit code after kill -9: got %d, want -1", code)
	}
}

func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("no %q in: %s", part, text)
	}
	return nil
}
