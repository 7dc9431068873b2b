package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

// fixed is mapBody as it is after somebody mended it: what was bad pays what it says.
func fixed(e *schema.Event) (schema.Meaning, error) {
	m, err := mapBody(e)
	var bad *schema.MappingError
	if errors.As(err, &bad) {
		return schema.Meaning{Postings: []schema.Posting{pays("alice", 7, e.ID)}}, nil
	}
	return m, err
}

// held is the number of the first record in quarantine that is not resolved.
func (b *bundle) held() Held {
	b.tb.Helper()
	return Held{ID: query1[int64](b.tb, b.pool, `select min(id) from quarantined_events where resolved_at is null`)}
}

func (b *bundle) heldConflict(id string) Held {
	b.tb.Helper()
	return Held{Conflict: true, ID: query1[int64](b.tb, b.pool, `select conflict_id from event_conflicts where resolved_at is null and event_id = $1`, id)}
}

func (b *bundle) retry(m Mapper, h Held, dryRun bool) Resolved {
	b.tb.Helper()
	r, err := New(b.pool, m, Options{}).Retry(b.tb.Context(), h, Decision{By: "alice", Reason: "fixed", DryRun: dryRun})
	if err != nil {
		b.tb.Fatal(err)
	}
	return r
}

func (b *bundle) discard(h Held) Resolved {
	b.tb.Helper()
	r, err := b.ledger.Discard(b.tb.Context(), h, Decision{By: "alice", Reason: "a test event"})
	if err != nil {
		b.tb.Fatal(err)
	}
	return r
}

// trace is who resolved what in quarantine, how and why.
func (b *bundle) trace(table string) string {
	b.tb.Helper()
	return query1[string](b.tb, b.pool, `select coalesce(string_agg(concat_ws(' ', resolution, resolved_by, resolved_reason), ', ' order by resolved_at), 'none') from `+table+` where resolved_at is not null`)
}

func TestRetry_AfterAFixIsAFirstApplication(t *testing.T) {
	t.Parallel()
	b := setupOn(t, as(t, testkit.LedgerURL(t), "hookledger_operator"))
	events := []schema.Event{paid(t, "before", "bob", 1), event(t, "bad", body{Bad: schema.ReasonBadAmount}), paid(t, "after", "bob", 2)}
	b.apply(events...)
	h := b.held()
	progress := func() string {
		return query1[string](t, b.pool, `select string_agg(p::text, ',') from consumer_progress p`)
	}
	before := progress()

	if r := b.retry(mapBody, h, false); !r.Stays || r.Outcome != Quarantined || r.Reason != schema.ReasonBadAmount || r.EventID != "bad" || r.Source != "acme" {
		t.Errorf("nothing was mended: got %+v", r)
	}
	if r := b.retry(fixed, h, true); r.Outcome != Applied || fmt.Sprint(r.Moves) != "[{alice EUR 7}]" {
		t.Errorf("dry run: got %+v", r)
	}
	if b.balance("alice") != 0 || b.outcome("bad") != "none" || b.trace("quarantined_events") != "none" {
		t.Error("a retry that stays, or a dry run, changed something")
	}
	if r := b.retry(fixed, h, false); r.Stays || r.Outcome != Applied || fmt.Sprint(r.Moves) != "[{alice EUR 7}]" {
		t.Errorf("got %+v", r)
	}
	if got := b.trace("quarantined_events"); got != "retried alice fixed" {
		t.Errorf("trace: got %q", got)
	}
	if b.balance("alice") != 7 || b.outcome("bad") != "applied" {
		t.Errorf("got balance %d, outcome %s", b.balance("alice"), b.outcome("bad"))
	}
	if got := progress(); got != before {
		t.Errorf("progress: got %s, want %s untouched", got, before)
	}
	_, err := b.ledger.Retry(t.Context(), h, Decision{By: "bob"})
	if !errors.Is(err, ErrResolvedBefore) {
		t.Errorf("again: got %v, want ErrResolvedBefore", err)
	}
	if _, err := b.ledger.Retry(t.Context(), Held{ID: 99}, Decision{By: "bob"}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("unknown: got %v, want ErrNotHeld", err)
	}

	// A replay finds all of it done, under either mapping.
	for _, m := range []Mapper{mapBody, fixed} {
		b.ledger = New(b.pool, m, Options{})
		b.rewind()
		b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 3})
	}
	if got := b.trace("quarantined_events"); got != "retried alice fixed" {
		t.Errorf("trace after replays: got %q", got)
	}
	b.lawful()
}

