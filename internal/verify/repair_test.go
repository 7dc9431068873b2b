package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"hookledger/internal/ledger"
	"hookledger/internal/ledger/amend"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// Whatever people decide, the second path agrees: retried, discarded, amended, reversed.
func TestRun_AgreesWithRepairs(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	torn := w.event("evt_torn", "credit user_1 1 m_torn")
	torn.BodySHA256[0]++
	w.produce(0, w.event("evt_1", "credit user_1 100 m1"), w.event("evt_2", "credit user_2 200 m2"), w.event("evt_3", "broken 3"),
		w.event("evt_4", "broken 4"), torn, w.event("evt_2", "credit user_2 201 m2"), w.event("evt_5", "broken 5"), w.event("evt_6", "credit user_1 7 m1"))
	core := ledger.New(w.pool, tell, ledger.Options{})
	pos := ledger.Position{ClusterID: w.cluster, Topic: w.topic, TopicID: w.topicID}
	must(t, core.WritePosition(t.Context(), ledger.PositionWrite{Position: pos}))
	done, err := core.Apply(t.Context(), ledger.Batch{Position: pos, Records: w.read(0)})
	must(t, err)
	w.commitOffset(0, done.Next())

	fixed := ledger.New(w.pool, func(e *schema.Event) (schema.Meaning, error) {
		if n, ok := strings.CutPrefix(string(e.Body), "broken "); ok {
			return schema.Meaning{Postings: []schema.Posting{{Account: "user_3", Contra: "external:stripe", Amount: 3, Currency: "EUR", Rule: "paid", Movement: "b" + n}}}, nil
		}
		return tell(e)
	}, ledger.Options{})
	rows, err := w.pool.Query(t.Context(), `select id, coalesce(event_id, '') from quarantined_events`)
	must(t, err)
	held := map[string]int64{}
	for rows.Next() {
		var id int64
		var event string
		must(t, rows.Scan(&id, &event))
		held[event] = id
	}
	must(t, rows.Err())
	if len(held) != 5 {
		t.Fatalf("got %v in quarantine, want 5", held)
	}
	why := ledger.Decision{By: "me", Reason: "test"}
	for event, id := range held {
		decide := fixed.Retry
		if event == "evt_4" || event == "evt_torn" || event == "evt_6" {
			decide = fixed.Discard
		}
		if r, err := decide(t.Context(), ledger.Held{ID: id}, why); err != nil || r.Stays {
			t.Fatalf("%s: got %+v %v", event, r, err)
		}
	}
	var conflict int64
	must(t, w.pool.QueryRow(t.Context(), `select conflict_id from event_conflicts`).Scan(&conflict))
	if _, err := fixed.Discard(t.Context(), ledger.Held{Conflict: true, ID: conflict}, why); err != nil {
		t.Fatal(err)
	}
	two := schema.Meaning{Postings: []schema.Posting{{Account: "user_2", Contra: "external:stripe", Amount: 201, Currency: "EUR", Rule: "paid", Movement: "m2"}}}
	for _, r := range []amend.Request{
		{Source: "stripe", EventID: "evt_2", Meaning: &two, By: "me", Reason: "the second was right"},
		{Source: "stripe", EventID: "evt_1", By: "me", Reason: "a test payment"},
	} {
		if a, err := amend.Amend(t.Context(), w.pool, r); err != nil || a.ID == "" {
			t.Fatalf("amend %s: got %+v %v", r.EventID, a, err)
		}
	}
	rep := w.run()
	if !rep.OK || rep.UnaccountedEvents != 0 || note(rep, "quarantine") != "" || note(rep, "conflicts") != "" {
		t.Fatalf("got %s", show(rep))
	}
	var balances string
	must(t, w.pool.QueryRow(t.Context(), `select string_agg(account_id || ' ' || balance, ', ' order by account_id) from accounts`).Scan(&balances))
	if want := fmt.Sprintf("user_1 0, user_2 201, user_3 %d", 2*3); balances != want {
		t.Errorf("got %s, want %s", balances, want)
	}
}

// Entries that the real core writes have the keys that verify makes again: postings that
// share a movement, what another event told of first, and amendments, with keys of
// their own and of today's postings.
func TestRun_EffectKeysOfTheRealCore(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	post := func(account, movement string, amount int64) schema.Posting {
		return schema.Posting{Account: account, Contra: "external:stripe", Amount: amount, Currency: "EUR", Rule: "paid", Movement: movement}
	}
	means := map[string]schema.Meaning{
		"evt_1": {Postings: []schema.Posting{post("user_1", "m", 5), post("user_2", "m", 6), post("user_3", "m", 7), post("user_1", "n", 8)}},
		"evt_2": {Postings: []schema.Posting{post("user_1", "m", 5), post("user_2", "m", 6), post("user_3", "m", 7), post("user_4", "m", 9)}},
	}
	mapping := func(e *schema.Event) (schema.Meaning, error) { return means[e.ID], nil }
	w.produce(0, w.event("evt_1", `1`), w.event("evt_2", `2`))
	w.applyAll(0, mapping)
	for _, today := range []*schema.Meaning{
		// What evt_1 told of is left out, so new postings have numbers beyond their lines.
		{Postings: append(means["evt_2"].Postings[:3:3], post("user_4", "m", 10), post("user_5", "m", 1), post("user_5", "m", 2))},
		nil,
	} {
		done, err := amend.Amend(t.Context(), w.pool, amend.Request{
			Source: "stripe", EventID: "evt_2", Meaning: today, Record: amend.Place{Topic: w.topic, Offset: 1}, By: "tester", Reason: "test",
		})
		must(t, err)
		if len(done.Entries) < 2 {
			t.Fatalf("got %+v, want an amendment that moves money", done)
		}
	}
	if rep := w.with(func(o *verify.Options) { o.Meaning = mapping }); !rep.OK {
		t.Errorf("got %s", show(rep))
	}
	w.exec(`update ledger_entries set effect_key = gen_random_uuid()`)
	var n string
	must(t, w.pool.QueryRow(t.Context(), `select count(*)::text from ledger_entries`).Scan(&n))
	if found := check(w.run(), verify.CheckEffectKeys).Found; !strings.HasPrefix(found, n+" entries") {
		t.Errorf("got %q, want all %s entries", found, n)
	}
}
