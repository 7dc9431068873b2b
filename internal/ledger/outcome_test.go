package ledger

import (
	"slices"
	"testing"
	"time"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

func TestApply_IgnoresAnEventWithoutMoney(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.outcomes(b.apply(event(t, "evt_1", body{})), map[Outcome]int64{Ignored: 1})
	if got := b.outcome("evt_1"); got != "ignored" {
		t.Errorf("outcome: got %s, want ignored", got)
	}
	b.lawful()
}

func TestApply_SecondDeliveryIsDuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", 500)
	b.outcomes(b.apply(e), map[Outcome]int64{Applied: 1})
	b.outcomes(b.apply(e, e), map[Outcome]int64{Duplicate: 2})
	if got := b.balance("alice"); got != 500 {
		t.Errorf("balance: got %d, want 500", got)
	}
	b.lawful()
}

func TestApply_EventTwiceInOneBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", 500)
	b.outcomes(b.apply(e, paid(t, "evt_2", "alice", 1), e, e), map[Outcome]int64{Applied: 2, Duplicate: 2})
	if got := b.balance("alice"); got != 501 {
		t.Errorf("balance: got %d, want 501", got)
	}
	b.lawful()
}

func TestApply_TwoDeltasForOneAccountInOneBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(paid(t, "evt_1", "alice", 10))
	b.apply(paid(t, "evt_2", "alice", 5), paid(t, "evt_3", "alice", 10), paid(t, "evt_4", "alice", -2),
		event(t, "evt_5", body{Postings: []schema.Posting{pays("alice", 3, "m5"), pays("bob", 4, "m5"), pays("alice", -1, "m5")}}))
	if got := b.balance("alice"); got != 25 {
		t.Errorf("balance of alice: got %d, want 25", got)
	}
	if got := b.balance("bob"); got != 4 {
		t.Errorf("balance of bob: got %d, want 4", got)
	}
	b.lawful()
}

func TestApply_SameIDsOfOtherSourcesAreOtherEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := paid(t, "evt_1", "alice", 10), paid(t, "evt_1", "alice", 10)
	two.Source = "globex"
	b.outcomes(b.apply(one, two), map[Outcome]int64{Applied: 2})
	b.lawful()
}

func TestApply_ReplayDoesNotDependOnTodaysMapping(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := []schema.Event{paid(t, "evt_1", "alice", 10), paid(t, "evt_2", "bob", 10)}
	b.apply(events...)
	b.ledger = New(b.pool, func(e *schema.Event) (schema.Meaning, error) {
		t.Errorf("event %s was mapped again", e.ID)
		return schema.Meaning{}, nil
	}, Options{})
	b.rewind()
	b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 2})
}

func TestApply_IgnoredEventIsAppliedAfterTheMappingIsFixed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := []schema.Event{paid(t, "evt_1", "alice", 10), paid(t, "evt_2", "bob", 20)}
	b.ledger.mapper = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
	b.outcomes(b.apply(events...), map[Outcome]int64{Ignored: 2})
	b.rewind()
	b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 2})
	b.rewind()
	b.ledger.mapper = mapBody
	b.outcomes(b.apply(append(events, events[0])...), map[Outcome]int64{Applied: 2, Duplicate: 1})
	b.rewind()
	b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 2})
	if got := b.balance("bob"); got != 20 {
		t.Errorf("balance: got %d, want 20", got)
	}
	b.lawful()
}

// An entry of today whose event sat in an old generation would stand alone as soon as
// that generation is forgotten.
func TestApply_IgnoredEventThatIsAppliedMovesToTheOpenGeneration(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b, owner := setupOn(t, as(t, url, "hookledger_worker")), open(t, url, nil)
	events := []schema.Event{paid(t, "evt_1", "alice", 10), paid(t, "evt_2", "bob", 20)}
	b.ledger.mapper = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
	b.outcomes(b.apply(events...), map[Outcome]int64{Ignored: 2})
	for _, sql := range []string{
		`update event_ring set open_generation = 1`,
		// From the instant of the rotation: evt_2 has a row in both.
		`insert into processed_events
			select "offset", received_at, processed_at, occurred_at, event_key, meaning, partition, 1::smallint, body_sha256, outcome, source, event_id, type, topic
			  from processed_events where event_id = 'evt_2'`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	b.rewind()
	b.ledger.mapper = mapBody
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 2})
	for id, want := range map[string]int{"evt_1": 1, "evt_2": 1} {
		var generations int
		if err := owner.QueryRow(t.Context(), `select count(*) from processed_events
			where event_id = $1 and outcome = 'applied' and generation = 1`, id).Scan(&generations); err != nil {
			t.Fatal(err)
		}
		if generations != want {
			t.Errorf("%s: got %d applied rows in the open generation, want %d", id, generations, want)
		}
	}
	b.rewind()
	b.outcomes(b.apply(events...), map[Outcome]int64{Duplicate: 2})
	if got := b.balance("bob"); got != 20 {
		t.Errorf("balance: got %d, want 20", got)
	}
}

func TestApply_ChangedEnvelopeIsDuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := body{Postings: []schema.Posting{pays("alice", 5, "m")}}
	two := one
	two.Envelope = "attempt 2"
	c := b.apply(event(t, "evt_1", one), event(t, "evt_1", two))
	b.outcomes(c, map[Outcome]int64{Applied: 1, Duplicate: 1})
	if c.BodyChanged() != 1 {
		t.Errorf("body changed: got %d, want 1", c.BodyChanged())
	}
	c = b.apply(event(t, "evt_1", two))
	b.outcomes(c, map[Outcome]int64{Duplicate: 1})
	if c.BodyChanged() != 1 || b.count("event_conflicts") != 0 {
		t.Errorf("body changed: got %d and %d conflicts, want 1 and none", c.BodyChanged(), b.count("event_conflicts"))
	}
	b.lawful()
}

func TestApply_OtherMeaningIsConflict(t *testing.T) {
	t.Parallel()
	for _, inOneBatch := range []bool{true, false} {
		b := setup(t)
		first, second := paid(t, "evt_1", "alice", 5), paid(t, "evt_1", "alice", 50)
		if inOneBatch {
			b.outcomes(b.apply(first, second, second), map[Outcome]int64{Applied: 1, Conflict: 2})
		} else {
			b.outcomes(b.apply(first), map[Outcome]int64{Applied: 1})
			b.outcomes(b.apply(second, second), map[Outcome]int64{Conflict: 2})
		}
		var hash, firstHash, kept []byte
		var firstOffset int64
		if err := b.pool.QueryRow(t.Context(), `select body_sha256, first_body_sha256, body, first_offset from event_conflicts`).
			Scan(&hash, &firstHash, &kept, &firstOffset); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(hash, second.BodySHA256[:]) || !slices.Equal(firstHash, first.BodySHA256[:]) ||
			!slices.Equal(kept, second.Body) || firstOffset != 0 {
			t.Errorf("conflict: got %x %x %s %d, want both hashes, the second body, and offset 0", hash, firstHash, kept, firstOffset)
		}
		b.rewind()
		b.ledger.mapper = func(e *schema.Event) (schema.Meaning, error) {
			t.Errorf("event %s was mapped again", e.ID)
			return schema.Meaning{}, nil
		}
		b.outcomes(b.apply(first, second), map[Outcome]int64{Duplicate: 1, Conflict: 1})
		if got := b.balance("alice"); got != 5 || b.count("event_conflicts") != 1 {
			t.Errorf("got balance %d and %d conflicts, want 5 and 1", got, b.count("event_conflicts"))
		}
		b.lawful()
	}
}

func TestApply_UnreadableBodyOfAKnownEventIsConflict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(paid(t, "evt_1", "alice", 5))
	b.outcomes(b.apply(event(t, "evt_1", body{Bad: schema.ReasonBadAmount})), map[Outcome]int64{Conflict: 1})
	if b.count("quarantined_events") != 0 {
		t.Error("a known event went to quarantine")
	}
}

func TestApply_IgnoredEventDoesNotBlockMoneyUnderItsID(t *testing.T) {
	t.Parallel()
	for _, inOneBatch := range []bool{true, false} {
		b := setup(t)
		pending, done := event(t, "evt_1", body{}), paid(t, "evt_1", "alice", 5)
		if inOneBatch {
			b.outcomes(b.apply(pending, done), map[Outcome]int64{Ignored: 1, Applied: 1})
		} else {
			b.apply(pending)
			b.outcomes(b.apply(done), map[Outcome]int64{Applied: 1})
		}
		if got := b.outcome("evt_1"); got != "applied" {
			t.Errorf("outcome: got %s, want applied", got)
		}
		b.lawful()
	}
}

func TestApply_DiscardedEventBlocks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", 5)
	b.ledger.mapper = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
	b.apply(e)
	if _, err := b.pool.Exec(t.Context(), `update processed_events set outcome = 'discarded'`); err != nil {
		t.Fatal(err)
	}
	b.ledger.mapper = mapBody
	b.rewind()
	latest := event(t, "evt_1", body{LatestWins: true, Status: &schema.Status{Object: "o", Status: "s", OccurredAt: testNow}})
	b.outcomes(b.apply(e, paid(t, "evt_1", "alice", 6), latest), map[Outcome]int64{Duplicate: 1, Conflict: 2})
	if b.count("ledger_entries") != 0 || b.count("payment_states") != 0 {
		t.Error("a discarded event moved something")
	}
}