func TestRetry_MeetsTheWalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// Two events tell of one movement, with other money and with equal money.
	b.apply(event(t, "one", body{Postings: []schema.Posting{pays("bob", 5, "m1")}}),
		event(t, "two", body{Postings: []schema.Posting{pays("bob", 6, "m1")}}))
	h := b.held()
	if r := b.retry(mapBody, h, false); !r.Stays || r.Reason != reasonEffectMismatch {
		t.Errorf("got %+v, want effect_mismatch", r)
	}
	equal := func(*schema.Event) (schema.Meaning, error) {
		return schema.Meaning{Postings: []schema.Posting{pays("bob", 5, "m1")}}, nil
	}
	if r := b.retry(equal, h, false); r.Outcome != SameEffect || len(r.Moves) != 0 {
		t.Errorf("got %+v, want same_effect", r)
	}
	// Data that Postgres refuses stays, too.
	b.apply(paid(t, "huge", "bob", schema.MaxAmount+1))
	if r := b.retry(mapBody, b.held(), false); !r.Stays || r.Reason != reasonRefused {
		t.Errorf("got %+v, want refused_by_database", r)
	}
	if got := b.balance("bob"); got != 5 {
		t.Errorf("balance: got %d, want 5", got)
	}
	b.lawful()
}

func TestRetry_OfAnUnknownSourceSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(event(t, "bad", body{Bad: schema.ReasonBadAmount}))
	unknown := func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, schema.ErrUnknownSource }
	_, err := New(b.pool, unknown, Options{}).Retry(t.Context(), b.held(), Decision{By: "alice"})
	var wait *WaitError
	if !errors.As(err, &wait) || wait.Kind != KindUnknownSource {
		t.Errorf("got %v, want a *WaitError", err)
	}
	if n := b.count("incidents"); n != 0 {
		t.Errorf("%d incidents, want none: nobody waits", n)
	}
}

func TestRetry_ByManyBesideAReplayAppliesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 40
	var events []schema.Event
	for i := range n {
		events = append(events, event(t, fmt.Sprintf("bad_%d", i), body{Bad: schema.ReasonBadAmount}))
	}
	b.apply(events...)
	var ids []int64
	for i := range n {
		ids = append(ids, query1[int64](t, b.pool, `select id from quarantined_events where "offset" = $1`, i))
	}
	b.rewind()
	batch := b.batch(0, events...)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			core := New(b.pool, fixed, Options{})
			for _, id := range ids {
				_, err := core.Retry(context.Background(), Held{ID: id}, Decision{By: "alice"})
				if err != nil && !errors.Is(err, ErrResolvedBefore) {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		core := New(b.pool, fixed, Options{})
		for at := range int64(n) {
			one := batch
			one.Start, one.Records = at, batch.Records[at:at+1]
			for {
				_, err := core.Apply(context.Background(), one)
				if err == nil {
					break
				}
				if !isTransient(err) {
					t.Error(err)
					return
				}
			}
		}
	})
	all.Wait()
	if got := b.balance("alice"); got != 7*n {
		t.Errorf("balance: got %d, want %d", got, 7*n)
	}
	if open := query1[int64](t, b.pool, `select count(*) from quarantined_events where resolved_at is null`); open != 0 {
		t.Errorf("%d still in quarantine", open)
	}
	b.lawful()
}

func TestDiscard_BlocksAReplay(t *testing.T) {
	t.Parallel()
	b := setupOn(t, as(t, testkit.LedgerURL(t), "hookledger_operator"))
	bad := event(t, "bad", body{Bad: schema.ReasonBadAmount})
	b.apply(bad)
	if r := b.discard(b.held()); r.Outcome != Discarded || r.Stays {
		t.Errorf("got %+v", r)
	}
	if b.outcome("bad") != "discarded" || b.trace("quarantined_events") != "discarded alice a test event" {
		t.Errorf("got outcome %s, trace %q", b.outcome("bad"), b.trace("quarantined_events"))
	}
	b.ledger = New(b.pool, fixed, Options{})
	b.rewind()
	b.outcomes(b.apply(bad), map[Outcome]int64{Duplicate: 1})
	// Other bytes of the event do not slip by either: they are kept beside it.
	b.outcomes(b.apply(paid(t, "bad", "alice", 3)), map[Outcome]int64{Conflict: 1})
	if got := b.balance("alice"); got != 0 {
		t.Errorf("balance: got %d, want 0", got)
	}
	b.lawful()
}

