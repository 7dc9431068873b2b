package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/testkit"
)

// hold makes the broker sit on produce requests until release is called. arrived
// receives one value per request held.
func (b *bundle) hold() (arrived <-chan struct{}, release func()) {
	gate, came := make(chan struct{}), make(chan struct{}, 1000)
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		came <- struct{}{}
		b.cluster.SleepControl(func() { <-gate })
		return nil, nil, false
	})
	release = sync.OnceFunc(func() { close(gate) })
	b.t.Cleanup(release)
	return came, release
}

// The first law: no byte of an answer before the broker acknowledged, and 503 when our
// own timer is over, however long the broker takes.
func TestProduce_HeldByBrokerIs503AtTheTimeoutAndNotAByteEarlier(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.AckTimeout = time.Second }})
	arrived, release := b.hold()
	conn, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if err := b.signed("acme", "", event("held")).Write(conn); err != nil {
		t.Fatal(err)
	}
	<-arrived
	_ = conn.SetReadDeadline(begun.Add(900 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
		t.Fatalf("got %d bytes, %v before the acknowledgement, want none", n, err)
	}
	_ = conn.SetReadDeadline(begun.Add(time.Minute))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q, want 503 with Retry-After", res.StatusCode, res.Header.Get("Retry-After"))
	}
	if got := b.counter("unknown"); got != 1 {
		t.Errorf("got %v unknown events, want 1", got)
	}
	release()
	testkit.Eventually(t, time.Minute, func() error {
		if got := b.counter("late", "acknowledged"); got != 1 {
			return fmt.Errorf("got %v events acknowledged late, want 1", got)
		}
		return nil
	})
	if got := b.records(); len(got) != 1 || string(got[0].Key) != "held" {
		t.Errorf("got %d records, want the one that was held", len(got))
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// REQUEST_TIMED_OUT is answered after the record was written: it is sent again and
// stands in the topic once.
func TestProduce_TimedOutButWrittenIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 3})
	if a := b.do(b.signed("acme", "", event("once"))); a.code != 202 {
		t.Errorf("got %d %s, want 202 after the retries", a.code, a.body)
	}
	if fault.Hits() != 3 {
		t.Errorf("got %d faults, want 3", fault.Hits())
	}
	if got := len(b.records()); got != 1 {
		t.Errorf("got %d records, want 1", got)
	}
}

func TestProduce_NotEnoughReplicasOpensTheCircuitAndRecovers(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.AckTimeout = 300 * time.Millisecond }})
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	var wg sync.WaitGroup
	for i := range tripAfter {
		wg.Go(func() {
			a := b.do(b.signed("acme", "", event(fmt.Sprint("e", i))))
			if a.code != 503 || a.took > 30*time.Second {
				t.Errorf("got %d after %s, want 503 at the ack timeout", a.code, a.took)
			}
		})
	}
	wg.Wait()
	if err := b.server.Ready(); !errors.Is(err, errCircuitOpen) {
		t.Errorf("ready: got %v, want errCircuitOpen", err)
	}
	// Most are spared the wait.
	var quick atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			if a := b.do(b.signed("acme", "", event(fmt.Sprint("q", i)))); a.code == 503 && problemOf(t, a) == "unavailable" {
				quick.Add(1)
			}
		})
	}
	wg.Wait()
	if quick.Load() < 10 {
		t.Errorf("got %d quick answers of 20, want most", quick.Load())
	}
	// A broker that answers questions makes us ready again, for a try.
	testkit.Eventually(t, time.Minute, b.server.Ready)
	fault.Remove()
	b.untilAccepted()
	if err := b.server.Ready(); err != nil || b.server.health.isOpen() {
		t.Errorf("after recovery: ready %v, circuit open %v", err, b.server.health.isOpen())
	}
}

// An operator deletes the topic and creates it again: the receiver says so meanwhile,
// and goes on without a restart.
func TestProduce_GoesOnAfterTheTopicWasCreatedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	if a := b.do(b.signed("acme", "", event("before"))); a.code != 202 {
		t.Fatalf("got %d %s", a.code, a.body)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if a := b.do(b.signed("acme", "", event("gone"))); a.code != 503 {
			return fmt.Errorf("got %d without a topic, want 503", a.code)
		}
		if err := b.server.Ready(); err == nil {
			return errors.New("ready without a topic")
		}
		return nil
	})
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	b.untilAccepted()
	if err := b.server.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// untilAccepted sends deliveries until one is accepted.
