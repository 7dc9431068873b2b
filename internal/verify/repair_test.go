package verify_test

import (
	"fmt"
	"slices"
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

// What an amendment wrote, and the balance, changed together by the same amount: the sums
// agree, and what stood before, or what the event was amended to mean, does not.
func TestRun_AmendmentsAreWhatTheySay(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	post := func(account, movement string, amount int64) schema.Posting {
		return schema.Posting{Account: account, Contra: "external:stripe", Amount: amount, Currency: "EUR", Rule: "paid", Movement: movement}
	}
	shared, status := post("user_1", "shared", 5), &schema.Status{Object: "o", Status: "paid"}
	means := map[string]schema.Meaning{}
	mapping := func(e *schema.Event) (schema.Meaning, error) { return means[e.ID], nil }
	ids := []string{"evt_first", "evt_plain", "evt_reversed", "evt_twice", "evt_part", "evt_state"}
	for i, id := range ids {
		means[id] = schema.Meaning{Postings: []schema.Posting{post("user_1", id, 100)}}
		w.produce(0, w.event(id, fmt.Sprint(i)))
	}
	means["evt_first"] = schema.Meaning{Postings: []schema.Posting{shared}}
	w.applyAll(0, mapping)
	amended := func(id string, m *schema.Meaning) {
		t.Helper()
		if m != nil {
			means[id] = *m
		}
		done, err := amend.Amend(t.Context(), w.pool, amend.Request{Source: "stripe", EventID: id, Meaning: m,
			Record: amend.Place{Topic: w.topic, Offset: int64(slices.Index(ids, id))}, By: "tester", Reason: "test"})
		if err != nil || done.ID == "" {
			t.Fatalf("amend %s: got %+v %v", id, done, err)
		}
	}
	amended("evt_plain", &schema.Meaning{Postings: []schema.Posting{post("user_2", "evt_plain", 101)}})
	amended("evt_reversed", nil)
	amended("evt_twice", &schema.Meaning{Postings: []schema.Posting{post("user_3", "evt_twice", 7)}})
	amended("evt_twice", &schema.Meaning{Postings: []schema.Posting{post("user_3", "evt_twice", 8), post("user_4", "evt_twice", 1)}})
	amended("evt_part", &schema.Meaning{Postings: []schema.Posting{shared, post("user_5", "evt_part", 9)}})
	amended("evt_state", &schema.Meaning{Postings: []schema.Posting{post("user_6", "evt_state", 11)}, Status: status})

	run := func() verify.Report { return w.with(func(o *verify.Options) { o.Meaning = mapping }) }
	if rep := run(); !rep.OK || note(rep, "meanings_not_compared") != "" {
		t.Fatalf("undamaged: got %s", show(rep))
	}
	// Without a mapping nothing is claimed of what no table keeps.
	if rep := w.run(); !rep.OK || !strings.HasPrefix(note(rep, "meanings_not_compared"), "2 ") {
		t.Errorf("without a mapping: got %s", show(rep))
	}
	// Each damage is mended again by its opposite.
	for name, c := range map[string]struct{ id, where, account, want string }{
		"a posting":                     {"evt_plain", "amount = 101", "user_2", "amendment "},
		"an opposite":                   {"evt_plain", "amount = -100", "user_1", "line 0 is not the opposite of what stood before"},
		"a reversal":                    {"evt_reversed", "true", "user_1", "line 0 is not the opposite"},
		"a posting that was taken back": {"evt_twice", "amount = 7", "user_3", "line 0 is not the opposite"},
		"one of two postings":           {"evt_twice", "amount = 1", "user_4", "amendment "},
		"beside what another told of":   {"evt_part", "amount = 9", "user_5", "has no entry of 0.09 EUR to user_5"},
		"beside a status":               {"evt_state", "amount = 11", "user_6", "has no entry of 0.11 EUR to user_6"},
	} {
		var entry int64
		must(t, w.pool.QueryRow(t.Context(), `select entry_id from ledger_entries l join amendments a using (amendment_id)
			where a.event_id = $1 and l.account_id = $2 and `+c.where, c.id, c.account).Scan(&entry))
		change := func(by int64) {
			w.exec(`update ledger_entries set amount = amount + $1 where entry_id = $2`, by, entry)
			w.exec(`update accounts set balance = balance + $1 where account_id = $2`, by, c.account)
		}
		change(1000)
		rep := run()
		if got := broken(rep); !slices.Equal(got, []string{verify.CheckMeaning}) || !strings.Contains(check(rep, verify.CheckMeaning).Found, "stripe/"+c.id) ||
			!strings.Contains(check(rep, verify.CheckMeaning).Found, c.want) {
			t.Errorf("%s: got %s", name, show(rep))
		}
		change(-1000)
	}
	if rep := run(); !rep.OK {
		t.Errorf("mended: got %s", show(rep))
	}
}

// More events that need a closer look than fit into one pass are looked at in several.
func TestRun_LooksAtAllEventsOfSeveralEntries(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	mapping := func(e *schema.Event) (schema.Meaning, error) {
		p := schema.Posting{Account: "user_1", Contra: "external:stripe", Amount: 100, Currency: "EUR", Rule: "paid", Movement: e.ID}
		fee := p
		fee.Rule, fee.Amount = "fee", -1
		return schema.Meaning{Postings: []schema.Posting{p, fee}}, nil
	}
	for i := range 40 {
		w.produce(0, w.event(fmt.Sprintf("evt_%d", i), "1"))
	}
	w.applyAll(0, mapping)
	few := func(o *verify.Options) { o.Meaning = mapping; o.Suspects(6) }
	if rep := w.with(few); !rep.OK || note(rep, "meanings_not_compared") != "" {
		t.Fatalf("undamaged: got %s", show(rep))
	}
	w.exec(`update ledger_entries set amount = amount + 5`)
	w.exec(`update accounts set balance = balance + 5 * entry_count`)
	if rep := w.with(few); !strings.HasPrefix(check(rep, verify.CheckMeaning).Found, "40 applied events whose entries") {
		t.Errorf("got %s", show(rep))
	}
	w.exec(`update ledger_entries set effect_key = gen_random_uuid()`)
	if rep := w.with(few); !strings.HasPrefix(check(rep, verify.CheckEffectKeys).Found, "80 entries") {
		t.Errorf("got %s", show(rep))
	}
}
