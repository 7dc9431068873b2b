package testkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP proxy whose connections a test can hurt. Methods are safe for
// concurrent use. Connections made while it stalls wait; made while it resets,
// they are reset.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when mode changes
	mode    proxyMode
	trigger trigger
	conns   map[net.Conn]struct{}
}

type proxyMode int

const (
	modePass proxyMode = iota
	modeStall
	modeReset
)

// trigger cuts a connection after something was forwarded to the target.
type trigger struct {
	armed   bool
	bytes   int64  // how many more bytes, if pattern is nil
	pattern []byte // seen in what one read returned
	done    chan struct{}
}

// NewProxy listens on 127.0.0.1 and forwards to target until the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen for proxy: %v", err)
	}
	p := &Proxy{target: target, listener: ln, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept) // ends when the listener closes
	tb.Cleanup(func() {
		_ = ln.Close()
		p.Reset()
		p.wg.Wait()
	})
	return p
}

// Addr is where to connect instead of to the target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Dial connects through the proxy whatever the address; it fits kgo.Dialer and
// pgx's DialFunc.
func (p *Proxy) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, p.Addr())
}

// Pass forwards in both directions: the state at the start, and the end of a
// Stall or Reset.
func (p *Proxy) Pass() { p.set(modePass) }

// Stall forwards nothing in either direction and keeps connections open.
func (p *Proxy) Stall() { p.set(modeStall) }

// Reset ends every connection with a TCP reset, new ones included.
func (p *Proxy) Reset() {
	p.set(modeReset)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		abort(c)
	}
}

// CutAfterForward lets n more bytes through to the target, over all
// connections, then cuts the connection that brought the last of them: the
// target has read it all, its answer is dropped and the client is reset. The
// channel is closed when that has happened. Other connections pass on.
func (p *Proxy) CutAfterForward(n int64) <-chan struct{} {
	return p.arm(trigger{bytes: n})
}

// CutAfterForwardOf is CutAfterForward for the first piece that contains
// pattern, such as "commit". It must arrive in one read, as short messages do.
func (p *Proxy) CutAfterForwardOf(pattern string) <-chan struct{} {
	return p.arm(trigger{pattern: []byte(pattern)})
}

// Disarm takes back a cut that has not happened. Its channel is not closed.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger = trigger{}
}

func (p *Proxy) arm(t trigger) <-chan struct{} {
	t.armed, t.done = true, make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger = t
	return t.done
}

func (p *Proxy) set(m proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) }) // ends with the connection
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer abort(client)
	if !p.track(client) {
		return
	}
	defer p.forget(client)
	if !p.awaitPass() {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !p.track(server) {
		return
	}
	defer p.forget(server)
	answered := make(chan struct{})
	cut := make(chan struct{}) // closed to drop answers
	go func() {                // ends when either connection does
		defer close(answered)
		p.copyAnswers(client, server, cut)
	}()
	p.copyRequests(client, server, cut)
	<-answered
}

// copyRequests forwards from client to server and pulls the trigger.
func (p *Proxy) copyRequests(client, server net.Conn, cut chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			if !p.awaitPass() {
				abort(server)
				return
			}
			send, done := p.pull(buf[:n])
			if done != nil {
				close(cut) // before the server can answer
			}
			_, writeErr := server.Write(send)
			if done != nil {
				abort(client)
				// Not a reset: the server must read what was forwarded.
				_ = closeWrite(server)
				close(done)
				return
			}
			err = errors.Join(err, writeErr)
		}
		if err != nil {
			_ = closeWrite(server)
			return
		}
	}
}

// pull returns what of piece may pass, and the trigger's channel if this piece
// sets it off.
func (p *Proxy) pull(piece []byte) (send []byte, done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.trigger
	switch {
	case !t.armed:
		return piece, nil
	case t.pattern != nil:
		if !bytes.Contains(piece, t.pattern) {
			return piece, nil
		}
	case int64(len(piece)) < t.bytes:
		t.bytes -= int64(len(piece))
		return piece, nil
	default:
		piece = piece[:t.bytes]
	}
	t.armed = false
	return piece, t.done
}

// copyAnswers forwards from server to client until the connection is cut, and
// from then on only drains, so that the server can finish its work.
func (p *Proxy) copyAnswers(client, server net.Conn, cut <-chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && p.awaitPass() {
			select {
			case <-cut:
			default:
				if _, err := client.Write(buf[:n]); err != nil {
					abort(server)
				}
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				_ = closeWrite(client)
			} else {
				abort(client)
			}
			return
		}
	}
}

// awaitPass blocks while the proxy stalls; false means reset.
func (p *Proxy) awaitPass() bool {
	for {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		p.mu.Unlock()
		switch mode {
		case modePass:
			return true
		case modeReset:
			return false
		case modeStall:
			<-changed
		}
	}
}

// track remembers c for Reset; false means that the proxy resets just now.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == modeReset {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// abort closes with a TCP reset instead of an orderly end.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func closeWrite(c net.Conn) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c.Close()
	}
	return tcp.CloseWrite()
}