func TestDiscard_OfWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(0, paid(t, "torn", "alice", 1))
	batch.Records[0].Value = []byte("torn") // no longer what its hash says
	b.applyBatch(batch)
	if r := b.discard(b.held()); r.Outcome != Discarded {
		t.Errorf("got %+v", r)
	}
	b.rewind()
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Quarantined: 1})
	if got := b.trace("quarantined_events"); got != "discarded alice a test event" || b.count("quarantined_events") != 1 {
		t.Errorf("trace after a replay: got %q", got)
	}
	// The record was damaged; the event, delivered again, was not discarded.
	b.outcomes(b.apply(paid(t, "torn", "alice", 1)), map[Outcome]int64{Applied: 1})
}

func TestDiscard_LeavesWhatStands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(event(t, "evt", body{Bad: schema.ReasonBadAmount}), paid(t, "evt", "alice", 4))
	if b.outcome("evt") != "applied" {
		t.Fatalf("got %s", b.outcome("evt"))
	}
	b.discard(b.held())
	if b.outcome("evt") != "applied" || b.balance("alice") != 4 {
		t.Errorf("got outcome %s, balance %d", b.outcome("evt"), b.balance("alice"))
	}
	// An event that is on record without money takes the decision.
	b.apply(event(t, "note", body{}))
	worth := New(b.pool, func(*schema.Event) (schema.Meaning, error) {
		return schema.Meaning{Postings: []schema.Posting{pays("alice", schema.MaxAmount+1, "m")}}, nil
	}, Options{})
	b.ledger, b.next[0] = worth, 2
	if _, err := b.pool.Exec(t.Context(), `update consumer_progress set next_offset = 2, from_offset = 2`); err != nil {
		t.Fatal(err)
	}
	b.outcomes(b.apply(event(t, "note", body{})), map[Outcome]int64{Quarantined: 1})
	b.discard(b.held())
	if got := b.outcome("note"); got != "discarded" {
		t.Errorf("got %s, want discarded", got)
	}
	b.lawful()
}

func TestConflict_RetryAndDiscard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := paid(t, "evt", "alice", 4), paid(t, "evt", "alice", 5)
	b.apply(first, second, paid(t, "other", "alice", 1), paid(t, "other", "alice", 2))
	h := b.heldConflict("evt")
	if r := b.retry(mapBody, h, false); !r.Stays || r.Outcome != Conflict {
		t.Errorf("got %+v, want it to stay", r)
	}
	same := func(e *schema.Event) (schema.Meaning, error) { return mapBody(&first) }
	if r := b.retry(same, h, false); r.Stays || r.Outcome != Duplicate {
		t.Errorf("got %+v, want duplicate: it means the same today", r)
	}
	b.discard(b.heldConflict("other"))
	if got := b.trace("event_conflicts"); got != "retried alice fixed, discarded alice a test event" {
		t.Errorf("trace: got %q", got)
	}
	if got := b.balance("alice"); got != 5 || b.outcome("other") != "applied" {
		t.Errorf("balance: got %d, want 5", got)
	}
	b.rewind()
	b.outcomes(b.apply(first, second), map[Outcome]int64{Duplicate: 1, Conflict: 1})
	if n := query1[int64](t, b.pool, `select count(*) from event_conflicts where resolved_at is null`); n != 0 {
		t.Errorf("%d conflicts came back with a replay", n)
	}
	b.lawful()
}

func TestDecodeHeaders_KeepsEveryByte(t *testing.T) {
	t.Parallel()
	want := []schema.Header{{Key: "a", Value: []byte("x")}, {Key: "a", Value: []byte{0, 1, 0xff}}, {Key: "k\x00", Value: []byte("é")}, {Key: "", Value: []byte{}}}
	got, err := DecodeHeaders(encodeHeaders(want))
	if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}
