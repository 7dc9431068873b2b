package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"hookledger/internal/ledger/memory"
	"hookledger/schema"
)

// Events come, come again, and generations are opened and forgotten, in any order and
// many times around the ring: balances, outcomes and ring are what a model in memory says.
func TestRing_WrapsAroundAsTheModel(t *testing.T) {
	t.Parallel()
	b, _ := setupMemory(t)
	type fact struct {
		event   schema.Event
		account string
		amount  int64
		// at is the generation of its row, counted from the first one ever opened.
		at int64
	}
	var facts []*fact
	balances := map[string]int64{}
	open, oldest, runs := int64(0), int64(0), 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > 10 && oldest >= 40 {
			return // one ledger for all runs, so these are some hundred steps of one story
		}
		rt.Repeat(map[string]func(*rapid.T){
			"new": func(rt *rapid.T) {
				var events []schema.Event
				want := map[Outcome]int64{}
				for range rapid.IntRange(1, 4).Draw(rt, "events") {
					f := &fact{account: fmt.Sprintf("acc_%d", rapid.IntRange(0, 4).Draw(rt, "account")), at: open}
					id, says := fmt.Sprintf("evt_%d", len(facts)), body{}
					if f.amount = int64(rapid.IntRange(-3, 9).Draw(rt, "amount")); f.amount != 0 {
						says.Postings = []schema.Posting{pays(f.account, f.amount, id)}
						balances[f.account] += f.amount
						want[Applied]++
					} else {
						want[Ignored]++
					}
					f.event = event(t, id, says)
					facts, events = append(facts, f), append(events, f.event)
				}
				b.outcomes(b.apply(events...), want)
			},
			"again": func(rt *rapid.T) {
				if len(facts) == 0 {
					return // nothing came yet
				}
				var events []schema.Event
				want := map[Outcome]int64{}
				from := rapid.IntRange(0, len(facts)-1).Draw(rt, "from")
				for _, f := range facts[from:min(from+rapid.IntRange(1, 6).Draw(rt, "events"), len(facts))] {
					if f.amount == 0 && f.at < oldest {
						want[Ignored]++
						f.at = open
					} else {
						want[Duplicate]++
					}
					events = append(events, f.event)
				}
				b.outcomes(b.apply(events...), want)
			},
			"rotate": func(rt *rapid.T) {
				done, err := memory.Rotate(rt.Context(), b.pool, b.ring(), 0)
				if full := open-oldest == memory.Generations-1; full != errors.Is(err, memory.ErrFull) || done == full || !full && err != nil {
					rt.Fatalf("rotate with %d generations in use: got %v, %v", open-oldest+1, done, err)
				}
				if done {
					open++
				}
			},
			"forget": func(rt *rapid.T) {
				done, err := memory.Forget(rt.Context(), b.pool, b.ring(), 0)
				if err != nil || done != (open > oldest) {
					rt.Fatalf("forget with %d generations in use: got %v, %v", open-oldest+1, done, err)
				}
				if done {
					oldest++
				}
			},
			"": func(rt *rapid.T) {
				r := b.ring()
				if int64(r.Open) != open%8 || int64(r.Oldest) != oldest%8 || r.Forgotten != oldest || int64(r.Used()) != open-oldest+1 {
					rt.Fatalf("got the ring %+v, want open %d and oldest %d", r, open, oldest)
				}
				got := query1[map[string]int64](t, b.pool, `select coalesce(jsonb_object_agg(account_id, balance), '{}') from accounts`)
				for account, want := range balances {
					if got[account] != want {
						rt.Fatalf("balance of %s: got %d, want %d", account, got[account], want)
					}
				}
				if b.remembers(0); t.Failed() {
					rt.FailNow()
				}
			},
		})
	})
	t.Logf("%d events, %d rotations, %d generations forgotten", len(facts), open, oldest)
	if oldest < 20 {
		t.Errorf("%d generations were forgotten, want 20 at least", oldest)
	}
	b.lawful()
}

