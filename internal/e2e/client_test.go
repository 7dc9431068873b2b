package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookledger/internal/e2e/checker"
)

// history is what the clients saw, in the order in which answers came. Safe for
// concurrent use.
type history struct {
	mu  sync.Mutex
	all []checker.Delivery
}

func (h *history) add(d checker.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
}

// snapshot writes the history as a file and reads it back as the checker does, so
// that what is judged is what would be kept.
func (h *history) snapshot(tb testing.TB) []checker.Delivery {
	tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	path := filepath.Join(tb.TempDir(), "history.jsonl")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range h.all {
		if err := enc.Encode(&h.all[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	read, err := checker.ReadHistory(&b)
	if err != nil {
		tb.Fatal(err)
	}
	return read
}

// read adds what another client wrote.
func (h *history) read(tb testing.TB, path string) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines, err := checker.ReadHistory(f)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	for _, d := range lines {
		h.add(d)
	}
}

// since counts answers that were read after a moment, by result.
func (h *history) since(at time.Time) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[string]int{}
	for i := range h.all {
		if h.all[i].T1.After(at) {
			n[h.all[i].Result]++
		}
	}
	return n
}

// firstOK is when the first 2xx after a moment was read, zero if none was.
func (h *history) firstOK(after time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first time.Time
	for i := range h.all {
		// A request that began before may have been answered by what went away.
		if d := &h.all[i]; d.Result == checker.OK && d.T1.After(after) && (first.IsZero() || d.T1.Before(first)) {
			first = d.T1
		}
	}
	return first
}

// answer is what one delivery was answered with.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// errAnswer says what came instead of the answer that was wanted.
func errAnswer(a answer) error {
	if a.err != nil {
		return a.err
	}
	return fmt.Errorf("answer %d: %s", a.status, a.body)
}

// sign makes the signature headers, by hand and from the providers' documentation:
// Stripe's "t.body" under the whole text of the secret, acme's plain body.
func sign(source, secret string, body []byte, now time.Time) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	mac := hmac.New(sha256.New, []byte(secret))
	switch source {
	case sourceStripe:
		t := strconv.FormatInt(now.Unix(), 10)
		mac.Write([]byte(t + "."))
		mac.Write(body)
		h.Set("Stripe-Signature", "t="+t+",v1="+hex.EncodeToString(mac.Sum(nil)))
	case sourceAcme:
		mac.Write(body)
		h.Set("X-Acme-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return h
}

// load delivers events until each delivery has an answer that is not unknown.
type load struct {
	s       *system
	seed    uint64
	events  []event
	repeats int // deliveries of each event
	callers int
	// perSecond paces all callers together; zero: as fast as they can.
	perSecond int
	client    *http.Client

	fed   atomic.Int64 // deliveries begun
	acks  atomic.Int64
	marks sync.Map      // int64 → chan struct{}
	full  chan struct{} // closed by finish: begin no more
	done  chan struct{}
	stop  context.CancelFunc
}

// startLoad begins to deliver; wait ends it.
func (s *system) startLoad(seed uint64, events []event, repeats, callers, perSecond int) *load {
	s.tb.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 4*time.Minute)
	l := &load{
		s: s, seed: seed, events: events, repeats: repeats, callers: callers, perSecond: perSecond,
		client: &http.Client{
			Timeout:   s.opts.ackTimeout + 10*time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: callers},
		},
		full: make(chan struct{}), done: make(chan struct{}), stop: stop,
	}
	s.tb.Logf("load with seed %d: %d events, %d times each, %d callers", seed, len(events), repeats, callers)
	work := make(chan int)
	go l.feed(ctx, work) // ends with its work, or with ctx
	var callersDone sync.WaitGroup
	for range callers {
		callersDone.Go(func() { l.call(ctx, work) }) // ends when work is closed
	}
	go func() { // ends when all callers have
		callersDone.Wait()
		l.client.CloseIdleConnections()
		close(l.done)
	}()
	s.tb.Cleanup(func() { stop(); <-l.done })
	return l
}

