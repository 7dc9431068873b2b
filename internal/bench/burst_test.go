package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"hookledger/internal/testkit"
)

const (
	// burstTimes is how many more senders a burst has than the load it stands beside.
	burstTimes = 10
	// burstRepeat is the most that a sender waits before it repeats what was refused.
	burstRepeat = 100 * time.Millisecond
)

// measureBurst freezes the broker while ten times as many senders as usual have new events,
// ten times as many as a moderate load, a quarter of what the receiver can take. Each
// repeats what is refused. Then the broker is back, and more is overdue than the receiver
// can take, for as long as it is measured. One that spends itself on refusals, or on what
// its senders have given up, does less than it can.
func measureBurst(b *bench) {
	kafka := testkit.Kafka1(b.tb) // for it is frozen
	s := b.newSystem(kafka, b.newTopic(kafka), "postgres://unused@127.0.0.1:1/unused")
	_, addr := s.startIngest()
	callers, away := b.callers[0], 8*time.Second // beyond ingest.ack_timeout
	if b.tiny() {
		away = b.span
	}
	capacity := func() float64 {
		l, err := loadWebhooks(addr, callers, b.span/4, b.span)
		if err != nil {
			b.tb.Fatalf("load %s: %v", addr, err)
		}
		return l.rate()
	}
	if !b.tiny() { // caches, and the heap as it will be
		if _, err := loadWebhooks(addr, callers, 0, time.Second); err != nil {
			b.tb.Fatal(err)
		}
	}
	rate := burstTimes * capacity() / 4
	goodput := b.add(line{
		name: fmt.Sprintf("stored, %d senders after %.0f s without a broker", burstTimes*callers, away.Seconds()), unit: "requests/s",
		floorName: fmt.Sprintf("%d callers, nothing wrong", callers), want: least(0.8),
	})
	var first, refused []float64
	b.alternate(
		func(int) {
			f := b.burst(addr, burstTimes*callers, rate)
			began := time.Now()
			kafka.Pause(0)
			<-time.After(away) // the load goes on
			kafka.Resume(0)
			back := time.Now()
			refused = append(refused, float64(f.refused.Load())/back.Sub(began).Seconds())
			before := f.stored.Load()
			testkit.Eventually(b.tb, time.Minute, func() error {
				if f.stored.Load() == before {
					return fmt.Errorf("no 2xx since the broker is back")
				}
				return nil
			})
			from, stored := time.Now(), f.stored.Load()
			first = append(first, from.Sub(back).Seconds())
			<-time.After(b.span)
			// What made it go on is one of them.
			goodput.ours = append(goodput.ours, float64(1+f.stored.Load()-stored)/time.Since(from).Seconds())
			f.end()
		},
		func(int) { goodput.floor = append(goodput.floor, capacity()) },
	)
	goodput.note = fmt.Sprintf("first 2xx %s s after the broker was back; %s refusals/s before", figure(median(first)), figure(median(refused)))
	b.say("%s and %s requests/s; %s", figure(median(goodput.ours)), figure(median(goodput.floor)), goodput.note)
}

// flood is senders that repeat.
type flood struct {
	b    *bench
	addr string
	// pace is how often each has a new event.
	pace time.Duration
	stop context.CancelFunc
	done sync.WaitGroup
	// stored were answered 2xx, refused 503 or by a connection that was closed.
	stored, refused atomic.Int64
}

// burst starts senders that have new events, rate a second together, whatever becomes of
// those before: one that is late hurries.
func (b *bench) burst(addr string, senders int, rate float64) *flood {
	b.tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f := &flood{b: b, addr: addr, pace: time.Duration(float64(senders) / rate * float64(time.Second)), stop: stop}
	for range senders {
		f.done.Go(func() { f.send(ctx) }) // ends with stop
	}
	b.tb.Cleanup(f.end)
	return f
}

func (f *flood) end() {
	f.stop()
	f.done.Wait()
}

// send sends one event after the other, each until it is stored.
func (f *flood) send(ctx context.Context) {
	var w *webhook
	defer func() {
		if w != nil {
			w.close()
		}
	}()
	for due := time.Now().Add(rand.N(f.pace)); ; due = due.Add(f.pace) {
		if !pause(ctx, time.Until(due)) {
			return
		}
		n := numbers.Add(1)
		for {
			var status int
			var err error
			if w == nil {
				w, err = dialWebhook(f.addr)
			}
			if err == nil {
				status, err = w.deliver(n)
			}
			if w != nil && (err != nil || w.last) {
				w.close()
				w = nil
			}
			if err == nil && status == 200 {
				f.stored.Add(1)
				break
			}
			if err == nil && status != 503 {
				f.b.tb.Errorf("event %d: answered %d, want 200 or 503", n, status)
				return
			}
			f.refused.Add(1)
			if !pause(ctx, rand.N(burstRepeat)) {
				return
			}
		}
	}
}

// pause waits, and tells whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
