package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/commit"
	"hookledger/internal/ledger/memory"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

// always is for how many batches a ledger is wary that never trusts one.
const always = 1 << 40

// tables is everything that the ledger holds, but for the times at which it was written
// and the numbers that rows were given.
func (b *bundle) tables() string {
	b.tb.Helper()
	return query1[string](b.tb, b.pool, `select concat_ws(E'\n',
		'events', (select string_agg(concat_ws('|', generation, source, event_id, type, outcome, meaning, topic, partition, "offset",
			occurred_at, received_at, body_sha256), E'\n' order by event_key, generation) from processed_events),
		'entries', (select string_agg(concat_ws('|', movement_id, source, event_id, line, account_id, contra, currency, amount, rule,
			effect_key, event_key, occurred_at), E'\n' order by effect_key) from ledger_entries),
		'accounts', (select string_agg(concat_ws('|', account_id, currency, balance, entry_count), E'\n' order by account_id, currency) from accounts),
		'states', (select string_agg(concat_ws('|', source, object, status, rank, occurred_at, event_id), E'\n' order by source, object) from payment_states),
		'quarantine', (select string_agg(concat_ws('|', topic, partition, "offset", source, event_id, reason, detail, record_key, headers, body,
			resolution, resolved_by), E'\n' order by partition, "offset") from quarantined_events),
		'conflicts', (select string_agg(concat_ws('|', source, event_id, type, meaning, partition, "offset", body_sha256, body, first_partition,
			first_offset, first_meaning, first_body_sha256, resolution), E'\n' order by event_key, body_sha256) from event_conflicts),
		'progress', (select string_agg(concat_ws('|', topic, partition, from_offset, next_offset, leader_epoch), E'\n' order by partition) from consumer_progress),
		'incidents', (select string_agg(concat_ws('|', severity, kind, once_key, detail), E'\n' order by once_key) from incidents))`)
}

// mixed makes random records of one story, in which some meet what came before.
type mixed struct {
	tb   testing.TB
	rnd  *rand.Rand
	name string
	// told are the events so far, and records those of each partition.
	told    []schema.Event
	records map[int32][]Record
	// ignored are the IDs of events without money.
	ignored []string
}

// fresh is an event that nobody knows, about movements of its own.
func (m *mixed) fresh() schema.Event {
	id := fmt.Sprintf("%s_%d", m.name, len(m.told))
	var says body
	for line := range 1 + m.rnd.IntN(3) {
		says.Postings = append(says.Postings, pays(fmt.Sprintf("acc_%d", m.rnd.IntN(5)), 1+m.rnd.Int64N(9)-10*int64(line%2), fmt.Sprintf("%s/%d", id, line)))
	}
	return event(m.tb, id, says)
}

// says is what an earlier event says, any.
func (m *mixed) says() (id string, says body) {
	e := m.told[m.rnd.IntN(len(m.told))]
	if err := json.Unmarshal(e.Body, &says); err != nil {
		m.tb.Fatal(err)
	}
	return e.ID, says
}

// looksNew is an event that no look tells from a new one, but for those without money
// before: they are looked at again.
func (m *mixed) looksNew() schema.Event {
	e := m.fresh()
	switch m.rnd.IntN(8) {
	case 0:
		m.ignored = append(m.ignored, e.ID)
		return event(m.tb, e.ID, body{})
	case 1:
		if len(m.ignored) > 0 {
			id := m.ignored[m.rnd.IntN(len(m.ignored))]
			return event(m.tb, id, body{Postings: []schema.Posting{pays("late", 1, id)}})
		}
	}
	if len(m.told) == 0 || m.rnd.IntN(4) > 0 {
		return e
	}
	_, says := m.says() // another event's movements, now and then with other money
	if says.Bad = ""; len(says.Postings) > 0 && m.rnd.IntN(4) == 0 {
		says.Postings[0].Amount++
	}
	if says.Status = nil; m.rnd.IntN(3) == 0 {
		says.Postings = append(says.Postings, pays("own", 1, e.ID+"/own"))
	}
	return event(m.tb, e.ID, says)
}

