//go:build chaos

package crashpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// The environment that says where the process ends; see the package's page.
const (
	Env     = "CRASHPOINT"
	EnvMark = "CRASHPOINT_MARK"
)

// order is what the environment asks for.
type order struct {
	point  string
	nth    int64
	signal syscall.Signal
	mark   string
}

var (
	ordered = read(os.Getenv(Env), os.Getenv(EnvMark))
	reached atomic.Int64
)

// read understands point@nth=kill and point@nth=stop. Nothing asked is an order that no
// point has the name of.
func read(text, mark string) order {
	if text == "" {
		return order{}
	}
	point, rest, _ := strings.Cut(text, "@")
	count, what, _ := strings.Cut(rest, "=")
	nth, err := strconv.ParseInt(count, 10, 64)
	signal, ok := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[what]
	if err != nil || nth < 1 || !ok || point == "" {
		panic(fmt.Sprintf("%s is %q: write point@nth=kill or point@nth=stop", Env, text))
	}
	return order{point: point, nth: nth, signal: signal, mark: mark}
}

// Reach says that the process is at the point named, and ends or freezes it there if
// that was asked for. Safe for concurrent use.
func Reach(point string) {
	if point != ordered.point || reached.Add(1) != ordered.nth {
		return
	}
	if ordered.mark != "" {
		if err := os.WriteFile(ordered.mark, []byte(point), 0o600); err != nil {
			panic(fmt.Sprintf("mark crash point %s: %v", point, err))
		}
	}
	// The signal reaches the whole process; this goroutine must not run on until it has.
	_ = syscall.Kill(os.Getpid(), ordered.signal)
	if ordered.signal == syscall.SIGKILL {
		select {}
	}
}
