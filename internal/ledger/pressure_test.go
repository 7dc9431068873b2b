package ledger

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
	"time"

	"hookledger/schema"
)

// One record in 10,000 that Postgres refuses costs its neighbours one bisection of its
// batch: two transactions for each halving, and one to hold it. Nothing else is delayed.
func TestApply_OneBadRecordInTenThousandCostsOneBisection(t *testing.T) {
	t.Parallel()
	const batches, size, bad = 10, 1000, 4321
	b := setup(t)
	b.apply(paid(t, "first", "full", 1))
	if _, err := b.pool.Exec(t.Context(), `update accounts set balance = $1`, int64(math.MaxInt64)); err != nil {
		t.Fatal(err)
	}
	var c Committed
	var transactions int64
	var clean, halved time.Duration
	for n := range batches {
		events := make([]schema.Event, size)
		for i := range events {
			account := fmt.Sprintf("acct_%d", i%50)
			if n*size+i == bad {
				account = "full"
			}
			events[i] = paid(t, fmt.Sprintf("evt_%d", n*size+i), account, 1)
		}
		// Each transaction takes one connection from the pool.
		before, began := b.pool.Stat().AcquireCount(), time.Now()
		c = b.apply(events...)
		took, cost := time.Since(began), b.pool.Stat().AcquireCount()-before
		transactions += cost
		if n == bad/size {
			halved = took
			b.outcomes(c, map[Outcome]int64{Applied: size - 1, Quarantined: 1})
			if most := int64(2*bits.Len(size) + 2); cost > most {
				t.Errorf("transactions of the batch with the bad record: got %d, want at most %d", cost, most)
			}
			continue
		}
		clean += took / (batches - 1)
		b.outcomes(c, map[Outcome]int64{Applied: size})
		if cost != 1 {
			t.Errorf("transactions of batch %d: got %d, want 1", n, cost)
		}
	}
	t.Logf("1 bad record in %d: %d transactions instead of %d; its batch took %s, others %s",
		batches*size, transactions, batches, halved.Round(time.Millisecond), clean.Round(time.Millisecond))
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts where account_id <> 'full'`); got != batches*size-1 {
		t.Errorf("balances: got %d, want %d", got, batches*size-1)
	}
	if got := query1[string](t, b.pool, `select event_id || ' ' || reason from quarantined_events`); got != fmt.Sprintf("evt_%d balance_overflow", bad) {
		t.Errorf("in quarantine: got %s, want evt_%d", got, bad)
	}
}
