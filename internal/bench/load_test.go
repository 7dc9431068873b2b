package bench

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// numbers gives each event of this process a number of its own.
var numbers atomic.Uint64

// caller posts over one connection that it keeps, one request at a time. It is as little
// client as HTTP/1.1 allows, because it shares the processors with what it measures.
type caller struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	// last says that the server closes the connection after its answer.
	last bool
}

func dial(addr string) (*caller, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &caller{conn: conn, in: bufio.NewReaderSize(conn, 4096)}, nil
}

func (c *caller) close() { _ = c.conn.Close() }

// post sends a request whose head has everything but the length, and returns the status.
func (c *caller) post(head string, body []byte) (int, error) {
	c.out = append(append(c.out[:0], head...), "Content-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), body...)
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("answer begins with %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length := 0
	c.last = false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return 0, err
			}
		case "Connection":
			c.last = strings.TrimSpace(value) == "close"
		}
	}
	_, err = io.CopyN(io.Discard, c.in, int64(length))
	return status, err
}

// webhook signs and posts events.
type webhook struct {
	*caller
	host string
	body body
	mac  hash.Hash
}

func dialWebhook(addr string) (*webhook, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	return &webhook{caller: c, host: addr, body: newBody(), mac: hmac.New(sha256.New, []byte(stripeSecret))}, nil
}

// send posts event n and wants a 200.
func (w *webhook) send(n uint64) error {
	status, err := w.deliver(n)
	if err == nil && status != 200 {
		err = fmt.Errorf("answered %d", status)
	}
	return err
}

// deliver posts event n and returns the status.
func (w *webhook) deliver(n uint64) (int, error) {
	w.body.set(n, uniform(n))
	now := strconv.FormatInt(time.Now().Unix(), 10)
	w.mac.Reset()
	w.mac.Write([]byte(now + "."))
	w.mac.Write(w.body)
	head := "POST /webhooks/stripe HTTP/1.1\r\nHost: " + w.host + "\r\nContent-Type: application/json\r\nStripe-Signature: t=" + now +
		",v1=" + hex.EncodeToString(w.mac.Sum(nil)) + "\r\n"
	return w.post(head, w.body)
}

// loaded is what a load saw.
type loaded struct {
	done    int
	seconds float64
	// ms are the times of the answers in milliseconds.
	ms []float64
}

func (l loaded) rate() float64 { return float64(l.done) / l.seconds }

// load has callers call for a while, each at least once. Each makes its own connection;
// calls before the warm-up is over do not count.
func load(callers int, warmUp, span time.Duration, connect func() (call func() error, end func(), err error)) (loaded, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all loaded
	var first error
	begin := time.Now().Add(warmUp)
	end := begin.Add(span)
	for range callers {
		wg.Go(func() {
			call, hangUp, err := connect()
			var ms []float64
			if err == nil {
				defer hangUp()
			}
			for err == nil {
				from := time.Now()
				if !from.Before(end) && len(ms) > 0 { // one answer each, however slow the machine
					break
				}
				if err = call(); err == nil && from.After(begin) {
					ms = append(ms, float64(time.Since(from))/float64(time.Millisecond))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.ms, all.done = append(all.ms, ms...), all.done+len(ms)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	all.seconds = time.Since(begin).Seconds()
	return all, first
}

// loadWebhooks has callers post webhooks to an address.
func loadWebhooks(addr string, callers int, warmUp, span time.Duration) (loaded, error) {
	return load(callers, warmUp, span, func() (func() error, func(), error) {
		w, err := dialWebhook(addr)
		if err != nil {
			return nil, nil, err
		}
		return func() error { return w.send(numbers.Add(1)) }, w.close, nil
	})
}
