package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/testkit"
)

// 503 does not say "not stored". The provider sends again, and what stands in the topic
// twice then is one event: same key, same bytes, same hash.
func TestProduce_UnknownAndSentAgainIsTheSameEventTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.AckTimeout = 3 * time.Second }})
	arrived, release := b.hold()
	unknown := make(chan answer, 1)
	go func() { unknown <- b.do(b.signed("acme", "", event("evt_1"))) }() // ends with its answer
	<-arrived
	if a := <-unknown; a.code != 503 {
		t.Fatalf("got %d while the broker is silent, want 503", a.code)
	}
	release()
	testkit.Eventually(t, time.Minute, func() error {
		if n := len(b.records()); n != 1 {
			return fmt.Errorf("%d records, want the one that was answered 503", n)
		}
		return nil
	})
	if a := b.do(b.signed("acme", "", event("evt_1"))); a.code != 202 {
		t.Fatalf("sent again: got %d %s, want 202", a.code, a.body)
	}
	records := b.records()
	if len(records) != 2 {
		t.Fatalf("got %d records, want 2", len(records))
	}
	one, two := decode(t, records[0]), decode(t, records[1])
	if one.Key() != two.Key() || !bytes.Equal(one.Body, two.Body) || one.BodySHA256 != two.BodySHA256 || records[0].Partition != records[1].Partition {
		t.Errorf("got %+v and %+v, want one event", one, two)
	}
	if one.DeliveryID == two.DeliveryID {
		t.Error("two deliveries have one ID")
	}
}

// The broker says at random that a request timed out although it was written, so that
// the client repeats batches whose sequence numbers the broker has seen. What is answered
// 2xx is in the log, each time. (franz-go below v1.22.2 could acknowledge a batch that
// was not written when it had the size of the one before.)
func TestProduce_NothingIsAcknowledgedThatIsNotWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.AckTimeout = 5 * time.Second }})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1, When: func(kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(4) == 0
	}})
	const callers, each = 32, 63 // two thousand
	var acknowledged sync.Map
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range each {
				id := fmt.Sprintf("evt_%02d_%04d", c, i) // records of one size
				if a := b.do(b.signed("acme", "", event(id))); a.code == 202 {
					acknowledged.Store(id, true)
				} else if a.code != 503 {
					t.Errorf("%s: got %d %s, want 202 or 503", id, a.code, a.body)
				}
			}
		})
	}
	all.Wait()
	if fault.Hits() < 20 {
		t.Errorf("the broker timed out %d times: the test needs more", fault.Hits())
	}
	stored := map[string]bool{}
	for _, r := range b.records() {
		stored[string(r.Key)] = true
	}
	n := 0
	acknowledged.Range(func(id, _ any) bool {
		n++
		if !stored[id.(string)] {
			t.Errorf("%s was answered 2xx and is not in the topic", id)
		}
		return true
	})
	t.Logf("%d of %d acknowledged, %d timeouts", n, callers*each, fault.Hits())
	if n < callers*each/2 {
		t.Errorf("%d of %d deliveries were acknowledged, want most", n, callers*each)
	}
}

// Whatever a broker gives as the reason why it does not store a record, the answer is
// 503, in time, and the first 2xx comes after it has recovered.
func TestProduce_EveryRefusalOfTheBrokerIs503(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{
		kerr.KafkaStorageError, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition,
		kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.TopicAuthorizationFailed, kerr.MessageTooLarge,
		kerr.InvalidRecord, kerr.ThrottlingQuotaExceeded, kerr.UnknownServerError,
	} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			b := setup(t, options{config: func(c *Config) { c.AckTimeout = 500 * time.Millisecond }})
			fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: code, Count: -1})
			testkit.Eventually(t, time.Minute, func() error { // a busy machine may time out before it asks
				a := b.do(b.signed("acme", "", event("refused")))
				if a.code != 503 || a.header.Get("Retry-After") == "" {
					t.Errorf("got %d %s, want 503 with Retry-After", a.code, a.body)
				}
				if fault.Hits() == 0 {
					return errors.New("the broker was not asked")
				}
				return nil
			})
			fault.Remove()
			b.untilAccepted()
		})
	}
}

// A receiver whose clock is ten minutes off refuses what signs a time, for it cannot tell
// a replay from a delivery; once the clock is right, the provider's next attempt is taken.
func TestReceive_ClockThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shift atomic.Int64
			b := setup(t, options{now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }})
			shift.Store(int64(off))
			want := map[time.Duration]string{-10 * time.Minute: "future-timestamp", 10 * time.Minute: "stale-timestamp"}[off]
			if a := b.do(b.signed("stripe", "", `{"id":"evt_1","type":"payment_intent.succeeded"}`)); a.code != 400 || problemOf(t, a) != want {
				t.Errorf("a signed time: got %d %s, want 400 %s", a.code, a.body, want)
			}
			shift.Store(0)
			b.untilAccepted()
			if a := b.do(b.signed("stripe", "", `{"id":"evt_1","type":"payment_intent.succeeded"}`)); a.code != 200 {
				t.Errorf("a signed time once the clock is right: got %d %s, want 200", a.code, a.body)
			}
		})
	}
}

// Receivers that start, lose the broker, find it again and stop leave no goroutine.
func TestServer_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	label := testkit.UniqueName("receiver") // inherited by goroutines
	const cycles = 5
	pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
		for i := range cycles {
			b := setup(t, options{stopped: true, config: func(c *Config) { c.AckTimeout = 300 * time.Millisecond }})
			b.do(b.signed("acme", "", event("before")))
			fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
			for j := range 3 {
				b.do(b.signed("acme", "", event(fmt.Sprint("lost", j))))
			}
			fault.Remove()
			b.untilAccepted()
			if i == 0 && len(goroutines(t, label)) == 0 {
				t.Fatal("no goroutine of a running receiver is seen")
			}
			b.stop()
			if err := <-b.ended; err != nil {
				t.Error(err)
			}
			b.cluster.Close()
		}
	})
	testkit.Eventually(t, time.Minute, func() error {
		left := goroutines(t, label)
		// The clients of these tests keep connections, which are not the receiver's.
		left = slices.DeleteFunc(left, func(s string) bool {
			return strings.Contains(s, "net/http.(*persistConn)") || strings.Contains(s, "net/http.(*Transport)")
		})
		if len(left) > 0 {
			return fmt.Errorf("%d kinds of goroutines are left after %d cycles:\n%s", len(left), cycles, strings.Join(left, "\n\n"))
		}
		return nil
	})
}

// goroutines returns the stacks of goroutines with a label, one for each kind.
func goroutines(tb testing.TB, label string) []string {
	tb.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		tb.Fatal(err)
	}
	found := map[string]bool{}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			found[stack] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
