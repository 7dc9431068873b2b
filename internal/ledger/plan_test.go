package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hookledger/schema"
)

// No plan of the hot path reads a whole table, whatever the statistics say: of tables
// never analysed, analysed while they were empty, and analysed since.
func TestQueries_PlansUseTheirIndexes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	var events []schema.Event
	for i := range 300 {
		events = append(events, event(t, fmt.Sprintf("evt_%d", i), body{
			Postings: []schema.Posting{pays(fmt.Sprintf("acc_%d", i), 1, fmt.Sprintf("m%d", i))},
			Status:   status(fmt.Sprintf("obj_%d", i), "s", testNow, 0)}))
	}
	calls := hotCalls(t, events)
	filled := false
	check := func(when string) {
		t.Helper()
		for _, c := range calls {
			plan := b.explain(c)
			lines := append(strings.Split(plan, "\n"), "")
			for i, line := range lines {
				// The ring has one row; what a CTE or unnest holds is the batch.
				if strings.Contains(line, "Seq Scan") && !strings.Contains(line, "event_ring") {
					t.Errorf("%s: %s:\n%s", when, c.query.name, plan)
				}
				// A whole index is as much as a whole table, once there is anything in it.
				if filled && strings.Contains(line, "Index") && strings.Contains(line, " Scan ") && !strings.Contains(lines[i+1], "Index Cond") {
					t.Errorf("%s: %s: %s:\n%s", when, c.query.name, line, plan)
				}
			}
		}
	}
	if plan := b.explain(calls[0]); !strings.Contains(plan, "$1") {
		t.Errorf("the plan is made for these parameters alone:\n%s", plan)
	}
	check("never analysed, empty")
	if _, err := b.pool.Exec(ctx, `analyze`); err != nil {
		t.Fatal(err)
	}
	check("analysed while empty")
	// As autovacuum does when a table begins to fill.
	b.apply(events[:60]...)
	filled = true
	if _, err := b.pool.Exec(ctx, `analyze`); err != nil {
		t.Fatal(err)
	}
	check("analysed while small")
	for at := 0; at < 6000; at += 300 {
		for i := range events {
			events[i].ID = fmt.Sprintf("grow_%d", at+i)
		}
		b.ledger.mapper = func(e *schema.Event) (schema.Meaning, error) {
			m, err := mapBody(e)
			m.Postings[0].Movement = e.ID
			return m, err
		}
		b.apply(events...)
	}
	check("grown since")
	if _, err := b.pool.Exec(ctx, `analyze`); err != nil {
		t.Fatal(err)
	}
	check("analysed")
	if _, err := b.pool.Exec(ctx, `update event_ring set forgotten_count = 1`); err != nil {
		t.Fatal(err)
	}
	check("after something was forgotten")
}

// hotCalls are the statements of a batch that has everything in it.
func hotCalls(t *testing.T, events []schema.Event) []call {
	t.Helper()
	bad, other := event(t, "bad", body{Bad: "bad_amount"}), paid(t, "evt_0", "alice", 7)
	batch := Batch{Position: testPosition}
	for i, e := range append(append([]schema.Event{}, events...), bad, other) {
		batch.Records = append(batch.Records, record(int64(i), e))
	}
	items, _ := decode(batch.Records)
	p := &planner{mapper: mapBody, known: map[schema.EventKey]*known{}}
	plan, err := p.decide(items)
	if err != nil {
		t.Fatal(err)
	}
	plan.settleStatuses(map[object]*state{})
	w := newWriting(&batch, plan, 0)
	var keys []schema.EventKey
	var updates []*candidate
	for _, c := range plan.order {
		keys = append(keys, c.item.key)
		updates = append(updates, &candidate{item: c.item, stored: &known{}})
	}
	for i := range w.entries {
		w.entries[i].written = true
	}
	sums, err := w.sums()
	if err != nil {
		t.Fatal(err)
	}
	keyArg := sortedKeys(keys).arg()
	position := []arg{textArg("c"), uuidArg([16]byte{7}), int4Arg(0)}
	return []call{
		{query: queryLockProgress, args: position},
		{query: queryKnown, args: []arg{keyArg}},
		{query: queryConflictsKnown, args: []arg{keyArg}},
		claimStates(plan.objects()),
		lockStates(plan.objects(), nil),
		{query: queryLockEvents, args: []arg{keyArg}},
		{query: queryUpdateEvents, args: w.eventUpdates(updates)},
		{query: queryInsertEvents, args: w.eventInserts(plan.order)},
		{query: queryInsertEntries, args: w.entryInserts()},
		{query: queryAddEvents, args: w.eventInserts(plan.order)},
		{query: queryAddEntries, args: w.entryInserts()},
		{query: queryOtherEntries, args: []arg{keyArg, keyArg}},
		{query: queryQuarantine, args: w.quarantineInserts()},
		{query: queryConflicts, args: w.conflictInserts()},
		accountAdds(sums),
		stateMoves(w.movedStates()),
		{query: queryOutcomes, args: []arg{textArg("same_effect"), keyArg}},
		{query: queryResolveQuarantine, args: []arg{uuidArg([16]byte{7}), int4Arg(0), int8Arg(0), int8Arg(1000), int8Column(0).arg()}},
		{query: queryAdvance, args: append(position, int8Arg(1), int8Arg(0), int4Arg(0))},
	}
}

// explain returns the plan of c as the hot path runs it: under its settings, made once for
// any parameters.
func (b *bundle) explain(c call) string {
	b.tb.Helper()
	ctx := b.tb.Context()
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		b.tb.Fatal(err)
	}
	tx := &transaction{conn: conn}
	defer tx.end(ctx)
	ask := func(sql string, args ...arg) string {
		b.tb.Helper()
		var lines []string
		err := tx.trip(ctx, call{query: query{c.query.name, sql}, args: args, row: func(v [][]byte) error {
			lines = append(lines, string(v[0]))
			return nil
		}})
		if err != nil {
			b.tb.Fatalf("explain %s: %v", c.query.name, err)
		}
		return strings.Join(lines, "\n")
	}
	if err := tx.trip(ctx, call{query: queryBegin}, call{query: querySettings, args: b.ledger.settings}); err != nil {
		b.tb.Fatal(err)
	}
	types, values := make([]string, len(c.args)), make([]string, len(c.args))
	for i, a := range c.args {
		types[i] = ask(`select format_type($1::int4::oid, null)`, int4Arg(int32(a.oid)))
		values[i] = ask(`select quote_nullable($1::text)`, a)
	}
	ask("prepare explained (" + strings.Join(types, ", ") + ") as " + c.query.sql)
	plan := ask("explain execute explained (" + strings.Join(values, ", ") + ")")
	ask("deallocate explained")
	return plan
}

// Once something was forgotten, asking the entries about events that nobody knows may
// not cost a comparison of each with each.
func TestQueries_FilterStaysLinearOnceSomethingIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.pool.Exec(t.Context(), `update event_ring set forgotten_count = 1`); err != nil {
		t.Fatal(err)
	}
	plan := b.explain(call{query: queryKnown, args: []arg{sortedKeys([]schema.EventKey{{1}, {2}}).arg()}})
	if !strings.Contains(plan, "hashed SubPlan") || strings.Contains(plan, "Nested Loop Anti") {
		t.Errorf("got the plan\n%s\nwant a hashed subplan", plan)
	}
}

// Times survive the way to Postgres and back.
func TestParams_Times(t *testing.T) {
	t.Parallel()
	for _, want := range []time.Time{testNow, time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
		if got := readTime(appendTime(nil, want)); !got.Equal(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
