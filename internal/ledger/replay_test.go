package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hookledger/schema"
)

// replaying gives the bundle a row of replays.
func (b *bundle) replaying() *Replaying {
	b.tb.Helper()
	id := query1[int64](b.tb, b.pool, `
		insert into replays (attempt, started_at, beat_at, kind, state, cluster_id, topic, topic_id, plan_hash, requested_by, reason, plan)
		values (1, now(), now(), 'run', 'running', 'c', 't', gen_random_uuid(), 'h', 'tester', 'test', '{}') returning replay_id`)
	return &Replaying{ID: id, Attempt: 1}
}

// foresee surveys batches, one after the other.
func (b *bundle) foresee(batches ...Batch) (Counts, []Move, []Foreseen) {
	b.tb.Helper()
	s := b.ledger.NewSurvey()
	var counts Counts
	var each []Foreseen
	for _, batch := range batches {
		k, err := b.ledger.Look(b.tb.Context(), batch)
		if err != nil {
			b.tb.Fatal(err)
		}
		f, err := s.Add(b.tb.Context(), k)
		if err != nil {
			b.tb.Fatal(err)
		}
		counts.Add(f.Counts)
		each = append(each, f)
	}
	return counts, Totals(s.Moves()), each
}

// wild is a random event out of few IDs, objects and movements, so that they meet.
func wild(tb testing.TB, rnd *rand.Rand, run int) schema.Event {
	id := fmt.Sprintf("r%d_%d", run, rnd.IntN(12))
	var c body
	for range rnd.IntN(3) {
		c.Postings = append(c.Postings, schema.Posting{Account: fmt.Sprintf("r%d_%d", run, rnd.IntN(3)), Contra: "external:acme", Amount: 1 + rnd.Int64N(2),
			Currency: []string{"EUR", "USD"}[rnd.IntN(2)], Rule: "payment", Movement: fmt.Sprintf("r%d_%d", run, rnd.IntN(8))})
	}
	if rnd.IntN(3) == 0 {
		c.Status = &schema.Status{Object: fmt.Sprintf("r%d_%d", run, rnd.IntN(3)), Status: []string{"new", "paid"}[rnd.IntN(2)],
			OccurredAt: testNow.Add(time.Duration(rnd.IntN(4)) * time.Minute)}
		c.LatestWins = rnd.IntN(2) == 0
	}
	if rnd.IntN(10) == 0 {
		c.Bad = "bad_amount"
	}
	if rnd.IntN(4) == 0 {
		c.Envelope = fmt.Sprint(rnd.IntN(2))
	}
	return event(tb, id, c)
}

// What a survey foresees is what a replay then does: by outcome, by currency, batch by
// batch; and a batch that would change nothing changes nothing.
func TestSurvey_ForeseesWhatReplayDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := b.replaying()
	for run := range 20 {
		var events []schema.Event
		for range 10 + rnd.IntN(40) {
			events = append(events, wild(t, rnd, run))
		}
		// Some of them were applied before, some of those stand in quarantine.
		before := b.batch(int32(run), events[:rnd.IntN(len(events))]...)
		b.applyBatch(before)
		all := slices.Clone(before.Records)
		for i, e := range events {
			if len(before.Records) <= i {
				one := record(before.Start+int64(i), e)
				one.Partition = before.Partition
				all = append(all, one)
			}
		}
		var batches []Batch
		for len(all) > 0 {
			n := 1 + rnd.IntN(len(all))
			one := Batch{Position: before.Position, Start: all[0].Offset, From: all[0].Offset, Records: all[:n]}
			batches, all = append(batches, one), all[n:]
		}
		want, moves, each := b.foresee(batches...)
		var got Counts
		money := func() map[string]int64 {
			m := map[string]int64{}
			for _, c := range []string{"EUR", "USD"} {
				m[c] = query1[int64](t, b.pool, `select coalesce(sum(balance), 0)::bigint from accounts where currency = $1`, c)
			}
			return m
		}
		stood := money()
		for i, batch := range batches {
			rows := func() string {
				return query1[string](t, b.pool, `select concat_ws(',', (select sum(processed_at - '2000-01-01') from processed_events),
					(select count(*) from ledger_entries), (select count(*) from event_conflicts), (select count(*) from quarantined_events where resolved_at is null),
					(select sum(updated_at - '2000-01-01') from payment_states))`)
			}
			was := ""
			if !each[i].Changes {
				was = rows()
			}
			c, err := b.ledger.Replay(t.Context(), batch, r)
			if err != nil {
				t.Fatal(err)
			}
			got.Add(c.Counts())
			if c.Counts() != each[i].Counts {
				t.Errorf("run %d, batch %d: got %v, foreseen %v", run, i, c.Counts(), each[i].Counts)
			}
			if !each[i].Changes {
				if now := rows(); now != was {
					t.Errorf("run %d, batch %d was to change nothing: got %s, want %s", run, i, now, was)
				}
			}
		}
		if got != want {
			t.Errorf("run %d: got %v, foreseen %v", run, got, want)
		}
		now := money()
		for _, c := range []string{"EUR", "USD"} {
			foreseen := int64(0)
			for _, m := range moves {
				if m.Currency == c {
					foreseen = m.Amount
				}
			}
			if moved := now[c] - stood[c]; moved != foreseen {
				t.Errorf("run %d: %d %s moved, foreseen %d", run, moved, c, foreseen)
			}
		}
		if t.Failed() {
			break
		}
	}
	b.lawful()
}

