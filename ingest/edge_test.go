package ingest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
)

func dial(t *testing.T, b *bundle) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(slowest))
	return conn
}

func readAnswer(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	return res
}

// A sender that writes all of a large body before it reads must find the answer, not a
// reset connection.
func TestReceive_TooLargeIsAnsweredBeforeTheConnectionCloses(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	const size = 12 << 20
	for _, head := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n", size),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size),
	} {
		conn := dial(t, b)
		if _, err := io.WriteString(conn, "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+head); err != nil {
			t.Fatal(err)
		}
		piece := []byte(strings.Repeat("x", 64<<10))
		for sent := 0; sent < size; sent += len(piece) {
			if _, err := conn.Write(piece); err != nil {
				t.Fatalf("after %d bytes: %v", sent, err)
			}
		}
		res := readAnswer(t, conn)
		if res.StatusCode != 413 || !res.Close {
			t.Errorf("got %d, close %v, want 413 and the connection closed", res.StatusCode, res.Close)
		}
		if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "body-too-large") {
			t.Errorf("got %q, %v", body, err)
		}
	}
	if used := b.server.budget.used.Load(); used != 0 {
		t.Errorf("got %d bytes in flight, want 0", used)
	}
}

func TestReceive_AsksNotForABodyItWillNotTake(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	conn := dial(t, b)
	if _, err := io.WriteString(conn, "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if res := readAnswer(t, conn); res.StatusCode != 413 {
		t.Errorf("got %d, want 413 and no 100", res.StatusCode)
	}
}

// What net/http itself refuses never reaches us; what it lets through is ours.
func TestReceive_RawRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	head := "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for name, tc := range map[string]struct {
		text string
		code int
		then func(net.Conn)
	}{
		"two lengths":               {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, nil},
		"length and chunked":        {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400, nil},
		"unknown transfer encoding": {head + "Transfer-Encoding: gzip\r\n\r\n", 501, nil},
		"no length":                 {head + "\r\n", 400, nil},
		"body ends early":           {head + "Content-Length: 10\r\n\r\n{}", 400, func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }},
		"broken chunk":              {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, nil},
		"signature in a trailer":    {head + "Trailer: X-Signature\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Signature: 00\r\n\r\n", 400, nil},
		"method override":           {"GET /webhooks/acme HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST\r\n\r\n", 405, nil},
		"absolute target":           {"POST http://x/webhooks/nobody HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, nil},
		"header within 16 KiB":      {head + "X-Large: " + strings.Repeat("x", 15<<10) + "\r\n\r\n", 400, nil},
		"header over 16 KiB":        {head + "X-Large: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", 431, nil},
		"huge header":               {head + "X-Large: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, nil},
		"encoded path":              {"POST /webhooks/%61cme HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, nil},
	} {
		conn := dial(t, b)
		if _, err := io.WriteString(conn, tc.text); err != nil {
			t.Fatal(err)
		}
		if tc.then != nil {
			tc.then(conn)
		}
		if res := readAnswer(t, conn); res.StatusCode != tc.code {
			t.Errorf("%s: got %d, want %d", name, res.StatusCode, tc.code)
		}
	}
	if got := len(b.records()); got != 0 {
		t.Errorf("got %d records, want none", got)
	}
}

func TestServer_HasTimeouts(t *testing.T) {
	t.Parallel()
	h := setup(t, options{}).server.http
	if h.ReadHeaderTimeout != 5*time.Second || h.ReadTimeout != 15*time.Second || h.IdleTimeout != time.Minute || h.MaxHeaderBytes != 12<<10 ||
		h.WriteTimeout < h.ReadTimeout+time.Second {
		t.Errorf("got %+v", h)
	}
}

// Slow senders hold what they sent, not what they promise.
func TestReceive_PromisedBytesAreNotHeld(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.MaxInflightBytes = 3 << 20 }})
	for range 100 {
		conn := dial(t, b)
		if _, err := io.WriteString(conn, "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, time.Minute, func() error {
		if used := b.server.budget.used.Load(); used < 100*firstPiece {
			return fmt.Errorf("%d bytes in flight", used)
		}
		return nil
	})
	if a := b.do(b.signed("acme", "", event("quick"))); a.code != 202 {
		t.Errorf("got %d %s beside 100 slow senders, want 202", a.code, a.body)
	}
}

