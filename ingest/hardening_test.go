package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// smuggled is a whole delivery with a right signature: the attacker may have got it
// anywhere. Whoever is in front of us never saw it as a request.
func (b *bundle) smuggled() string {
	b.t.Helper()
	r := b.signed("acme", "", event("smuggled"))
	body := event("smuggled")
	return fmt.Sprintf("POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
		r.Header.Get("X-Signature"), len(body), body)
}

// Each vector hides a delivery in a request whose end two parsers may see in two places.
// The hidden one must never be read as a request: one answer, and the connection ends.
func TestReceive_HiddenRequestsAreNeverRead(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	hidden := b.smuggled()
	head := "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	whole := fmt.Sprintf("Content-Length: %d\r\n", len("0\r\n\r\n")+len(hidden))
	for name, text := range map[string]string{
		// The one in front believes the length, we the chunks, and the other way round.
		"length, then chunked":          head + whole + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked, then length":          head + "Transfer-Encoding: chunked\r\n" + whole + "\r\n0\r\n\r\n" + hidden,
		"chunked, short length":         head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked alone":                 head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked in another case":       head + whole + "Transfer-Encoding: cHuNkEd\r\n\r\n0\r\n\r\n" + hidden,
		"chunked with a space in front": head + whole + "Transfer-Encoding:  chunked \r\n\r\n0\r\n\r\n" + hidden,
		"to an unknown path":            strings.Replace(head, "/webhooks/acme", "/", 1) + whole + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"by GET":                        strings.Replace(head, "POST", "GET", 1) + whole + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"HTTP/1.0 chunked":              strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + whole + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		// Transfer-Encoding in disguise: some parsers see it, some do not.
		"space before the colon":    head + whole + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"vertical tab":              head + whole + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + hidden,
		"another coding first":      head + whole + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"another coding last":       head + whole + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
		"twice":                     head + whole + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" + hidden,
		"xchunked":                  head + whole + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"quoted":                    head + whole + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + hidden,
		"in a header of its own CR": head + whole + "X: x\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"in a folded line":          head + "Connection: close\r\n" + whole + "X: x\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"folded coding":             head + whole + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
		"NUL in the name":           head + whole + "Transfer\x00-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		// Lengths that parsers read in different ways.
		"two lengths":          head + "Content-Length: 0\r\n" + whole + "\r\n" + hidden,
		"two lengths, one row": head + fmt.Sprintf("Content-Length: 0, %d\r\n\r\n", len(hidden)) + hidden,
		"plus":                 head + "Content-Length: +0\r\n\r\n" + hidden,
		"minus":                head + "Content-Length: -0\r\n\r\n" + hidden,
		"hexadecimal":          head + "Content-Length: 0x0\r\n\r\n" + hidden,
		"underscore":           head + "Content-Length: 0_0\r\n\r\n" + hidden,
		"fraction":             head + "Content-Length: 0.0\r\n\r\n" + hidden,
		"empty":                head + "Content-Length:\r\n\r\n" + hidden,
		"beyond 64 bits":       head + "Content-Length: 18446744073709551616\r\n\r\n" + hidden,
		"space in the number":  head + "Content-Length: 0 0\r\n\r\n" + hidden,
		"length, NUL":          head + "Content-Length: 0\x00\r\n\r\n" + hidden,
		"length without colon": head + "Content-Length 0\r\n\r\n" + hidden,
		// Chunks that parsers read in different ways.
		"chunk size beyond 64 bits":  head + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n" + hidden,
		"negative chunk size":        head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + hidden,
		"chunk size with 0x":         head + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + hidden,
		"bare LF after the size":     head + "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + hidden,
		"bare LF in an extension":    head + "Transfer-Encoding: chunked\r\n\r\n2;x\n{}\r\n0\r\n\r\n" + hidden,
		"chunk longer than its size": head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n" + hidden,
		"length in a trailer":        head + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n" + hidden,
		// Requests that name two places, or none.
		"two hosts":      "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nHost: y\r\n" + whole + "\r\n" + hidden,
		"no host":        "POST /webhooks/acme HTTP/1.1\r\n" + whole + "\r\n" + hidden,
		"no version":     "POST /webhooks/acme\r\n" + hidden,
		"HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
	} {
		conn := dial(t, b)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		all, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open", name)
		}
		if n := bytes.Count(all, []byte("HTTP/1.")); n > 1 || bytes.HasPrefix(all, []byte("HTTP/1.1 2")) {
			t.Errorf("%s: got %d answers, want one that is no success:\n%s", name, n, all)
		}
	}
	// The same delivery, sent as itself, is taken: the vectors failed for what they are.
	conn := dial(t, b)
	if _, err := io.WriteString(conn, strings.Replace(hidden, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)); err != nil {
		t.Fatal(err)
	}
	if res := readAnswer(t, conn); res.StatusCode != 202 {
		t.Errorf("the delivery by itself: got %d, want 202", res.StatusCode)
	}
	if got := len(b.records()); got != 1 {
		t.Errorf("got %d records, want the one that was sent openly", got)
	}
}

