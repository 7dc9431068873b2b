package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// The only broker freezes, and later dies, under load. Clients get 503 with Retry-After
// within the ack timeout, memory stays bounded, and the first 2xx comes within 5 s of
// the broker's return.
func TestBroker_AwayMeans503BoundedMemoryAndAQuickReturn(t *testing.T) {
	t.Parallel()
	k := testkit.Kafka1(t)
	s := newSystem(t, k, options{ackTimeout: 2 * time.Second})
	s.startIngest()
	s.startConsume()
	s.startSampler()
	l := s.startLoad(5, workload(5, 4000), 1, 8, 30)
	l.at(50)

	for _, fault := range []struct {
		name      string
		away, due func()
	}{
		{"frozen", func() { k.Pause(0) }, func() { k.Resume(0) }},
		{"killed", func() { k.Kill(0) }, func() { k.Start(0) }},
	} {
		before := s.ingest[0].rss(t)
		fault.away()
		gone := time.Now()
		s.flood(t, 3*time.Second)
		s.want503(t, fault.name)
		testkit.Eventually(t, wait, s.ingest[0].wantStatus("/readyz", 503))
		if err := s.ingest[0].wantStatus("/livez", 200)(); err != nil {
			t.Error(err)
		}
		during := s.ingest[0].rss(t)
		if most := before + rssAllowance; during > most {
			t.Errorf("broker %s: resident memory of ingest went from %d MiB to %d MiB, want at most %d", fault.name, before>>20, during>>20, most>>20)
		}
		t.Logf("broker %s for %s: resident memory of ingest %d MiB, before %d MiB", fault.name, time.Since(gone).Round(time.Millisecond), during>>20, before>>20)
		fault.due()
		back := time.Now()
		testkit.Eventually(t, wait, func() error {
			if s.history.firstOK(back).IsZero() {
				return fmt.Errorf("no 2xx yet")
			}
			return nil
		})
		within(t, "broker "+fault.name+": first 2xx after its return", s.history.firstOK(back).Sub(back), 5*time.Second)
		testkit.Eventually(t, wait, s.ingest[0].wantStatus("/readyz", 200))
	}
	l.finish()
	s.settle(verdict{})
}

// rssAllowance is how much ingest may grow while the broker is away: 64 MiB of records
// and 64 MiB of bodies in hand by default, and as much again for what the collector has
// not taken yet and for the race detector's shadow.
const rssAllowance = 320 << 20

// want503 delivers one event and wants 503 with Retry-After in time.
func (s *system) want503(t *testing.T, fault string) {
	t.Helper()
	e := workload(55, 1)[0]
	e.id += fault // never accepted elsewhere, and counted as unknown
	e.body = bytes.ReplaceAll(e.body, []byte("55_0000"), []byte("55_0000"+fault))
	testkit.Eventually(t, wait, func() error {
		d, a := s.deliver(t.Context(), http.DefaultClient, s.ingest[0].public, 55, 0, &e)
		if took := d.T1.Sub(d.T0); took > s.opts.ackTimeout+slack {
			t.Errorf("broker %s: an answer took %s, want at most the ack timeout %s and %s", fault, took, s.opts.ackTimeout, slack)
		}
		if a.status != 503 {
			return fmt.Errorf("got %d, want 503: %w", a.status, errAnswer(a))
		}
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("broker %s: 503 with Retry-After %q, want seconds", fault, a.header.Get("Retry-After"))
		}
		if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("broker %s: 503 with Content-Type %q, want application/problem+json", fault, ct)
		}
		return nil
	})
}

// flood posts large bodies from many callers for a while, all of them events of their
// own. Every answer has to be 503, or none.
func (s *system) flood(t *testing.T, lasts time.Duration) {
	t.Helper()
	const callers, bodyBytes = 32, 256 << 10
	client := &http.Client{Timeout: s.opts.ackTimeout + 10*time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	until := time.Now().Add(lasts)
	seed := rand.Uint64N(1 << 40)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() { // ends when the time is over
			for i := 0; time.Now().Before(until); i++ {
				name := fmt.Sprintf("%d_%d_%d", seed, c, i)
				body := fmt.Sprintf(`{"id":"flood/%s","type":"customer.updated","user_id":"acct-00","note":"%s"}`, name, strings.Repeat("x", bodyBytes))
				e := event{source: sourceAcme, id: "flood/" + name, body: []byte(body), account: "acct-00"}
				if d, a := s.deliver(t.Context(), client, s.ingest[0].public, seed, i, &e); d.Result != checker.Unknown {
					t.Errorf("flood while the broker is away: got %d, want 503", a.status)
				}
			}
		})
	}
	all.Wait()
}

// rss is the resident memory of the process in bytes.
func (r *role) rss(t *testing.T) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int
		if _, err := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatalf("read resident memory of %s: no VmRSS", r.name)
	return 0
}

// Three brokers, two of which must have each record. One is killed under load: nothing
// that was acknowledged is lost, and webhooks are accepted all the while. A second one
// is killed: 503. They return, and so do the 2xx.
func TestBrokers_OneOfThreeKilledLosesNothingTwoMean503(t *testing.T) {
	t.Parallel()
	k := testkit.KafkaCluster3(t)
	s := newSystem(t, k, options{replication: 3, durability: "replicated", ackTimeout: 3 * time.Second})
	s.startIngest()
	s.startConsume()
	s.startSampler()
	l := s.startLoad(6, workload(6, 6000), 1, 12, 50)
	l.at(100)

	k.Kill(0)
	one := time.Now()
	l.at(int(l.acks.Load()) + 100)
	t.Logf("one of three killed: 100 more acknowledged after %s", time.Since(one).Round(time.Millisecond))

	two := time.Now()
	k.Kill(1)
	s.want503(t, "below min.insync.replicas")
	testkit.Eventually(t, wait, s.ingest[0].wantStatus("/readyz", 503))

	k.Start(1)
	back := time.Now()
	testkit.Eventually(t, wait, func() error {
		if s.history.firstOK(back).IsZero() {
			return fmt.Errorf("no 2xx yet")
		}
		return nil
	})
	t.Logf("two of three killed for %s: first 2xx %s after one returned", back.Sub(two).Round(time.Millisecond), s.history.firstOK(back).Sub(back).Round(time.Millisecond))
	k.Start(0)
	l.finish()
	s.settle(verdict{})
}