// The smallest budget that is allowed takes the largest body that is allowed.
func TestReceive_LargestBodyFitsTheSmallestBudget(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) {
		c.MaxInflightBytes, c.MaxBufferedBytes = 2*c.MaxBodyBytes+recordOverheadBytes, c.MaxBodyBytes+recordOverheadBytes
	}})
	for i, known := range []bool{true, false} {
		body := fmt.Sprintf(`{"id":"l%d","pad":"`, i)
		body += strings.Repeat("x", 1<<20-len(body)-2) + `"}`
		r := b.signed("acme", "", body)
		if !known {
			r = chunked(r)
		}
		if a := b.do(r); a.code != 202 {
			t.Errorf("length known %v: got %d %s, want 202", known, a.code, a.body)
		}
		if a := b.do(b.signed("acme", "", body+" ")); a.code != 413 {
			t.Errorf("one byte more: got %d, want 413", a.code)
		}
	}
	testkit.Eventually(t, time.Minute, func() error {
		if used := b.server.budget.used.Load(); used != 0 {
			return fmt.Errorf("%d bytes in flight", used)
		}
		return nil
	})
}

func TestReceive_TooManyBytesInFlightIs503(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.MaxBodyBytes, c.MaxInflightBytes = 256<<10, 600<<10 }})
	arrived, release := b.hold()
	large := func(id string) string { return `{"id":"` + id + `","pad":"` + strings.Repeat("x", 200<<10) + `"}` }
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if a := b.do(b.signed("acme", "", large(fmt.Sprint("l", i)))); a.code != 202 {
				t.Errorf("got %d, want 202", a.code)
			}
		})
		if i == 0 {
			<-arrived
		}
	}
	testkit.Eventually(t, time.Minute, func() error {
		if n := b.server.client.BufferedProduceRecords(); n != 2 {
			return fmt.Errorf("%d records are buffered", n)
		}
		return nil
	})
	a := b.do(b.signed("acme", "", large("third")))
	if a.code != 503 || problemOf(t, a) != "overloaded" || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 503 overloaded", a.code, a.body)
	}
	release()
	wg.Wait()
}

// A stop under load: whatever was answered 2xx is in the topic, and all that is answered
// at all is 2xx or 503.
func TestRun_StopsUnderLoadWithoutLosingAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, options{stopped: true, config: func(c *Config) { c.ShutdownDelay = 100 * time.Millisecond }})
	var mu sync.Mutex
	accepted := map[string]bool{}
	var n atomic.Int64
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	defer client.CloseIdleConnections()
	for range 50 {
		wg.Go(func() {
			for {
				id := fmt.Sprint("d", n.Add(1))
				a, err := send(client, b.signed("acme", "", event(id)))
				switch {
				case err != nil:
					return // the door is closed
				case a.code == 202:
					mu.Lock()
					accepted[id] = true
					mu.Unlock()
				case a.code != 503:
					t.Errorf("got %d %s, want 202 or 503", a.code, a.body)
				}
			}
		})
	}
	testkit.Eventually(t, time.Minute, func() error {
		if b.counter("accepted", "acme") < 500 {
			return fmt.Errorf("%v events", b.counter("accepted", "acme"))
		}
		return nil
	})
	b.stop()
	testkit.Eventually(t, time.Minute, func() error {
		if b.server.Ready() == nil {
			return fmt.Errorf("still ready")
		}
		return nil
	})
	select {
	case err := <-b.ended:
		if err != nil {
			t.Errorf("run: got %v, want nil", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no end within a minute")
	}
	wg.Wait()
	stored := map[string]bool{}
	for _, r := range b.records() {
		stored[string(r.Key)] = true
	}
	for id := range accepted {
		if !stored[id] {
			t.Errorf("event %s was answered 2xx and is not in the topic", id)
		}
	}
	t.Logf("%d accepted, %d stored", len(accepted), len(stored))
}

// Deliveries in hand when the stop comes are answered with what happens to them.
func TestRun_StopWaitsForDeliveriesInHand(t *testing.T) {
	t.Parallel()
	b := setup(t, options{stopped: true})
	arrived, release := b.hold()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if a := b.do(b.signed("acme", "", event(fmt.Sprint("h", i)))); a.code != 202 {
				t.Errorf("got %d %s, want 202", a.code, a.body)
			}
		})
	}
	<-arrived
	testkit.Eventually(t, time.Minute, func() error {
		if n := b.server.client.BufferedProduceRecords(); n != 20 {
			return fmt.Errorf("%d records are buffered", n)
		}
		return nil
	})
	b.stop()
	testkit.Eventually(t, time.Minute, func() error {
		if conn, err := net.Dial("tcp", b.server.Addr().String()); err == nil {
			conn.Close()
			return fmt.Errorf("new connections are still accepted")
		}
		return nil
	})
	release()
	wg.Wait()
	if err := <-b.ended; err != nil {
		t.Errorf("run: got %v, want nil", err)
	}
}