// any is an event of any kind.
func (m *mixed) any() schema.Event {
	e := m.looksNew()
	if len(m.told) == 0 {
		return e
	}
	id, says := m.says()
	switch m.rnd.IntN(9) {
	case 0, 1: // once more, with the same bytes or others
		if m.rnd.IntN(2) == 0 {
			says.Envelope = fmt.Sprint(m.rnd.IntN(2))
		}
		return event(m.tb, id, says)
	case 2: // another meaning
		says.Postings = append(says.Postings, pays("other", 1, id+"/other"))
		return event(m.tb, id, says)
	case 3: // a status, with money or without, of this event or of one before
		if m.rnd.IntN(2) == 0 {
			id, says = e.ID, body{}
		}
		says.LatestWins = m.rnd.IntN(2) == 0
		says.Status = status(fmt.Sprintf("%s_%d", m.name, m.rnd.IntN(3)), "s", testNow.Add(time.Duration(m.rnd.IntN(5))*time.Minute), m.rnd.IntN(3))
		return event(m.tb, id, says)
	case 4: // poison for the mapping
		return event(m.tb, e.ID, body{Bad: schema.ReasonBadAmount})
	case 5: // and for the database
		return paid(m.tb, e.ID, "alice", schema.MaxAmount+1)
	}
	return e
}

// batch makes the next records of partition. Half of the batches look new.
func (m *mixed) batch(partition int32) []Record {
	one := m.looksNew
	if m.rnd.IntN(2) == 0 {
		one = m.any
	}
	var records []Record
	for range 1 + m.rnd.IntN(9) {
		e := one()
		m.told = append(m.told, e)
		r := record(int64(len(m.records[partition])), e)
		if r.Partition = partition; m.rnd.IntN(60) == 0 {
			r.Headers = nil // no event of ours
		}
		m.records[partition] = append(m.records[partition], r)
		records = append(records, r)
	}
	return records
}

// Whatever comes, in any order, with rotations, forgetting, replays and decisions of
// people between: a ledger that trusts each batch that looks new reports and holds what one
// does that trusts none.
func TestApply_TrustingOrWaryEndsInTheSameTables(t *testing.T) {
	t.Parallel()
	trusting, wary := setup(t), setup(t)
	both := []*bundle{trusting, wary}
	wary.ledger.wary.Store(always)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	walls := 0
	apply := func(records []Record) {
		t.Helper()
		trusting.ledger.wary.Store(0)
		var got [2]Committed
		for i, b := range both {
			b.start(records[0].Partition)
			batch := Batch{Position: testPosition, Start: records[0].Offset, Records: slices.Clone(records)}
			batch.Partition = records[0].Partition
			got[i] = b.applyBatch(batch)
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("partition %d from %d: got %+v of the one that trusts, %+v of the wary one", records[0].Partition, records[0].Offset, got[0], got[1])
		}
		if trusting.ledger.wary.Load() != 0 {
			walls++
		}
	}
	// decide has a person decide about the first record in quarantine.
	decide := func(discard bool) {
		var got [2]Resolved
		for i, b := range both {
			if query1[int64](t, b.pool, `select count(*) from quarantined_events where resolved_at is null`) == 0 {
				return
			}
			h := Held{ID: query1[int64](t, b.pool, `select id from quarantined_events where resolved_at is null order by partition, "offset" limit 1`)}
			if discard {
				got[i] = b.discard(h)
			} else {
				got[i] = b.retry(fixed, h, false)
			}
			got[i].Held = Held{}
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("a decision: got %+v and %+v", got[0], got[1])
		}
	}
	const stories, steps = 8, 14
	for story := range stories {
		m := &mixed{tb: t, rnd: rnd, name: fmt.Sprintf("s%d", story), records: map[int32][]Record{}}
		for range steps {
			partition := int32(2*story + rnd.IntN(2))
			switch rnd.IntN(10) {
			default:
				apply(m.batch(partition))
			case 6: // from the start again, each partition in one batch
				for _, b := range both {
					b.rewind()
				}
				for _, all := range []int32{2 * int32(story), 2*int32(story) + 1} {
					if len(m.records[all]) > 0 {
						apply(m.records[all])
					}
				}
			case 7:
				for _, b := range both {
					if r := b.ring(); !r.Full() {
						b.rotate()
					}
				}
			case 8:
				for _, b := range both {
					if r := b.ring(); r.Used() > 1 {
						b.forget()
					}
				}
			case 9:
				decide(rnd.IntN(2) == 0)
			}
		}
		if got, want := trusting.tables(), wary.tables(); got != want {
			t.Fatalf("story %d: the ledger that trusts holds\n%s\nthe wary one\n%s", story, got, want)
		}
		if t.Failed() {
			break
		}
	}
	for _, b := range both {
		b.lawful()
	}
	looked := always - wary.ledger.wary.Load()
	t.Logf("%d transactions looked all new, %d batches met a wall", looked, walls)
	if looked < stories || walls == 0 {
		t.Errorf("%d transactions looked all new and %d batches met a wall: this tests something easier", looked, walls)
	}
}

