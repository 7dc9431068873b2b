package testkit_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
)

// echo answers every line with itself, and tells what it read.
func echo(t *testing.T) (addr string, lines <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	seen := make(chan string, 100)
	go func() { // ends when the listener closes
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // ends when the client does
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for {
					line, err := r.ReadString('\n')
					if line != "" {
						seen <- line
					}
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, line)
				}
			}()
		}
	}()
	return ln.Addr().String(), seen
}

func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		t.Fatal(err)
	}
}

func TestProxy_PassStallReset(t *testing.T) {
	t.Parallel()
	addr, _ := echo(t)
	p := testkit.NewProxy(t, addr)
	c, r := dial(t, p.Addr())
	say(t, c, "one\n")
	if got, err := r.ReadString('\n'); got != "one\n" {
		t.Fatalf("passing: got %q %v", got, err)
	}

	p.Stall()
	say(t, c, "two\n")
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("stalled: got %v, want the deadline", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p.Pass()
	if got, err := r.ReadString('\n'); got != "two\n" {
		t.Fatalf("passing again: got %q %v", got, err)
	}

	p.Reset()
	if _, err := r.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("reset: got %v, want a connection reset", err)
	}
	p.Pass()
	c, r = dial(t, p.Addr())
	say(t, c, "three\n")
	if got, err := r.ReadString('\n'); got != "three\n" {
		t.Fatalf("after the reset: got %q %v", got, err)
	}
}

func TestProxy_CutAfterForward(t *testing.T) {
	t.Parallel()
	addr, seen := echo(t)
	p := testkit.NewProxy(t, addr)
	cut := p.CutAfterForward(6)
	c, r := dial(t, p.Addr())
	say(t, c, "hello\nworld\n")
	<-cut
	if got := <-seen; got != "hello\n" {
		t.Fatalf("server read %q, want the six bytes let through", got)
	}
	if got, err := r.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("client: got %q %v, want a connection reset", got, err)
	}
}

// The answer to COMMIT is lost, the commit is not.
func TestProxy_CutAfterCommit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := testkit.PostgresURL(t)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.NewProxy(t, net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))))
	cfg.DialFunc = p.Dial
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `create table kept (n int)`); err != nil {
		t.Fatal(err)
	}
	cut := p.CutAfterForwardOf("commit")
	if err := tx.Commit(ctx); err == nil {
		t.Fatal("the answer to COMMIT arrived through a cut connection")
	}
	<-cut
	testkit.Eventually(t, time.Minute, func() error { return try(ctx, url, `select * from kept`) })
}