// Under load, with an analyst's SELECT and a transaction left open for part of the time,
// rotating and forgetting make no batch fail. How long batches take is logged: before,
// and meanwhile.
func TestMemory_RotatesAndForgetsBesideLoad(t *testing.T) {
	t.Parallel()
	b, owner := setupMemory(t)
	const appliers, size = 3, 50
	phase := time.Second
	var during atomic.Pointer[string]
	name := func(s string) { during.Store(&s) }
	name("warm up")
	type latency struct {
		phase string
		took  time.Duration
	}
	took, failures := make([][]latency, appliers), make([]error, appliers)
	stop := make(chan struct{})
	var load sync.WaitGroup
	applied := make([]int64, appliers)
	for i := range appliers {
		b.start(int32(i))
		random := rand.New(rand.NewPCG(1, uint64(i)))
		load.Go(func() { // ends with stop
			for round, start := 0, int64(0); ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				batch := Batch{Position: testPosition, Start: start}
				batch.Partition = int32(i)
				for k := range size {
					// One of ten came before.
					id := round*size + k
					if k%10 == 0 {
						id = random.IntN(id + 1)
					} else {
						applied[i]++
					}
					r := record(start+int64(k), paid(t, fmt.Sprintf("evt_%d_%d", i, id), fmt.Sprintf("acc_%d", id%40), 1))
					r.Partition = batch.Partition
					batch.Records = append(batch.Records, r)
				}
				now, at := *during.Load(), time.Now()
				c, err := b.ledger.Apply(t.Context(), batch)
				if err != nil {
					failures[i] = fmt.Errorf("%s: %w", now, err)
					return
				}
				took[i] = append(took[i], latency{now, time.Since(at)})
				start = c.Next()
			}
		})
	}
	tick := func(d time.Duration) { <-time.After(d) } // lets the load run; nothing is expected of it
	rotations, forgotten, busy := 0, 0, 0
	tend := func(until time.Time) {
		for time.Now().Before(until) {
			ring := b.ring()
			if !ring.Full() {
				if done, err := memory.Rotate(t.Context(), b.pool, ring, 0); err != nil {
					t.Error(err)
				} else if done {
					rotations++
				}
			}
			done, err := memory.Forget(t.Context(), b.pool, b.ring(), 0)
			var reading *memory.BusyError
			switch {
			case errors.As(err, &reading):
				busy++
			case err != nil:
				t.Error(err)
			case done:
				forgotten++
			}
		}
	}
	tick(phase)
	name("quiet")
	tick(4 * phase)
	name("rotate and forget")
	tend(time.Now().Add(6 * phase))
	before := forgotten
	name("beside readers")
	err := pgx.BeginFunc(t.Context(), owner, func(open pgx.Tx) error {
		if _, err := open.Exec(t.Context(), `select count(*) from processed_events`); err != nil {
			return err
		}
		long := make(chan error, 1)
		go func() { // an analyst's SELECT that takes its time; ends by itself
			_, err := owner.Exec(t.Context(), `select count(*), pg_sleep(4) from processed_events`)
			long <- err
		}()
		tend(time.Now().Add(4 * phase))
		return <-long
	})
	if err != nil {
		t.Fatal(err)
	}
	if forgotten != before || busy == 0 {
		t.Errorf("while others read: %d generations forgotten, %d times put off", forgotten-before, busy)
	}
	name("afterwards")
	tend(time.Now().Add(3 * phase))
	close(stop)
	load.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	if forgotten == before {
		t.Error("nothing was forgotten after the readers had gone")
	}
	for _, phase := range []string{"quiet", "rotate and forget", "beside readers", "afterwards"} {
		var all []time.Duration
		for i := range took {
			for _, l := range took[i] {
				if l.phase == phase {
					all = append(all, l.took)
				}
			}
		}
		slices.Sort(all)
		if len(all) == 0 {
			t.Errorf("%s: no batch was applied", phase)
			continue
		}
		t.Logf("%-18s %5d batches, p50 %v, p99 %v, most %v", phase, len(all), all[len(all)/2].Round(time.Millisecond/10),
			all[len(all)*99/100].Round(time.Millisecond/10), all[len(all)-1].Round(time.Millisecond/10))
	}
	t.Logf("%d rotations, %d generations forgotten, %d times put off", rotations, forgotten, busy)
	b.lawful()
	b.remembers(2 * time.Second)
}