func TestReplay_CountsItselfInTheTransactionThatDidIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.replaying()
	r.Skipped[Duplicate] = 7
	batch := b.batch(0, paid(t, "e1", "alice", 5), paid(t, "e2", "bob", 6), event(t, "e3", body{Bad: "bad_amount"}))
	if _, err := b.ledger.Replay(t.Context(), batch, r); err != nil {
		t.Fatal(err)
	}
	row := func() string {
		return query1[string](t, b.pool, `select concat_ws(' ', partition, next_offset, records, applied, quarantined, duplicate,
			(select string_agg(m.amount || ' ' || m.currency, ',') from replay_moves m where m.replay_id = r.replay_id)) from replays r`)
	}
	if got, want := row(), "0 3 10 2 1 7 11 EUR"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The answer to COMMIT was lost: the same batch again is told so, and nothing counts twice.
	if _, err := b.ledger.Replay(t.Context(), batch, r); !errors.Is(err, ErrPositionMoved) {
		t.Errorf("got %v, want ErrPositionMoved", err)
	}
	r.Skipped[Duplicate] = 2
	for range 2 {
		if err := b.ledger.Pass(t.Context(), r, 1, 9); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := row(), "1 9 12 2 1 9 11 EUR"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := query1[int64](t, b.pool, `select count(*) from consumer_progress where next_offset > 0`); got != 0 {
		t.Error("a replay moved the progress")
	}
}

func TestReplay_IsOfOneAttemptAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.replaying()
	if _, err := b.pool.Exec(t.Context(), `update replays set attempt = 2`); err != nil {
		t.Fatal(err)
	}
	batch := b.batch(0, paid(t, "e1", "alice", 5))
	if _, err := b.ledger.Replay(t.Context(), batch, r); !errors.Is(err, ErrReplayTaken) {
		t.Errorf("got %v, want ErrReplayTaken", err)
	}
	if err := b.ledger.Pass(t.Context(), r, 0, 1); !errors.Is(err, ErrReplayTaken) {
		t.Errorf("got %v, want ErrReplayTaken", err)
	}
	r.Attempt = 2
	if _, err := b.ledger.Replay(t.Context(), batch, r); err != nil {
		t.Error(err)
	}
	if got := b.balance("alice"); got != 5 {
		t.Errorf("got balance %d, want 5", got)
	}
}

// Records between those that are replayed keep their place in quarantine.
func TestReplay_ResolvesTheRecordsThatItAppliedAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(0, event(t, "e1", body{Bad: "bad_amount"}), event(t, "e2", body{Bad: "bad_amount"}), event(t, "e3", body{Bad: "bad_amount"}))
	b.applyBatch(batch)
	fixed := New(b.pool, func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }, Options{})
	batch.Records = []Record{batch.Records[0], batch.Records[2]}
	if _, err := fixed.Replay(t.Context(), batch, b.replaying()); err != nil {
		t.Fatal(err)
	}
	if got := query1[string](t, b.pool, `select string_agg(coalesce(resolution, 'held'), ' ' order by "offset") from quarantined_events`); got != "replayed held replayed" {
		t.Errorf("got %s", got)
	}
}

func TestReplay_NeverQuarantinesWhatAnotherConfigurationCanRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "e2", "alice", 5)
	e.Source = "elsewhere"
	batch := b.batch(0, paid(t, "e1", "alice", 5), e)
	var wait *WaitError
	if _, err := b.ledger.Replay(t.Context(), batch, b.replaying()); !errors.As(err, &wait) || wait.Offset != 1 {
		t.Errorf("got %v, want a WaitError at 1", err)
	}
	if b.count("incidents") != 0 || b.count("quarantined_events") != 0 {
		t.Error("a replay raised an incident for a partition that does not wait")
	}
	k, err := b.ledger.Look(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ledger.NewSurvey().Add(context.Background(), k); !errors.As(err, &wait) {
		t.Errorf("survey: got %v, want a WaitError", err)
	}
}