func (b *bundle) untilAccepted() {
	b.t.Helper()
	begun, n := time.Now(), 0
	testkit.Eventually(b.t, time.Minute, func() error {
		n++
		if a := b.do(b.signed("acme", "", event(fmt.Sprint("back", n)))); a.code != 202 {
			return fmt.Errorf("got %d %s", a.code, a.body)
		}
		return nil
	})
	b.t.Logf("first success %s after the broker was back", time.Since(begun).Round(time.Millisecond))
}

// wire is the network between the client and the broker, which can be cut.
type wire struct {
	cut   atomic.Bool
	mu    sync.Mutex
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.cut.Load() {
		return nil, errors.New("connection refused by the test")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		w.mu.Lock()
		w.conns = append(w.conns, c)
		w.mu.Unlock()
	}
	return c, err
}

func (w *wire) away() {
	w.cut.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) back() { w.cut.Store(false) }

func TestProduce_BrokerAwayBoundsMemoryAndRecovers(t *testing.T) {
	t.Parallel()
	w := &wire{}
	const limit = 2 << 20
	b := setup(t, options{
		kafka: []kgo.Opt{kgo.Dialer(w.dial)},
		config: func(c *Config) {
			c.AckTimeout = 500 * time.Millisecond
			c.MaxBodyBytes, c.MaxInflightBytes, c.MaxBufferedBytes = 256<<10, limit, limit
		},
	})
	if a := b.do(b.signed("acme", "", event("before"))); a.code != 202 {
		t.Fatalf("got %d, want 202", a.code)
	}
	w.away()
	large := `{"id":"large","pad":"` + strings.Repeat("x", 200<<10) + `"}`
	end := time.Now().Add(3 * time.Second)
	var most atomic.Int64
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			for time.Now().Before(end) {
				a, err := send(http.DefaultClient, b.signed("acme", "", large))
				if err == nil && a.code != 503 {
					t.Errorf("got %d %s, want 503", a.code, a.body)
				}
				if err == nil && a.took > 30*time.Second {
					t.Errorf("503 took %s, want about the ack timeout of 500ms", a.took)
				}
				held := b.server.budget.used.Load() + b.server.client.BufferedProduceBytes()
				for old := most.Load(); held > old && !most.CompareAndSwap(old, held); old = most.Load() {
				}
			}
		})
	}
	wg.Wait()
	// A body being copied counts twice for a moment, within the limit of bytes in flight.
	if got := most.Load(); got > 2*limit {
		t.Errorf("held %d bytes at most, want no more than %d", got, 2*limit)
	}
	if err := b.server.Ready(); err == nil {
		t.Error("ready with the broker away")
	}
	w.back()
	b.untilAccepted()
}

// Nobody sends, so no delivery tells that the broker is away: it is asked.
func TestReady_TellsOfABrokerThatIsAwayWhileNothingComesIn(t *testing.T) {
	t.Parallel()
	w := &wire{}
	b := setup(t, options{kafka: []kgo.Opt{kgo.Dialer(w.dial)}})
	testkit.Eventually(t, time.Minute, b.server.Ready)
	w.away()
	testkit.Eventually(t, time.Minute, func() error {
		if b.server.Ready() == nil {
			return errors.New("ready with the broker away")
		}
		return nil
	})
	w.back()
	testkit.Eventually(t, time.Minute, b.server.Ready)
}

// A broker that accepts connections and says nothing is the worst kind of away.
func TestProduce_SilentBrokerRecovers(t *testing.T) {
	t.Parallel()
	var proxy *testkit.Proxy
	b := setup(t, options{
		config: func(c *Config) { c.AckTimeout = 500 * time.Millisecond },
		kafka: []kgo.Opt{kgo.RequestTimeoutOverhead(2 * time.Second), kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return proxy.Dial(ctx, network, addr)
		})},
		beforeRun: func(b *bundle) { proxy = testkit.NewProxy(t, b.cluster.ListenAddrs()[0]) },
	})
	if a := b.do(b.signed("acme", "", event("before"))); a.code != 202 {
		t.Fatalf("got %d, want 202", a.code)
	}
	proxy.Stall()
	for i := range 2 * tripAfter {
		if a := b.do(b.signed("acme", "", event(fmt.Sprint("s", i)))); a.code != 503 {
			t.Errorf("got %d, want 503", a.code)
		}
	}
	proxy.Pass()
	b.untilAccepted()
}

