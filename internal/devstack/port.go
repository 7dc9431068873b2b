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
	reservedMu sync.Mutex
	// reserved are open until the process ends, however it ends.
	reserved []net.PacketConn
)

// FreePort returns a TCP port on 127.0.0.1 on which nobody listens. No other call returns
// it while this process lives, in this process or another: the UDP port of the same
// number, which nobody else wants, is held as the sign that the port is taken, also while
// its server is away.
func FreePort() (int, error) {
	var last error
	for range 200 {
		port := lowestFreePort + rand.IntN(highestFreePort-lowestFreePort)
		if last = reserve(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", last)
}

// reserve takes a port for this process, unless another has it or listens on it.
func reserve(port int) error {
	sign, err := net.ListenPacket("udp", local(port))
	if err != nil {
		return fmt.Errorf("reserve port %d of 127.0.0.1: %w", port, err)
	}
	if err := portFree(port); err != nil {
		_ = sign.Close()
		return err
	}
	reservedMu.Lock()
	defer reservedMu.Unlock()
	reserved = append(reserved, sign)
	return nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portFree returns nil if a server could listen on the port now, otherwise an
// error that says what to do.
func portFree(port int) error {
	ln, err := net.Listen("tcp", local(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d on 127.0.0.1 is taken: stop the program that listens there or choose another port: %w", port, err)
	}
	if err != nil {
		return fmt.Errorf("listen on port %d of 127.0.0.1: %w", port, err)
	}
	return ln.Close()
}
