package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"hookledger/internal/devstack/process"
)

// The environment that a build with crash points reads; see internal/crashpoint.
const (
	crashEnv     = "CRASHPOINT"
	crashMarkEnv = "CRASHPOINT_MARK"
)

// role is one process of the product and its lives: it is started again whenever it ends
// and is wanted. A life takes the next crash of the plan with it.
type role struct {
	name    string
	command []string
	env     []string
	dir     string
	admin   string // address of health and metrics

	// fired is told of each crash that happened, complain of an end that nobody caused.
	fired    func(Step)
	complain func(format string, args ...any)

	mu      sync.Mutex
	changed *sync.Cond
	wanted  bool
	closed  bool
	calm    bool // no more crashes
	crashes []Step
	proc    *process.Process // nil between lives
	sent    syscall.Signal   // what we ended this life with, or 0
	lives   int
	// peakBytes is the most memory that any of them was seen with.
	peakBytes int64

	done chan struct{} // closed when the lives are over
}

func newRole(name, dir string, command, env []string, admin string, crashes []Step) *role {
	r := &role{name: name, command: command, env: env, dir: dir, admin: admin, crashes: crashes, done: make(chan struct{})}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// live runs until close: one life after another.
func (r *role) live() {
	defer close(r.done)
	for {
		life, ok := r.begin()
		if !ok {
			return
		}
		if life != nil {
			life.watch()
			r.end(life)
		}
	}
}

// life is one process from start to end.
type life struct {
	role  *role
	proc  *process.Process
	began time.Time
	crash Step // the zero Step: none
	mark  string
}

// begin waits until the process is wanted and starts it. It returns false after close.
func (r *role) begin() (*life, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.wanted && !r.closed {
		r.changed.Wait()
	}
	if r.closed {
		return nil, false
	}
	r.lives++
	l := &life{role: r, mark: filepath.Join(r.dir, fmt.Sprintf("%s.%d.crash", r.name, r.lives))}
	env := append(os.Environ(), r.env...)
	if len(r.crashes) > 0 && !r.calm {
		l.crash, r.crashes = r.crashes[0], r.crashes[1:]
		what := map[Kind]string{CrashKill: "kill", CrashStop: "stop"}[l.crash.Kind]
		env = append(env, fmt.Sprintf("%s=%s@%d=%s", crashEnv, l.crash.Point, l.crash.Nth, what), crashMarkEnv+"="+l.mark)
	}
	log, err := os.OpenFile(r.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		cmd := exec.Command(r.command[0], r.command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, env, log, log
		l.proc, err = process.Start(cmd, syscall.SIGKILL)
		_ = log.Close() // the child has its own copy
	}
	if err != nil {
		r.wanted = false
		r.complain("start %s: %v", r.name, err)
		return nil, true
	}
	r.proc, r.sent, l.began = l.proc, 0, time.Now()
	return l, true
}

func (r *role) logPath() string { return filepath.Join(r.dir, r.name+".log") }

// watch waits for the end of the life, and thaws it if it froze itself.
func (l *life) watch() {
	if l.crash.Kind != CrashStop {
		<-l.proc.Done()
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !l.crashed() {
		select {
		case <-l.proc.Done():
			return
		case <-tick.C:
		}
	}
	l.role.fired(l.crash)
	thaw := time.NewTimer(millis(l.crash.For))
	defer thaw.Stop()
	select {
	case <-l.proc.Done():
	case <-thaw.C:
		l.thaw()
		<-l.proc.Done()
	}
}

// thaw lets a process go on that marked its crash point and may not have stopped yet: on
// a busy machine that takes a while, and a signal that comes first is lost.
func (l *life) thaw() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 50 {
		_ = l.proc.Signal(syscall.SIGCONT)
		select {
		case <-l.proc.Done():
			return
		case <-tick.C:
		}
	}
}

// crashed says that the process came to its crash point.
func (l *life) crashed() bool {
	_, err := os.Stat(l.mark)
	return l.crash.Point != "" && err == nil
}

// unborn says that SIGTERM came before the program had begun to listen to it.
func (l *life) unborn() bool {
	var exit *exec.ExitError
	if !errors.As(l.proc.Err(), &exit) || time.Since(l.began) > 10*time.Second {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// end judges how a life ended, and waits before the next where something else than us
// ended it.
func (r *role) end(l *life) {
	r.mu.Lock()
	sent := r.sent
	r.proc = nil
	r.changed.Broadcast()
	r.mu.Unlock()
	err := l.proc.Err()
	switch {
	case sent == syscall.SIGKILL:
	case l.crash.Kind == CrashKill && l.crashed():
		r.fired(l.crash)
		if sent == 0 {
			time.Sleep(millis(l.crash.For))
		}
	case sent == syscall.SIGTERM && (err == nil || l.unborn()):
	default:
		r.complain("%s ended by itself, or not in good order: %v; see %s", r.name, err, r.logPath())
		time.Sleep(200 * time.Millisecond)
	}
}

// up wants the process to run.
func (r *role) up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	r.changed.Broadcast()
}

// down wants it not to run, and sends the signal if it does.
func (r *role) down(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = false
	r.send(sig)
}

// send sends a signal to the life there is. One SIGTERM each: a second would tell the
// program to abandon its work.
func (r *role) send(sig syscall.Signal) {
	if r.proc == nil || sig == syscall.SIGTERM && r.sent != 0 {
		return
	}
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		r.sent = sig
	}
	_ = r.proc.Signal(sig)
}

// signal sends SIGSTOP or SIGCONT, if the process runs.
func (r *role) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(sig)
}

// awaitDown waits until the process has ended after down. If it takes too long it is
// killed, and that is complained of.
func (r *role) awaitDown(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := poll(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.proc != nil && !r.wanted {
			return errors.New("it runs")
		}
		return nil
	})
	if err != nil {
		r.complain("%s still ran %s after SIGTERM", r.name, within)
		r.signal(syscall.SIGKILL)
	}
}

// calmDown starts no more crashes.
func (r *role) calmDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calm = true
}

// close ends it for good.
func (r *role) close() {
	r.mu.Lock()
	r.closed = true
	r.send(syscall.SIGKILL)
	r.changed.Broadcast()
	r.mu.Unlock()
	<-r.done
}

// output is what all lives have written.
func (r *role) output() string {
	text, err := os.ReadFile(r.logPath())
	if err != nil {
		return ""
	}
	return string(text)
}