// Secrets, credentials and bodies appear neither in the topic nor in the log, whatever
// is sent.
func TestReceive_CredentialsAndBodiesStayOut(t *testing.T) {
	t.Parallel()
	b := setup(t, options{level: zerolog.TraceLevel})
	const token, pan = "canary-token-4411", "canary-pan-4242424242424242"
	body := strings.Replace(event("canary"), "{", `{"pan":"`+pan+`",`, 1)
	var signatures []string
	for _, source := range []string{"stripe", "acme", "standard"} {
		for _, good := range []bool{true, false} {
			r := b.signed(source, "msg_canary", body)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("X-Callback-Token", token)
			r.Header.Set("Cookie", "session="+token)
			for _, name := range []string{"X-Signature", "Stripe-Signature", "Webhook-Signature"} {
				if value := r.Header.Get(name); value != "" {
					signatures = append(signatures, value)
				}
			}
			if !good {
				r = withBody(r, body+" ")
			}
			if a := b.do(r); (a.code < 300) != good {
				t.Errorf("%s: got %d, good signature %v", source, a.code, good)
			}
		}
	}
	if a := b.do(b.signed("acme", "", `{"id":"`+pan+"é"+`"}`)); a.code != 400 {
		t.Errorf("got %d, want 400", a.code)
	}
	secrets := []string{stripeSecret, acmeSecret, oldAcmeSecret, standardSecret, token, standardSecret[len("whsec_"):], "canary-standard"}
	for _, r := range b.records() {
		for _, h := range r.Headers {
			for _, secret := range secrets {
				if strings.Contains(h.Key, secret) || strings.Contains(string(h.Value), secret) {
					t.Errorf("record %s: header %s holds %q", r.Key, h.Key, secret)
				}
			}
		}
		for _, secret := range secrets {
			if strings.Contains(string(r.Value), secret) {
				t.Errorf("record %s: value holds %q", r.Key, secret)
			}
		}
	}
	log := b.logs.String()
	for _, word := range append(append(secrets, signatures...), pan) {
		if strings.Contains(log, word) {
			t.Errorf("the log holds %q", word)
		}
	}
}

// No text of a sender can forge a line of the log.
func TestReceive_LogLinesCannotBeForged(t *testing.T) {
	t.Parallel()
	b := setup(t, options{level: zerolog.TraceLevel})
	const forged = "\n{\"level\":\"error\",\"message\":\"forged\"}\n"
	quoted, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	b.do(b.signed("acme", "", `{"id":"ok","type":"a\\n{\"level\":\"error\"}"}`))
	b.do(b.signed("acme", "", `{"id":`+string(quoted)+`}`))
	b.do(b.signed("acme", "", `{"id":"ok2","type":`+string(quoted)+`}`))
	b.do(withPath(b.request("acme", "{}"), "/webhooks/%0A%7B%22level%22%3A%22error%22%7D"))
	b.do(with(b.signed("acme", "", "{}"), "Content-Type", "application/json; x=\"\\\n{}\""[:19]))
	known := map[string]bool{
		"delivery refused": true, "event accepted": true, "receiving deliveries": true, "secret loaded": true,
	}
	for line := range strings.Lines(b.logs.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("line %q: %v", line, err)
			continue
		}
		message, _ := entry["message"].(string)
		if !known[message] && !strings.HasPrefix(message, "secret ") {
			t.Errorf("got a line that says %q", message)
		}
	}
}

// A flood of refusals is counted in full and logged in part.
func TestReceive_FloodIsLoggedInPart(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	for range 500 {
		b.do(b.request("acme", "{}"))
	}
	if got := b.counter("refusals", "acme", "signature_missing_header"); got != 500 {
		t.Errorf("got %v counted, want 500", got)
	}
	if got := strings.Count(b.logs.String(), "delivery refused"); got == 0 || got > 250 {
		t.Errorf("got %d lines, want some and far from 500", got)
	}
}
