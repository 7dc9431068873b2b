package payments

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for an answer on a raw connection.
const patience = time.Minute

func (b *bundle) dial() net.Conn {
	b.tb.Helper()
	conn, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// sendRaw writes text on a connection of its own and returns all that is answered until
// the server closes it.
func (b *bundle) sendRaw(name, text string) []byte {
	b.tb.Helper()
	conn := b.dial()
	if _, err := io.WriteString(conn, text); err != nil {
		b.tb.Errorf("%s: write: %v", name, err)
	}
	all, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.tb.Errorf("%s: the connection stays open", name)
	}
	return all
}

// raw is a payment as it is on the wire, with further headers.
func raw(key, body string, headers ...string) string {
	return fmt.Sprintf("POST /v1/payments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		shopToken, key, strings.Join(headers, ""), len(body), body)
}

// Each vector hides a payment in a request whose end two parsers may see in two places.
// Whoever is in front of us never saw it as a request, so it must never be read as one.
func TestHidden_PaymentsAreNeverMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	hidden := raw("hidden", payment("shop:1", "thief", 1))
	head := "POST /v1/payments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	whole := fmt.Sprintf("Content-Length: %d\r\n", len("0\r\n\r\n")+len(hidden))
	for name, text := range map[string]string{
		"length, then chunked":   head + whole + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked, then length":   head + "Transfer-Encoding: chunked\r\n" + whole + "\r\n0\r\n\r\n" + hidden,
		"chunked alone":          head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"HTTP/1.0 chunked":       strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + whole + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"by GET":                 "GET /v1/accounts/shop:1 HTTP/1.1\r\nHost: x\r\n" + whole + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"space before the colon": head + whole + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"another coding first":   head + whole + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":            head + "Content-Length: 0\r\n" + whole + "\r\n" + hidden,
		"plus":                   head + "Content-Length: +0\r\n\r\n" + hidden,
		"in a folded line":       head + "Connection: close\r\n" + whole + "X: x\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"bare LF after the size": head + "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + hidden,
		"two hosts":              "POST /v1/payments HTTP/1.1\r\nHost: x\r\nHost: y\r\n" + whole + "\r\n" + hidden,
		"HTTP/2 preface":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
	} {
		all := b.sendRaw(name, text)
		if n := bytes.Count(all, []byte("HTTP/1.")); n > 1 || bytes.HasPrefix(all, []byte("HTTP/1.1 2")) {
			t.Errorf("%s: got %d answers, want one that is no success:\n%s", name, n, all)
		}
	}
	if b.payments() != 0 {
		t.Errorf("got %d payments that nobody sent", b.payments())
	}
	// Sent openly it is made: the vectors failed for what they are.
	if all := b.sendRaw("openly", raw("hidden", payment("shop:1", "thief", 1), "Connection: close\r\n")); !bytes.HasPrefix(all, []byte("HTTP/1.1 201")) {
		t.Errorf("openly: got %s, want 201", all)
	}
}

// Three payments are written at once on one connection: they are answered in order, and a
// key that comes twice there is answered the same.
func TestPipelined_AreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	conn := b.dial()
	a, c := payment("shop:1", "x", 1), payment("shop:1", "x", 2)
	if _, err := io.WriteString(conn, raw("a", a)+raw("a", a)+raw("c", c)); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	reader := bufio.NewReader(conn)
	for range 3 {
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 201 {
			t.Errorf("got %d %s, want 201", res.StatusCode, body)
		}
		bodies = append(bodies, string(body))
	}
	if bodies[0] != bodies[1] || bodies[1] == bodies[2] || b.payments() != 2 {
		t.Errorf("got %q and %d payments, want the first twice and 2", bodies, b.payments())
	}
	b.lawful()
}

// A sender that writes all of a large body before it reads finds the answer, not a reset
// connection; one without a token finds it too.
func TestLargeBody_IsAnsweredBeforeTheConnectionCloses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const size = 4 << 20
	for _, c := range []struct {
		headers string
		code    int
	}{
		{"Authorization: Bearer " + shopToken + "\r\n", 413},
		{"", 401},
	} {
		for _, length := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", size), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size)} {
			conn := b.dial()
			if _, err := io.WriteString(conn, "POST /v1/payments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"+c.headers+length); err != nil {
				t.Fatal(err)
			}
			piece := []byte(strings.Repeat("x", 64<<10))
			for sent := 0; sent < size; sent += len(piece) {
				if _, err := conn.Write(piece); err != nil {
					t.Fatalf("want %d: after %d bytes: %v", c.code, sent, err)
				}
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != c.code || !res.Close {
				t.Errorf("got %v %v, want %d and the connection closed", res, err, c.code)
			}
		}
	}
}

func TestServer_BoundsConnectionsAndTime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.MaxConnections = 2 })
	h := b.server.http
	if h.ReadHeaderTimeout != 5*time.Second || h.ReadTimeout != readTimeout || h.IdleTimeout != time.Minute || h.MaxHeaderBytes != 12<<10 ||
		h.WriteTimeout < h.ReadTimeout+b.server.config.AnswerTimeout {
		t.Errorf("got %+v", h)
	}
	get := "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
	first, second := b.dial(), b.dial()
	for _, conn := range []net.Conn{first, second} {
		_, _ = io.WriteString(conn, get)
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
	}
	third := b.dial()
	_, _ = io.WriteString(third, get)
	_ = third.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := third.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the third connection of two was served: %v", err)
	}
	_ = first.Close()
	_ = third.SetReadDeadline(time.Now().Add(patience))
	if res, err := http.ReadResponse(bufio.NewReader(third), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("after the first ended: got %v %v, want 200", res, err)
	}
}

// Slow senders are cut off, within the headers and within the body, and hold no
// connection to Postgres meanwhile: who is quick pays beside them.
func TestServer_SlowSendersAreCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	const senders = 200
	ended := make(chan error, senders)
	for i := range senders {
		conn := b.dial()
		text := "POST /v1/payments HTTP/1.1\r\nHost: x\r\n"
		if i%2 == 0 {
			text += "Content-Type: application/json\r\nAuthorization: Bearer " + shopToken + "\r\nIdempotency-Key: slow\r\nContent-Length: 1000\r\n\r\n{"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		go func() { // ends when the server closes the connection, or at the deadline
			_, err := io.Copy(io.Discard, conn)
			ended <- err
		}()
	}
	for i := range 20 {
		if r := b.post(fmt.Sprint("quick", i), payment("shop:1", "x", 1)); r.code != 201 {
			t.Errorf("beside slow senders: got %s, want 201", r)
		}
	}
	if n := b.server.door.db.pool.Stat().AcquiredConns(); n > 1 { // the watch may look
		t.Errorf("slow senders hold %d connections to Postgres", n)
	}
	for range senders {
		if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a slow sender was not cut off")
		}
	}
}

// HTTP/2 without TLS is not spoken.
func TestServer_SpeaksNoHTTP2(t *testing.T) {
	t.Parallel()
	b := setup(t)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h2 := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	if res, err := h2.Get(b.base + "/openapi.json"); err == nil {
		_ = res.Body.Close()
		t.Errorf("got %d by HTTP/%d, want an error", res.StatusCode, res.ProtoMajor)
	}
	all := b.sendRaw("upgrade", "GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
	if !bytes.HasPrefix(all, []byte("HTTP/1.1 200")) {
		t.Errorf("upgrade: got %.80s, want an answer by HTTP/1.1", all)
	}
}