func TestApply_TwoEventsOfOneMovement(t *testing.T) {
	t.Parallel()
	for _, inOneBatch := range []bool{true, false} {
		b := setup(t)
		same := body{Postings: []schema.Posting{pays("alice", 5, "movement")}}
		one, two := event(t, "evt_1", same), event(t, "evt_2", same)
		if inOneBatch {
			b.outcomes(b.apply(one, two, two), map[Outcome]int64{Applied: 1, SameEffect: 1, Duplicate: 1})
		} else {
			b.apply(one)
			b.outcomes(b.apply(two, two), map[Outcome]int64{SameEffect: 1, Duplicate: 1})
		}
		if got := b.outcome("evt_2"); got != "same_effect" {
			t.Errorf("outcome: got %s, want same_effect", got)
		}
		if got := b.balance("alice"); got != 5 {
			t.Errorf("balance: got %d, want 5", got)
		}
		b.lawful()
	}
}

func TestApply_EventWithOnePostingOfAnotherIsApplied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(event(t, "evt_1", body{Postings: []schema.Posting{pays("alice", 5, "m1")}}))
	c := b.apply(event(t, "evt_2", body{Postings: []schema.Posting{pays("alice", 5, "m1"), pays("alice", -1, "fee")}}))
	b.outcomes(c, map[Outcome]int64{Applied: 1})
	if got := b.balance("alice"); got != 4 {
		t.Errorf("balance: got %d, want 4", got)
	}
	b.lawful()
}

func TestApply_OtherMoneyForOneMovementIsQuarantined(t *testing.T) {
	t.Parallel()
	for _, inOneBatch := range []bool{true, false} {
		b := setup(t)
		one := event(t, "evt_1", body{Postings: []schema.Posting{pays("alice", 5, "m1")}})
		two := event(t, "evt_2", body{Postings: []schema.Posting{pays("alice", 6, "m1")}})
		other := paid(t, "evt_3", "bob", 1)
		if inOneBatch {
			b.outcomes(b.apply(one, two, two, other), map[Outcome]int64{Applied: 2, Quarantined: 2})
		} else {
			b.apply(one)
			b.outcomes(b.apply(two, two, other), map[Outcome]int64{Applied: 1, Quarantined: 2})
		}
		if got := query1[string](t, b.pool, `select distinct reason from quarantined_events`); got != "effect_mismatch" {
			t.Errorf("reason: got %s, want effect_mismatch", got)
		}
		if got := b.outcome("evt_2"); got != "none" {
			t.Errorf("outcome of what is in quarantine: got %s, want none", got)
		}
		b.lawful()
	}
}

// What the memory forgot, the ledger still knows, whatever the mapping says now.
func TestApply_ForgottenEventMovesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := event(t, "evt_1", body{Postings: []schema.Posting{pays("alice", 5, "m1"), pays("alice", 2, "m2")}})
	b.apply(e)
	forget := func(count int) {
		if _, err := b.pool.Exec(t.Context(), `truncate processed_events_0`); err != nil {
			t.Fatal(err)
		}
		if _, err := b.pool.Exec(t.Context(), `update event_ring set forgotten_count = $1`, count); err != nil {
			t.Fatal(err)
		}
	}
	forget(1)
	b.rewind()
	b.outcomes(b.apply(e, paid(t, "evt_2", "bob", 1)), map[Outcome]int64{Duplicate: 1, Applied: 1})

	// In the instant of a rotation nobody has noticed yet: the walls alone hold.
	forget(0)
	b.rewind()
	b.outcomes(b.apply(e), map[Outcome]int64{Applied: 1})
	forget(0)
	b.rewind()
	changed := func(e *schema.Event) (schema.Meaning, error) {
		return schema.Meaning{Postings: []schema.Posting{pays("alice", 9, "renamed"), pays("alice", 9, "m1")}}, nil
	}
	b.ledger.mapper = changed
	b.outcomes(b.apply(e), map[Outcome]int64{Applied: 1})
	if got := b.balance("alice"); got != 7 {
		t.Errorf("balance: got %d, want 7", got)
	}
	b.lawful()
}

func TestApply_EventInTwoGenerationsIsWhatBlocks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", 5)
	b.apply(e)
	if _, err := b.pool.Exec(t.Context(), `insert into processed_events
		select "offset", received_at, processed_at, occurred_at, event_key, meaning, partition, 1::smallint, body_sha256, 'ignored', source, event_id, type, topic
		  from processed_events`); err != nil {
		t.Fatal(err)
	}
	b.rewind()
	b.outcomes(b.apply(e), map[Outcome]int64{Duplicate: 1})
}

func status(object, s string, at time.Time, rank int) *schema.Status {
	return &schema.Status{Object: object, Status: s, Rank: rank, OccurredAt: at}
}

