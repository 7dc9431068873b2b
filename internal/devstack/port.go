//go:build unix

package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// Free ports are taken below 32768, where Linux's ephemeral range starts:
// otherwise any outgoing connection could take the port of a server that is
// being restarted.
const (
	lowestFreePort  = 20000
	highestFreePort = 32000
)

var (
	handedOutMu sync.Mutex
	handedOut   = map[int]bool{}
)

// FreePort returns a TCP port on 127.0.0.1 on which nobody listens. It never
// returns the same port twice in one process. Another process may still take
// the port before the caller listens; the choice is random to make that rare.
func FreePort() (int, error) {
	handedOutMu.Lock()
	defer handedOutMu.Unlock()
	var last error
	for range 200 {
		port := lowestFreePort + rand.IntN(highestFreePort-lowestFreePort)
		if handedOut[port] {
			continue
		}
		if last = portFree(port); last == nil {
			handedOut[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", last)
}

// portFree returns nil if a server could listen on the port now, otherwise an
// error that says what to do.
func portFree(port int) error {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d on 127.0.0.1 is taken: stop the program that listens there or choose another port: %w", port, err)
	}
	if err != nil {
		return fmt.Errorf("listen on port %d of 127.0.0.1: %w", port, err)
	}
	return ln.Close()
}
