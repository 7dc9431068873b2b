//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a running child, or one that has ended. Its methods are safe for
// concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child was reaped
	err  error         // how it ended; read only after done
}

// Start starts cmd as the leader of a process group of its own. When this
// process ends, the child receives onDeath (Linux only). Credentials already
// set in cmd.SysProcAttr are kept.
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, onDeath)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// Ends when the child has ended. It is never unlocked from its thread, so
	// the thread lives exactly as long as the child.
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID is the child's process id, which is also its process group's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the child to end and returns how: nil for exit code 0,
// otherwise an *exec.ExitError or what went wrong while waiting.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig to the child alone. A child that has already ended is not
// an error.
func (p *Process) Signal(sig syscall.Signal) error {
	// os.Process refuses to signal a child it has reaped, so a reused pid
	// can't be hit.
	err := p.cmd.Process.Signal(sig)
	if err == nil || p.ended() || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("send %s to process %d: %w", sig, p.PID(), err)
}

// Kill ends the child and its process group with SIGKILL and waits until the
// child is gone.
func (p *Process) Kill() {
	if !p.ended() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		_ = p.cmd.Process.Kill()
	}
	<-p.done
}

// Stop sends sig and waits for the child to end. When ctx is over first, it
// kills the child and returns ctx's error. How the child ended is Err's to
// say.
func (p *Process) Stop(ctx context.Context, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("wait for process %d to end after %s (it was killed): %w", p.PID(), sig, context.Cause(ctx))
	}
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