// feed hands out deliveries in an order of the seed's.
func (l *load) feed(ctx context.Context, work chan<- int) {
	defer close(work)
	var pace <-chan time.Time
	if l.perSecond > 0 {
		tick := time.NewTicker(time.Second / time.Duration(l.perSecond))
		defer tick.Stop()
		pace = tick.C
	}
	rnd := rand.New(rand.NewPCG(l.seed, streamOrder))
	for _, i := range rnd.Perm(len(l.events) * l.repeats) {
		if pace != nil {
			select {
			case <-pace:
			case <-l.full:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case work <- i:
			l.fed.Add(1)
		case <-l.full:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *load) call(ctx context.Context, work <-chan int) {
	for i := range work {
		e := &l.events[i%len(l.events)]
		for attempt := 0; ; attempt++ {
			targets := l.s.targets()
			d, _ := l.s.deliver(ctx, l.client, targets[(i+attempt)%len(targets)], l.seed, i, e)
			if d.Result == checker.OK {
				l.acked()
			}
			if d.Result != checker.Unknown {
				break
			}
			// As a provider does, only sooner.
			again := time.NewTimer(50 * time.Millisecond * time.Duration(1+min(attempt, 5)))
			select {
			case <-again.C:
				continue
			case <-ctx.Done():
				again.Stop()
			}
			break
		}
	}
}

// acked counts, and wakes who waits for this count.
func (l *load) acked() {
	n := l.acks.Add(1)
	l.marks.Range(func(at, ch any) bool {
		if at.(int64) <= n && l.marks.CompareAndDelete(at, ch) {
			close(ch.(chan struct{}))
		}
		return true
	})
}

// at waits for the n-th acknowledgement of this load.
func (l *load) at(n int) {
	l.s.tb.Helper()
	ch, _ := l.marks.LoadOrStore(int64(n), make(chan struct{}))
	if l.acks.Load() >= int64(n) && l.marks.CompareAndDelete(int64(n), ch) {
		return
	}
	select {
	case <-ch.(chan struct{}):
	case <-l.done:
		if l.acks.Load() < int64(n) {
			l.s.tb.Fatalf("the load ended after %d acknowledgements, before the %d-th", l.acks.Load(), n)
		}
	}
}

// wait waits until every delivery was acknowledged.
func (l *load) wait() {
	l.s.tb.Helper()
	<-l.done
	if got, want := int(l.acks.Load()), len(l.events)*l.repeats; got != want {
		l.s.tb.Fatalf("got %d acknowledged deliveries, want %d; answers: %v", got, want, l.s.history.since(time.Time{}))
	}
}

// finish begins no more deliveries and waits until those begun were acknowledged. It is
// for stories that decide themselves how long there is load.
func (l *load) finish() {
	l.s.tb.Helper()
	select {
	case <-l.done:
		l.s.tb.Error("the load was over before the story: give it more events")
	default:
	}
	close(l.full)
	<-l.done
	if got, want := l.acks.Load(), l.fed.Load(); got != want {
		l.s.tb.Fatalf("got %d acknowledged deliveries, want %d; answers: %v", got, want, l.s.history.since(time.Time{}))
	}
}

// deliver posts an event once and writes the line of the history.
func (s *system) deliver(ctx context.Context, client *http.Client, target string, seed uint64, i int, e *event) (checker.Delivery, answer) {
	d := e.delivery(seed, i)
	d.T0 = time.Now()
	a := post(ctx, client, target+"/webhooks/"+e.source, sign(e.source, s.secrets[e.source], e.body, d.T0), e.body)
	d.T1, d.HTTP = time.Now(), a.status
	switch {
	case a.err != nil:
		d.Result = checker.Unknown
	case a.status/100 == 2:
		d.Result = checker.OK
	case a.status/100 == 4:
		d.Result = checker.Reject
	default:
		d.Result = checker.Unknown
	}
	s.history.add(d)
	return d, a
}

// post sends a request and reads the whole answer.
func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	// A delivery is sent once: what the transport repeats by itself would not be in
	// the history.
	req.GetBody = nil
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		err = fmt.Errorf("read answer: %w", err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text), err: err}
}