// One partition without enough replicas must not fill the buffers for all. At first they
// do fill, until the first records are given up; after that, nearly everything that goes
// elsewhere is accepted, for three seconds on end. A machine that is busy with other
// things gets more than one try at them.
func TestProduce_SickPartitionLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	const span, tries = 3 * time.Second, 20
	b := setup(t, options{config: func(c *Config) { c.MaxBufferedRecords, c.AckTimeout = 60, time.Second }})
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{0}, Err: kerr.NotEnoughReplicas, Count: -1})
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var n, good, bad atomic.Int64
	done := make(chan struct{})
	defer wg.Wait()
	defer close(done)
	for range 30 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				id := fmt.Sprint("p", n.Add(1))
				mu.Lock()
				sick := partitioner.Partition(&kgo.Record{Key: []byte(id)}, 3) == 0
				mu.Unlock()
				switch accepted := b.do(b.signed("acme", "", event(id))).code == 202; {
				case sick && accepted:
					t.Errorf("event %s of the sick partition was accepted", id)
				case sick:
				case accepted:
					good.Add(1)
				default:
					bad.Add(1)
				}
			}
		})
	}
	<-time.After(span) // the buffers fill
	for try := 1; ; try++ {
		good.Store(0)
		bad.Store(0)
		<-time.After(span)
		g, r := good.Load(), bad.Load()
		t.Logf("healthy partitions: %d accepted, %d refused", g, r)
		if g > 0 && r <= g/20 {
			return
		}
		if try == tries {
			t.Fatal("want nearly all of the healthy partitions accepted")
		}
	}
}

// A sender that hangs up must not take others with it whose records share a batch.
func TestProduce_HangingUpHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		b.cluster.SleepControl(func() { <-time.After(20 * time.Millisecond) })
		return nil, nil, false
	})
	end := time.Now().Add(3 * time.Second)
	var wg sync.WaitGroup
	var n, sent atomic.Int64
	for range 4 {
		wg.Go(func() { // who hangs up
			for time.Now().Before(end) {
				conn, err := net.Dial("tcp", b.server.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				_ = b.signed("acme", "", event(fmt.Sprint("gone", n.Add(1)))).Write(conn)
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				_, _ = conn.Read(make([]byte, 1))
				conn.Close()
			}
		})
	}
	for range 40 {
		wg.Go(func() {
			for time.Now().Before(end) {
				sent.Add(1)
				if a := b.do(b.signed("acme", "", event(fmt.Sprint("stays", n.Add(1))))); a.code != 202 {
					t.Errorf("got %d %s, want 202", a.code, a.body)
				}
			}
		})
	}
	wg.Wait()
	if sent.Load() < 100 {
		t.Errorf("only %d deliveries were sent", sent.Load())
	}
}

func TestProduce_FullBufferIs503AtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.MaxBufferedRecords = 2 }})
	arrived, release := b.hold()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if a := b.do(b.signed("acme", "", event(fmt.Sprint("b", i)))); a.code != 202 {
				t.Errorf("got %d, want 202", a.code)
			}
		})
	}
	<-arrived
	testkit.Eventually(t, time.Minute, func() error {
		if n := b.server.client.BufferedProduceRecords(); n != 2 {
			return fmt.Errorf("%d records are buffered", n)
		}
		return nil
	})
	a := b.do(b.signed("acme", "", event("third")))
	if a.code != 503 || a.took > 30*time.Second || problemOf(t, a) != "overloaded" {
		t.Errorf("got %d %s after %s, want 503 overloaded at once", a.code, a.body, a.took)
	}
	if got := b.counter("unknown"); got != 0 {
		t.Errorf("got %v unknown events, want 0: the record was never taken", got)
	}
	release()
	wg.Wait()
}

// A batch is answered when all of it is acknowledged.
func TestProduce_BatchWaitsForItsLastItem(t *testing.T) {
	t.Parallel()
	b := setup(t, options{config: func(c *Config) { c.AckTimeout = 3 * time.Second }})
	var items []string
	for i := range 30 {
		items = append(items, event(fmt.Sprint("i", i)))
	}
	body := `{"events":[` + strings.Join(items, ",") + `]}`
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1})
	if a := b.do(b.signed("batch", "", body)); a.code != 503 {
		t.Errorf("got %d with a third of the items not stored, want 503", a.code)
	}
	fault.Remove()
	testkit.Eventually(t, time.Minute, func() error {
		if a := b.do(b.signed("batch", "", body)); a.code != 200 {
			return fmt.Errorf("got %d", a.code)
		}
		return nil
	})
	ids := map[string]bool{}
	deliveries := map[string]bool{}
	for _, r := range b.records() {
		ev := decode(t, r)
		ids[ev.ID] = true
		deliveries[ev.DeliveryID] = true
		if string(ev.Body) != event(ev.ID) {
			t.Errorf("item %s: got %s, want its own bytes", ev.ID, ev.Body)
		}
	}
	if len(ids) != 30 {
		t.Errorf("got %d items, want 30", len(ids))
	}
}
