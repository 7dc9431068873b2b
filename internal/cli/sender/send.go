package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

// Results of an attempt.
const (
	ok      = "ok"
	reject  = "reject"
	unknown = "unknown"
)

// attemptTimeout is beyond the receiver's ack timeout: it answers first.
const attemptTimeout = 30 * time.Second

// First and longest pause before an unanswered delivery is sent again; each pause is
// twice the one before, and drawn from its upper half.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// run is one run of Send.
type run struct {
	source  *provider.Source
	secret  provider.Secret
	url     string
	opts    *Options
	client  *http.Client
	history *history
	tally   *tally
	// attempts counts deliveries of each event.
	attempts []atomic.Int64
}

// Send delivers what opts say and returns what came of it. historyFile may be empty.
// When ctx ends, deliveries under way are waited for and the summary is of what was
// done. The error is of the run itself; refusals and silence are in the summary.
func Send(ctx context.Context, source *provider.Source, opts Options, historyFile string) (Summary, error) {
	if err := opts.check(); err != nil {
		return Summary{}, err
	}
	h, err := openHistory(historyFile)
	if err != nil {
		return Summary{}, err
	}
	summary, err := send(ctx, source, opts, h)
	if closeErr := h.close(); err == nil {
		err = closeErr
	}
	return summary, err
}

func send(ctx context.Context, source *provider.Source, opts Options, h *history) (Summary, error) {
	secret, err := secretOf(source, time.Now())
	if err != nil {
		return Summary{}, err
	}
	if _, err := newEvent(source, &opts, 0); err != nil {
		return Summary{}, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: opts.Concurrency, MaxConnsPerHost: opts.Concurrency, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	r := &run{
		source: source, secret: secret, opts: &opts, history: h,
		url:      strings.TrimSuffix(opts.URL, "/") + "/webhooks/" + source.Name(),
		client:   &http.Client{Transport: transport, Timeout: attemptTimeout},
		tally:    newTally(opts.Count),
		attempts: make([]atomic.Int64, opts.Count),
	}
	err = r.deliverAll(ctx)
	return r.tally.summary(source.Name(), r.url, &opts), err
}

// deliverAll gives the schedule to the posters, each delivery at its time. A failure of
// one poster stops all.
func (r *run) deliverAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan int)
	var posters sync.WaitGroup
	for range r.opts.Concurrency {
		posters.Go(func() { // ends when work is closed
			for i := range work {
				if err := r.deliver(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	start := time.Now()
	for k, i := range schedule(r.opts) {
		if !r.pace(ctx, start, k) {
			break
		}
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	posters.Wait()
	r.tally.took(time.Since(start))
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// pace waits until delivery k is due and reports whether it still is to be sent.
func (r *run) pace(ctx context.Context, start time.Time, k int) bool {
	if r.opts.Rate > 0 {
		due := start.Add(time.Duration(float64(k) / r.opts.Rate * float64(time.Second)))
		return sleep(ctx, time.Until(due))
	}
	return ctx.Err() == nil
}

// deliver sends event i until the answer is clear, or once without Retry. The error is
// of the run: an event that cannot be composed, a history that cannot be written.
func (r *run) deliver(ctx context.Context, i int) error {
	e, err := newEvent(r.source, r.opts, i)
	if err != nil {
		return err
	}
	first, pause := time.Now(), firstPause
	for try := 0; ; try++ {
		line, err := r.attempt(e)
		if err != nil {
			return err
		}
		if err := r.history.write(line.Line); err != nil {
			return err
		}
		r.tally.add(line, try > 0)
		if line.Result != unknown || !r.opts.Retry || time.Since(first) > r.opts.GiveUp {
			return nil
		}
		if !sleep(ctx, max(line.retryAfter, pause/2+rand.N(pause/2))) {
			return nil
		}
		pause = min(2*pause, longestPause)
	}
}

// answered is a line with what the history does not keep.
type answered struct {
	Line
	latency    time.Duration
	retryAfter time.Duration
	err        error
}

// attempt signs and posts once. It does not end with the run: an attempt cut short
// would be unknown, and it takes a moment only.
func (r *run) attempt(e event) (answered, error) {
	t0 := time.Now()
	signed, err := signature.Sign(r.source.Signature(), r.secret, signature.Message{
		Method: e.delivery.Method, Query: e.delivery.Query, Header: e.delivery.Header, Body: e.delivery.Body, At: t0,
	})
	if err != nil {
		return answered{}, fmt.Errorf("%w: `hookledger sources check --source %s` checks a delivery that was captured", err, r.source.Name())
	}
	req, err := newRequest(r.url, signed)
	if err != nil {
		return answered{}, err
	}
	a := answered{Line: Line{
		Seed: r.opts.Seed, I: e.i, Attempt: r.attempts[e.i].Add(1), T0: stamp(t0), Source: r.source.Name(),
		EventID: e.fact.EventID, Account: e.fact.Account, Amount: e.fact.Amount, Currency: e.fact.Currency,
		SHA256: e.sha256, Result: unknown,
	}}
	resp, err := r.client.Do(req)
	if err != nil {
		a.err = err
	} else {
		_, a.err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		a.HTTP = resp.StatusCode
		if a.err == nil { // half an answer is none
			a.Result = result(resp.StatusCode)
		}
		if seconds, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil && a.Result == unknown {
			a.retryAfter = min(seconds, longestPause)
		}
	}
	t1 := time.Now()
	a.T1, a.latency = stamp(t1), t1.Sub(t0)
	return a, nil
}

func newRequest(url string, m signature.Message) (*http.Request, error) {
	if m.Query != "" {
		url += "?" + m.Query
	}
	method := m.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header = m.Header
	return req, nil
}

// result says what an HTTP status means for the event.
func result(status int) string {
	switch {
	case status >= 200 && status < 300:
		return ok
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return unknown
	case status >= 400 && status < 500:
		return reject
	}
	return unknown
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// sleep waits for d and reports whether ctx is still going on.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
