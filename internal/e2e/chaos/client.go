package chaos

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hookledger/internal/e2e/checker"
)

// callers deliver at once.
const callers = 12

// attemptTimeout is beyond the ack timeout and short enough for a run.
const attemptTimeout = 4 * time.Second

// client makes deliveries, each until its answer is known, and keeps a history.
type client struct {
	http    *http.Client
	targets []string // of the receivers
	secrets map[string]string

	acks atomic.Int64 // answers 2xx so far
	open atomic.Int64 // deliveries without a known answer

	mu      sync.Mutex
	history []checker.Delivery

	under sync.WaitGroup
}

func newClient(targets []string, secrets map[string]string) *client {
	return &client{
		http:    &http.Client{Timeout: attemptTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: callers}},
		targets: targets, secrets: secrets,
	}
}

// run makes all deliveries, perSecond together, until ctx ends. It returns when each has
// an answer.
func (c *client) run(ctx context.Context, all []*delivery, perSecond int) {
	c.open.Add(int64(len(all)))
	work := make(chan int)
	var posters sync.WaitGroup
	for range callers {
		posters.Go(func() { // ends when work is closed
			for i := range work {
				c.deliver(ctx, i, all[i])
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range all {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	posters.Wait()
}

// deliver posts until the answer is known. As a provider does, only sooner.
func (c *client) deliver(ctx context.Context, i int, d *delivery) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		tell := d.tell
		tell.I, tell.Attempt = i, int64(attempt)
		tell.T0 = time.Now()
		tell.HTTP, _ = post(ctx, c.http, c.targets[(i+attempt)%len(c.targets)]+"/webhooks/"+tell.Source, d.sign(c.secrets[tell.Source]), d.body)
		tell.T1 = time.Now()
		switch tell.HTTP / 100 {
		case 2:
			tell.Result = checker.OK
			c.acks.Add(1)
		case 4:
			tell.Result = checker.Reject
		default:
			tell.Result = checker.Unknown
		}
		c.mu.Lock()
		c.history = append(c.history, tell)
		c.mu.Unlock()
		if tell.Result != checker.Unknown {
			c.open.Add(-1)
			return
		}
		pause(ctx, 50*time.Millisecond*time.Duration(1+min(attempt, 5)))
	}
}

// post sends a request once and reads the whole answer. The status is 0 if it did not
// come whole.
func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, ""
	}
	// What the transport repeats by itself would not be in the history.
	req.GetBody = nil
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// told is the history so far.
func (c *client) told() []checker.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]checker.Delivery(nil), c.history...)
}
