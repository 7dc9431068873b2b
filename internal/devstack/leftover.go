//go:build unix

package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patience with a leftover server: first it may end in good order, then it is
// told to end at once and to recover at the next start.
const (
	fastShutdownWithin      = 20 * time.Second
	immediateShutdownWithin = 10 * time.Second
)

// stopLeftovers stops a server that runs on data although its owner is gone,
// as the caller's folder lock shows. It returns when no process uses data.
func stopLeftovers(ctx context.Context, data string, log func(string)) error {
	left, err := processesOn(ctx, data)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		log(fmt.Sprintf("stopping the Postgres that an earlier run left on %s (process %d)", data, left[0]))
		if err := endLeftovers(ctx, data, left); err != nil {
			return err
		}
	}
	return removeStalePIDFile(data)
}

func endLeftovers(ctx context.Context, data string, left []int) error {
	// The main process, if it lives, ends the others. Without it they end by
	// themselves when they notice.
	if pid := recordedPID(data); pid != 0 {
		for _, p := range left {
			if p == pid {
				_ = syscall.Kill(pid, syscall.SIGINT)
			}
		}
	}
	gone, err := awaitNobodyOn(ctx, data, fastShutdownWithin)
	if gone || err != nil {
		return err
	}
	if left, err = processesOn(ctx, data); err != nil {
		return err
	}
	for _, p := range left {
		_ = syscall.Kill(p, syscall.SIGQUIT)
	}
	gone, err = awaitNobodyOn(ctx, data, immediateShutdownWithin)
	if gone || err != nil {
		return err
	}
	return fmt.Errorf("a Postgres of an earlier run still uses %s (processes %v) and does not stop: end it by hand", data, left)
}

func awaitNobodyOn(ctx context.Context, data string, within time.Duration) (bool, error) {
	deadline := time.After(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := processesOn(ctx, data)
		if err != nil || len(left) == 0 {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for a leftover Postgres to stop: %w", context.Cause(ctx))
		case <-deadline:
			return false, nil
		case <-tick.C:
		}
	}
}

// recordedPID is the main process as its pid file has it, 0 if there is none.
func recordedPID(data string) int {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	return pid
}

// removeStalePIDFile removes a pid file whose number belongs to an unrelated
// process by now, as happens when a container restarts: Postgres 15 to 18
// would refuse to start. It is called only once no process uses data. When the
// number is free Postgres sorts it out by itself, with its own checks.
func removeStalePIDFile(data string) error {
	pid := recordedPID(data)
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return nil
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		return fmt.Errorf("remove stale pid file: %w", err)
	}
	return nil
}