func TestApply_StatesMoveByTimeAndRankInEveryOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	says := []*schema.Status{
		status("", "created", testNow, 1), status("", "pending", testNow.Add(time.Second), 2),
		status("", "paid", testNow.Add(2*time.Second), 3), status("", "disputed", testNow.Add(2*time.Second), 4),
	}
	n := 0
	var permute func(done, left []int)
	permute = func(done, left []int) {
		if len(left) == 0 {
			n++
			object := "pay_" + string(rune('a'+n))
			var events []schema.Event
			for _, i := range done {
				s := *says[i]
				s.Object = object
				events = append(events, event(t, object+s.Status, body{Status: &s}))
			}
			switch n % 3 { // split differently
			case 0:
				b.apply(events...)
			case 1:
				b.apply(events[:2]...)
				b.apply(events[2:]...)
			case 2:
				for _, e := range events {
					b.apply(e)
				}
			}
			if got := query1[string](t, b.pool, `select status from payment_states where object = $1`, object); got != "disputed" {
				t.Errorf("order %v: got %s, want disputed", done, got)
			}
			// Stale is what came after something later.
			latest := -1
			for _, i := range done {
				want := "ignored"
				if i < latest {
					want = "stale"
				}
				latest = max(latest, i)
				if got := b.outcome(object + says[i].Status); got != want {
					t.Errorf("order %v: %s: got %s, want %s", done, says[i].Status, got, want)
				}
			}
			return
		}
		for i := range left {
			rest := slices.Delete(slices.Clone(left), i, i+1)
			permute(append(slices.Clone(done), left[i]), rest)
		}
	}
	permute(nil, []int{0, 1, 2, 3})
	b.rewind()
	b.lawful()
}

func TestApply_StatusAndMoneyInOneEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(event(t, "evt_2", body{Status: status("p", "refunded", testNow.Add(time.Hour), 0)}))
	late := event(t, "evt_1", body{Status: status("p", "paid", testNow, 0), Postings: []schema.Posting{pays("alice", 5, "m")}})
	b.outcomes(b.apply(late), map[Outcome]int64{Applied: 1})
	if got := query1[string](t, b.pool, `select status from payment_states`); got != "refunded" {
		t.Errorf("status: got %s, want refunded", got)
	}
	b.lawful()
}

func TestApply_LatestWinsMovesTheStatusAndNeverTheMoney(t *testing.T) {
	t.Parallel()
	says := func(s string, seconds int) schema.Event {
		return event(t, "evt_1", body{LatestWins: true, Status: status("p", s, testNow.Add(time.Duration(seconds)*time.Second), 0)})
	}
	one, two, three := says("one", 1), says("two", 2), says("three", 3)
	current := func(b *bundle) string { return query1[string](t, b.pool, `select status from payment_states`) }

	b := setup(t)
	b.outcomes(b.apply(two, one, three, three, two), map[Outcome]int64{Ignored: 2, Stale: 1, Duplicate: 2})
	if got := current(b); got != "three" {
		t.Errorf("status: got %s, want three", got)
	}
	b.rewind()
	b.outcomes(b.apply(three, two, one), map[Outcome]int64{Duplicate: 1, Stale: 2})

	b = setup(t)
	for _, step := range []struct {
		e    schema.Event
		want Outcome
	}{{one, Ignored}, {three, Ignored}, {two, Stale}, {three, Duplicate}, {one, Stale}} {
		b.outcomes(b.apply(step.e), map[Outcome]int64{step.want: 1})
	}
	if got := current(b); got != "three" || b.count("processed_events") != 1 || b.count("event_conflicts") != 0 {
		t.Errorf("got %s, %d rows, %d conflicts; want three, 1, none", got, b.count("processed_events"), b.count("event_conflicts"))
	}
	b.lawful()
}

func TestApply_LatestWinsOnAnAppliedEvent(t *testing.T) {
	t.Parallel()
	first := event(t, "evt_1", body{LatestWins: true, Status: status("p", "paid", testNow, 0), Postings: []schema.Posting{pays("alice", 5, "m")}})
	later := event(t, "evt_1", body{LatestWins: true, Status: status("p", "settled", testNow.Add(time.Second), 0)})
	for _, inOneBatch := range []bool{true, false} {
		b := setup(t)
		if inOneBatch {
			b.outcomes(b.apply(first, later), map[Outcome]int64{Applied: 1, Ignored: 1})
		} else {
			b.apply(first)
			b.outcomes(b.apply(later), map[Outcome]int64{Ignored: 1})
		}
		if got := query1[string](t, b.pool, `select status from payment_states`); got != "settled" {
			t.Errorf("status: got %s, want settled", got)
		}
		if got := b.outcome("evt_1"); got != "applied" || b.balance("alice") != 5 {
			t.Errorf("got %s and %d, want applied and 5", got, b.balance("alice"))
		}
		b.rewind()
		b.outcomes(b.apply(later), map[Outcome]int64{Duplicate: 1})
		b.lawful()
	}
}
