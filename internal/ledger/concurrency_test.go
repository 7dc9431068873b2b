package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hookledger/schema"
)

// Two workers get the same events in opposite orders, over and over: no deadlock, and
// each event once.
func TestApply_SameEventsInOppositeOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(0)
	b.start(1)
	const rounds, size = 30, 60
	for round := range rounds {
		var events, back []schema.Event
		for i := range size {
			postings := []schema.Posting{
				pays(fmt.Sprintf("acc_%d", i%9), 2, fmt.Sprintf("%d/%d", round, i)),
				pays(fmt.Sprintf("acc_%d", (i+5)%9), -1, fmt.Sprintf("%d/%d/fee", round, i)),
			}
			e := event(t, fmt.Sprintf("evt_%d_%d", round, i), body{Postings: postings,
				Status: status(fmt.Sprintf("obj_%d", i%5), "s", testNow, i)})
			events, back = append(events, e), append([]schema.Event{e}, back...)
		}
		batches := []Batch{b.batch(0, events...), b.batch(1, back...)}
		var wg sync.WaitGroup
		done, errs := make([]Committed, 2), make([]error, 2)
		for i := range batches {
			wg.Go(func() { done[i], errs[i] = b.ledger.Apply(t.Context(), batches[i]) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if n := done[0].Count(Applied) + done[1].Count(Applied); n != size {
			t.Fatalf("round %d: applied %d, want %d", round, n, size)
		}
		b.next[0], b.next[1] = done[0].Next(), done[1].Next()
	}
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); got != rounds*size {
		t.Errorf("sum of balances: got %d, want %d", got, rounds*size)
	}
	if got := query1[int64](t, b.pool, `select deadlocks from pg_stat_database where datname = current_database()`); got != 0 {
		t.Errorf("deadlocks: got %d, want 0", got)
	}
	b.lawful()
}

// A storm of workers whose batches overlap in one thing each time: events, movements
// (told by events of their own), accounts alone, or events that make states.
func TestApply_StormHasNoDeadlock(t *testing.T) {
	t.Parallel()
	const workers, rounds, size = 6, 15, 120
	for overlap, tell := range map[string]func(worker, round, n int) (id, account, movement string){
		"events": func(_, _, n int) (string, string, string) {
			return fmt.Sprintf("evt_%d", n), fmt.Sprintf("acc_%d", n%50), fmt.Sprintf("m%d", n)
		},
		"movements": func(worker, round, n int) (string, string, string) {
			return fmt.Sprintf("evt_%d_%d_%d", worker, round, n), fmt.Sprintf("acc_%d", n%50), fmt.Sprintf("m%d_%d", round, n)
		},
		"accounts": func(worker, round, n int) (string, string, string) {
			id := fmt.Sprintf("evt_%d_%d_%d", worker, round, n)
			return id, fmt.Sprintf("acc_%d", n), id
		},
		// One event in 20 reaches all workers, and each state is told of by several events.
		"states": func(worker, round, n int) (string, string, string) {
			if n%20 == 0 {
				worker = 0
			}
			id := fmt.Sprintf("evt_%d_%d_%d", worker, round, n)
			return id, fmt.Sprintf("acc_%d", n), id
		},
	} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var wg sync.WaitGroup
			errs := make([]error, workers)
			for w := range workers {
				b.start(int32(w))
				random := rand.New(rand.NewPCG(seed, uint64(w)))
				wg.Go(func() {
					start := int64(0)
					for round := range rounds {
						batch := Batch{Position: testPosition, Start: start}
						batch.Partition = int32(w)
						for i, n := range random.Perm(2 * size)[:size] {
							id, account, movement := tell(w, round, n)
							fact := body{Postings: []schema.Posting{pays(account, int64(n+1), movement)}}
							if overlap == "states" {
								fact.Status = status(fmt.Sprintf("obj_%d_%d", round, n/4), "paid", testNow, n)
							}
							r := record(start+int64(i), event(t, id, fact))
							r.Partition = batch.Partition
							batch.Records = append(batch.Records, r)
						}
						c, err := b.ledger.Apply(t.Context(), batch)
						if errs[w] = err; err != nil {
							return
						}
						start = c.Next()
					}
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if got := query1[int64](t, b.pool, `select deadlocks from pg_stat_database where datname = current_database()`); got != 0 {
				t.Errorf("deadlocks: got %d, want 0", got)
			}
			b.lawful()
		})
	}
}

// Random events, some of them twice, in random splits and orders by three workers, and
// then replayed from the start, leave what a map in memory says.
func TestApply_MatchesAModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		type plain struct {
			id      string
			account string
			amount  int64
			moves   string
		}
		n := rapid.IntRange(1, 25).Draw(rt, "events")
		facts := make([]plain, n)
		want := map[string]int64{}
		movements := map[string]bool{}
		for i := range facts {
			f := plain{id: fmt.Sprintf("r%d_%d", run, i)}
			// Some events tell of the movement of another one, with its money.
			if i > 0 && rapid.IntRange(0, 4).Draw(rt, "same effect") == 0 {
				other := facts[rapid.IntRange(0, i-1).Draw(rt, "other")]
				f.account, f.amount, f.moves = other.account, other.amount, other.moves
			} else {
				f.account = fmt.Sprintf("r%d_acc%d", run, rapid.IntRange(0, 4).Draw(rt, "account"))
				f.amount = int64(rapid.IntRange(-50, 50).Draw(rt, "amount"))
				f.moves = f.id
			}
			facts[i] = f
			if f.amount != 0 && !movements[f.moves] {
				movements[f.moves] = true
				want[f.account] += f.amount
			}
		}
		// Each worker gets all events, in an order and in batches of its own.
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for w := range 3 {
			partition := int32(run*3 + w)
			b.start(partition)
			order := rapid.Permutation(append(append([]plain{}, facts...), facts[:n/2]...)).Draw(rt, "order")
			var batches []Batch
			for at := 0; at < len(order); {
				size := min(rapid.IntRange(1, 12).Draw(rt, "size"), len(order)-at)
				batch := Batch{Position: testPosition, Start: int64(at)}
				batch.Partition = partition
				for i, f := range order[at : at+size] {
					var says body
					if f.amount != 0 {
						says.Postings = []schema.Posting{pays(f.account, f.amount, f.moves)}
					}
					r := record(int64(at+i), event(t, f.id, says))
					r.Partition = partition
					batch.Records = append(batch.Records, r)
				}
				batches = append(batches, batch)
				at += size
			}
			wg.Go(func() {
				for range 2 { // and again from the start
					for _, batch := range batches {
						if _, err := b.ledger.Apply(t.Context(), batch); err != nil {
							errs[w] = err
							return
						}
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			rt.Fatal(err)
		}
		for i := range 5 {
			account := fmt.Sprintf("r%d_acc%d", run, i)
			if got := b.balance(account); got != want[account] {
				rt.Fatalf("balance of %s: got %d, want %d", account, got, want[account])
			}
		}
	})
	b.lawful()
}