// Keep-alive is HTTP/1.1's: three deliveries on one connection, in order.
func TestReceive_KeepsConnections(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	conn := dial(t, b)
	reader := bufio.NewReader(conn)
	for range 3 {
		if _, err := io.WriteString(conn, b.smuggled()); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != 202 || res.Close {
			t.Errorf("got %d, closing %t, want 202 and an open connection", res.StatusCode, res.Close)
		}
	}
}

// HTTP/2 without TLS, by upgrade or at once, is not spoken.
func TestReceive_SpeaksNoHTTP2(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	conn := dial(t, b)
	_, _ = io.WriteString(conn, "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n\r\n")
	if res := readAnswer(t, conn); res.StatusCode != 400 && res.StatusCode != 415 || res.ProtoMajor != 1 {
		t.Errorf("upgrade: got %d by HTTP/%d, want a plain refusal", res.StatusCode, res.ProtoMajor)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	if res, err := client.Do(b.signed("acme", "", event("h2c"))); err == nil {
		res.Body.Close()
		t.Errorf("at once: got %d by HTTP/%d, want an error", res.StatusCode, res.ProtoMajor)
	}
}

func TestServer_BoundsConnections(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.MaxConnections = 2 }})
	first, second, third := dial(t, b), dial(t, b), dial(t, b)
	_, _ = second, first
	if _, err := io.WriteString(third, b.smuggled()); err != nil {
		t.Fatal(err)
	}
	_ = third.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := third.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the third connection of two was served: %v", err)
	}
	first.Close()
	_ = third.SetReadDeadline(time.Now().Add(time.Minute))
	if res := readAnswer(t, third); res.StatusCode != 202 {
		t.Errorf("after the first ended: got %d, want 202", res.StatusCode)
	}
}

// slowSenders is how many connections send a byte a second, half of them within the
// headers, half within the body.
const slowSenders = 2000

// slowest bounds every wait: far beyond what the server allows, on a machine that is busy.
const slowest = 3 * time.Minute

// Slow senders are cut off, within the headers and within the body (after how long is
// TestServer_HasTimeouts'), and good deliveries are taken beside them.
func TestServer_SlowSendersAreCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	_, left := b.besideSlowSenders(func() {
		for i := range 20 {
			if a := b.do(b.signed("acme", "", event(fmt.Sprint("good", i)))); a.code != 202 {
				t.Errorf("beside slow senders: got %d, want 202", a.code)
			}
		}
	})
	if left != 0 {
		t.Errorf("%d of %d slow connections stayed open", left, slowSenders)
	}
	if used := b.server.budget.used.Load(); used != 0 {
		t.Errorf("%d bytes of slow bodies are still reserved", used)
	}
}

// BenchmarkSlowSenders tells what slow senders cost the others, and when they are gone.
//
//	go test ./ingest -run '^$' -bench SlowSenders -benchtime 1x
func BenchmarkSlowSenders(b *testing.B) {
	s := setup(b, options{})
	for b.Loop() {
		before := s.p99(2 * time.Second)
		var during time.Duration
		took, left := s.besideSlowSenders(func() { during = s.p99(3 * time.Second) })
		b.ReportMetric(float64(before.Microseconds())/1000, "p99-before-ms")
		b.ReportMetric(float64(during.Microseconds())/1000, "p99-beside-ms")
		b.ReportMetric(took.Seconds(), "gone-after-s")
		b.ReportMetric(float64(left), "left")
	}
}

// besideSlowSenders runs f while slow senders send, and then waits until the server has
// closed their connections. It returns how long that took and how many are left.
func (b *bundle) besideSlowSenders(f func()) (time.Duration, int64) {
	t := b.t
	t.Helper()
	var open atomic.Int64
	var conns []net.Conn
	began := time.Now()
	for i := range slowSenders {
		conn, err := net.Dial("tcp", b.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		text := "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\n"
		if i%2 == 0 {
			text += "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	open.Store(int64(len(conns)))
	ended := make(chan struct{})
	var watching sync.WaitGroup
	for _, conn := range conns {
		watching.Go(func() {
			_ = conn.SetReadDeadline(began.Add(slowest))
			_, err := io.Copy(io.Discard, conn) // until the server closes it
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				open.Add(-1)
			}
		})
	}
	go func() { // ends with ended
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for _, conn := range conns {
					_, _ = conn.Write([]byte("x"))
				}
			case <-ended:
				return
			}
		}
	}()
	f()
	watching.Wait()
	close(ended)
	return time.Since(began), open.Load()
}

// p99 is that of good deliveries by four callers for a while.
func (b *bundle) p99(lasts time.Duration) time.Duration {
	t := b.t
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var callers sync.WaitGroup
	until := time.Now().Add(lasts)
	for c := range 4 {
		callers.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for i := 0; time.Now().Before(until); i++ {
				r := b.signed("acme", "", event(fmt.Sprintf("good_%d_%d_%d", until.UnixNano(), c, i)))
				began := time.Now()
				a, err := send(client, r)
				if err != nil || a.code != 202 {
					t.Errorf("a good delivery: got %d (%v), want 202", a.code, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	if len(took) < 50 {
		t.Fatalf("only %d good deliveries in %s", len(took), lasts)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