// Two workers have overlapping batches in flight, of the same events, with money or
// without, or of other events about the same movements, and each writes them on either
// path: each event, and each movement, once, and nobody waits for ever.
func TestApply_OverlapsInFlightOnBothPaths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := setupOn(t, b.pool)
	b.start(0)
	b.start(1)
	b.apply(paid(t, "gate", "zz", 1))
	type result struct {
		c   Committed
		err error
	}
	round, paying := 0, 0
	for _, overlap := range []string{"events", "ignored", "movements"} {
		for _, paths := range [][2]int64{{0, 0}, {0, always}, {always, 0}, {always, always}} {
			round++
			what := fmt.Sprintf("same %s, wary %v", overlap, paths)
			var first, second []schema.Event
			for i := range 12 {
				movement := fmt.Sprintf("%d/%d", round, i)
				fact := body{Postings: []schema.Posting{pays(fmt.Sprintf("acc_%d", i%3), 2, movement)}}
				id, again := "evt_"+movement, "evt_"+movement
				switch overlap {
				case "movements":
					again = "again_" + movement
				case "ignored":
					fact = body{}
				}
				first, second = append(first, event(t, id, fact)), slices.Insert(second, 0, event(t, again, fact))
			}
			// What only one of them has; and of the first, what the test holds it up with.
			first = append(first, paid(t, fmt.Sprintf("first_%d", round), "zz", 1))
			second = slices.Insert(second, 5, paid(t, fmt.Sprintf("second_%d", round), "zz", 1))
			batches := []Batch{b.batch(0, first...), b.batch(1, second...)}
			b.ledger.wary.Store(paths[0])
			other.ledger.wary.Store(paths[1])

			tx, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `select from accounts where account_id = 'zz' for update`); err != nil {
				t.Fatal(err)
			}
			results := [2]chan result{make(chan result, 1), make(chan result, 1)}
			for i, l := range []*Ledger{b.ledger, other.ledger} {
				go func() { // ends with the lock
					c, err := l.Apply(context.WithoutCancel(t.Context()), batches[i])
					results[i] <- result{c, err}
				}()
				waitsForLocks(t, b.pool, i+1)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			one, two := <-results[0], <-results[1]
			if err := errors.Join(one.err, two.err); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			known, of := Duplicate, map[Outcome]int64{Applied: 13}
			switch overlap {
			case "movements":
				known = SameEffect
			case "ignored":
				of = map[Outcome]int64{Applied: 1, Ignored: 12}
			}
			if overlap != "ignored" {
				paying += 12
			}
			b.outcomes(one.c, of)
			b.outcomes(two.c, map[Outcome]int64{Applied: 1, known: 12})
			if met := other.ledger.wary.Load() > 0; paths[1] == 0 && !met {
				t.Errorf("%s: the second met no wall: this tests something easier", what)
			}
			b.next[0], b.next[1] = one.c.Next(), two.c.Next()
		}
	}
	if got, want := b.balance("zz"), int64(1+2*round); got != want {
		t.Errorf("balance of the gate: got %d, want %d", got, want)
	}
	if got, want := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts where account_id like 'acc%'`), int64(2*paying); got != want {
		t.Errorf("sum of the others: got %d, want %d", got, want)
	}
	b.lawful()
}

// The same without a gate: two workers with batches that overlap in events, movements and
// accounts, in opposite orders, who trust each batch at first.
func TestApply_TrustingBatchesInOppositeOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workers := []*Ledger{b.ledger, New(b.pool, mapBody, Options{})}
	b.start(0)
	b.start(1)
	const rounds, size = 25, 40
	walls := 0
	for round := range rounds {
		var there, back []schema.Event
		for i := range size {
			id := fmt.Sprintf("evt_%d_%d", round, i)
			fact := body{Postings: []schema.Posting{
				pays(fmt.Sprintf("acc_%d", i%7), 2, id), pays(fmt.Sprintf("acc_%d", (i+3)%7), -1, id+"/fee")}}
			again := id
			if i%4 == 0 {
				again = id + "_again" // another event about the same
			}
			there, back = append(there, event(t, id, fact)), slices.Insert(back, 0, event(t, again, fact))
		}
		batches := []Batch{b.batch(0, there...), b.batch(1, back...)}
		done, errs, finished := make([]Committed, 2), make([]error, 2), make(chan int, 2)
		for i, l := range workers {
			l.wary.Store(0)
			go func() { // ends with its transactions
				done[i], errs[i] = l.Apply(t.Context(), batches[i])
				finished <- i
			}()
		}
		<-finished
		<-finished
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i, l := range workers {
			if l.wary.Load() > 0 {
				walls++
			}
			b.next[int32(i)] = done[i].Next()
		}
		if applied, same := done[0].Count(Applied)+done[1].Count(Applied), done[0].Count(SameEffect)+done[1].Count(SameEffect); applied != size || same != size/4 {
			t.Fatalf("round %d: got %d applied and %d of the same effect, want %d and %d", round, applied, same, size, size/4)
		}
	}
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); got != rounds*size {
		t.Errorf("sum of balances: got %d, want %d", got, rounds*size)
	}
	if got := query1[int64](t, b.pool, `select deadlocks from pg_stat_database where datname = current_database()`); got != 0 {
		t.Errorf("deadlocks: got %d, want 0", got)
	}
	t.Logf("%d batches met a wall", walls)
	b.lawful()
}

// Where all is written and committed in one round trip, too, a refusal at any statement
// leaves nothing, blames no record, and makes nobody wary; nor does a backend that dies.
func TestApply_TrustedBatchThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := []schema.Event{paid(t, "evt_1", "alice", 1), paid(t, "evt_2", "bob", 2)}
	for _, what := range []string{
		`raise exception ''as the test wants'' using errcode = ''53100''`,
		`raise exception ''as the test wants'' using errcode = ''40P01''`,
		`perform pg_terminate_backend(pg_backend_pid())`,
	} {
		for _, table := range []string{"processed_events_0", "ledger_entries", "accounts", "consumer_progress"} {
			batch := b.batch(0, events...)
			b.exec(b.pool, `create or replace function refuse() returns trigger language plpgsql as 'begin `+what+`; return new; end'`)
			b.exec(b.pool, `create trigger refuse before insert or update on `+table+` for each row execute function refuse()`)
			before := fingerprint(t, b.pool)
			c, err := b.ledger.Apply(t.Context(), batch)
			if err == nil || c.Next() != batch.Start || c.Records() != 0 {
				t.Fatalf("%s at %s: got next %d, %d records and error %v, want nothing and an error", what, table, c.Next(), c.Records(), err)
			}
			if _, ok := isDataError(err); ok || b.ledger.wary.Load() != 0 {
				t.Errorf("%s at %s: counts as bad data, or as known: %v", what, table, err)
			}
			b.exec(b.pool, `drop trigger refuse on `+table)
			if after := fingerprint(t, b.pool); after != before {
				t.Errorf("%s at %s: something of a failed transaction is visible", what, table)
			}
		}
	}
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 2})
	b.lawful()
}

// A worker gives up in the middle of the one round trip, COMMIT on its way already, and the
// server is told so or goes on. Whatever became of it: the same batch again, at once, beside
// what may still be running, and each event is applied once.
func TestApply_TrustedBatchThatIsGivenUpInFlight(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pgxpool.Config){"cancelled": nil, "left": commit.Pool} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupOn(t, open(t, testkit.LedgerURL(t), change))
			b.apply(paid(t, "gate", "zz", 1))
			batch := b.batch(0, paid(t, "evt_1", "alice", 5), paid(t, "evt_2", "zz", 1))
			tx, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `select from accounts where account_id = 'zz' for update`); err != nil {
				t.Fatal(err)
			}
			type result struct {
				c   Committed
				err error
			}
			first, second := make(chan result, 1), make(chan result, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			apply := func(ctx context.Context, into chan result) {
				c, err := b.ledger.Apply(ctx, batch)
				into <- result{c, err}
			}
			go apply(ctx, first) // ends with cancel
			waitsForLocks(t, b.pool, 1)
			cancel()
			if r := <-first; r.err == nil || r.c.Next() != batch.Start || r.c.Records() != 0 {
				t.Errorf("given up: got next %d, %d records and error %v, want nothing and an error", r.c.Next(), r.c.Records(), r.err)
			}
			go apply(context.WithoutCancel(t.Context()), second) // ends with the lock
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := <-second
			if r.err != nil {
				t.Fatal(r.err)
			}
			if applied, known := r.c.Count(Applied), r.c.Count(Duplicate); applied != 2 && known != 2 {
				t.Errorf("again: got %d applied and %d duplicates, want 2 of one", applied, known)
			}
			if alice, zz := b.balance("alice"), b.balance("zz"); alice != 5 || zz != 2 {
				t.Errorf("balances: got %d and %d, want 5 and 2", alice, zz)
			}
			b.lawful()
		})
	}
}

// One batch that meets a wall makes the next ones wary, so many of them, and then the
// ledger trusts again; errors of other kinds say nothing.
func TestLedger_TrustsAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if b.apply(paid(t, "evt_1", "alice", 1)); b.ledger.wary.Load() != 0 {
		t.Fatal("wary of the first batch")
	}
	told := func(id string) schema.Event {
		return event(t, id, body{Postings: []schema.Posting{pays("alice", 1, "evt_1")}})
	}
	b.outcomes(b.apply(told("again")), map[Outcome]int64{SameEffect: 1})
	for i := waryBatches; i > 1; i-- { // the second transaction of that batch does not count
		if got := b.ledger.wary.Load(); got != int64(i) {
			t.Fatalf("wary of %d batches more, want %d", got, i)
		}
		if i%2 == 0 { // whatever comes of it
			b.outcomes(b.apply(told(fmt.Sprintf("again_%d", i))), map[Outcome]int64{SameEffect: 1})
		} else {
			b.outcomes(b.apply(paid(t, fmt.Sprintf("new_%d", i), "alice", 1)), map[Outcome]int64{Applied: 1})
		}
	}
	if b.ledger.trusts() || !b.ledger.trusts() {
		t.Error("trusts too early, or is still wary")
	}
	for _, err := range []error{nil, errRace, context.Canceled, memory.ErrFull} {
		if b.ledger.warned(err); !b.ledger.trusts() {
			t.Errorf("wary because of %v", err)
		}
	}
}
