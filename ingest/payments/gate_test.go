package payments

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// gate is a proxy before Postgres that knows its messages, so that a test can stop a
// client before any statement it likes, or drop the answer to one. Connections must be
// without TLS.
type gate struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	watch func(sql string) action
	conns map[net.Conn]bool
}

// action is what a gate does at a statement.
type action struct {
	// hold, if set, keeps the statement and all behind it back until it is closed.
	hold <-chan struct{}
	// cut forwards up to the end of the write, then drops what the server answers and
	// closes the connection.
	cut bool
}

func newGate(tb testing.TB, target string) *gate {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{target: target, listener: ln, conns: map[net.Conn]bool{}}
	g.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			g.wg.Go(func() { g.serve(c) })
		}
	})
	tb.Cleanup(func() {
		_ = ln.Close()
		g.mu.Lock()
		for c := range g.conns {
			_ = c.Close()
		}
		g.mu.Unlock()
		g.wg.Wait()
	})
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

// on calls f for each statement that is about to be executed; nil: for none.
func (g *gate) on(f func(sql string) action) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = f
}

func (g *gate) ask(sql string) action {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watch == nil {
		return action{}
	}
	return g.watch(sql)
}

func (g *gate) track(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = true
}

func (g *gate) serve(client net.Conn) {
	g.track(client)
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	g.track(server)
	defer func() { _ = server.Close() }()
	answered := make(chan struct{})
	dropped := make(chan struct{})
	go func() { // ends with either connection
		defer close(answered)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-dropped:
			default:
				if _, werr := client.Write(buf[:n]); werr != nil {
					err = werr
				}
			}
			if err != nil {
				_ = client.Close()
				_ = server.Close()
				return
			}
		}
	}()
	g.forward(client, server, dropped)
	if tcp, ok := server.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // what was forwarded is executed
	}
	<-answered
}

// forward copies messages from client to server.
func (g *gate) forward(client, server net.Conn, dropped chan struct{}) {
	if !copyStartup(client, server) { // startup has no type
		return
	}
	statements := map[string]string{}
	cutting := false
	for {
		frame, err := readFrame(client)
		if err != nil {
			return
		}
		body, sql := frame[5:], ""
		switch frame[0] {
		case 'P':
			name, rest, _ := bytes.Cut(body, []byte{0})
			text, _, _ := bytes.Cut(rest, []byte{0})
			statements[string(name)] = string(text)
			if len(name) == 0 { // not prepared: its clock starts here, so it is held here
				sql = string(text)
			}
		case 'B':
			_, rest, _ := bytes.Cut(body, []byte{0})
			if name, _, _ := bytes.Cut(rest, []byte{0}); len(name) > 0 {
				sql = statements[string(name)]
			}
		}
		if sql != "" {
			a := g.ask(sql)
			if a.hold != nil {
				<-a.hold
			}
			if a.cut && !cutting {
				cutting = true
				close(dropped)
			}
		}
		if _, err := server.Write(frame); err != nil {
			return
		}
		if cutting && frame[0] == 'S' {
			_ = client.Close()
			return
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<24 {
		return nil, errors.New("not a message of Postgres")
	}
	frame := slices.Concat(head, make([]byte, n-4))
	_, err := io.ReadFull(r, frame[5:])
	return frame, err
}

func copyStartup(client, server net.Conn) bool {
	head := make([]byte, 4)
	if _, err := io.ReadFull(client, head); err != nil {
		return false
	}
	frame := slices.Concat(head, make([]byte, binary.BigEndian.Uint32(head)-4))
	if _, err := io.ReadFull(client, frame[4:]); err != nil {
		return false
	}
	_, err := server.Write(frame)
	return err == nil
}

// stop is a place where a gate holds one statement.
type stop struct {
	reached chan struct{}
	open    chan struct{}
	once    sync.Once
}

func (s *stop) release() { s.once.Do(func() { close(s.open) }) }

// holdAt holds the first statement from now on for which match is true, whatever its
// connection. reached is closed when that has come.
func (g *gate) holdAt(tb testing.TB, match func(sql string) bool) *stop {
	s := &stop{reached: make(chan struct{}), open: make(chan struct{})}
	tb.Cleanup(s.release)
	done := false
	g.on(func(sql string) action {
		if done || !match(sql) {
			return action{}
		}
		done = true
		close(s.reached)
		return action{hold: s.open}
	})
	return s
}

// cutAt drops the answer to the first write from now on that has a statement for which
// match is true, and closes its connection once the server has it all.
func (g *gate) cutAt(match func(sql string) bool) {
	done := false
	g.on(func(sql string) action {
		if done || !match(sql) {
			return action{}
		}
		done = true
		return action{cut: true}
	})
}

// nth matches the n-th statement, from 1.
func nth(n int) func(string) bool {
	return func(string) bool { n--; return n == 0 }
}

// is matches the n-th time that a statement is executed, from 1.
func is(sql string, n int) func(string) bool {
	return func(s string) bool {
		if s == sql {
			n--
		}
		return s == sql && n == 0
	}
}
