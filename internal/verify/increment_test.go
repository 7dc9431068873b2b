package verify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"hookledger/internal/ledger"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// increment verifies from a mark on, by way of JSON, as a file would keep it.
func (w *world) increment(since *verify.Mark) verify.Report {
	w.tb.Helper()
	var kept *verify.Mark
	if since != nil {
		text, err := json.Marshal(since)
		must(w.tb, err)
		must(w.tb, json.Unmarshal(text, &kept))
	}
	rep := w.with(func(o *verify.Options) { o.Incremental, o.Since = true, kept })
	if rep.Mark == nil {
		w.tb.Fatal("an increment made no mark")
	}
	return rep
}

func TestRun_IncrementsReadWhatIsNew(t *testing.T) {
	t.Parallel()
	w := setup(t, 2)
	w.populate()
	first := w.increment(nil)
	if !first.OK || first.Records != 8 || note(first, "mark") == "" {
		t.Fatalf("first: got %s", show(first))
	}
	again := w.increment(first.Mark)
	if !again.OK || again.Records != 0 || again.Range.Since == nil || !strings.Contains(note(again, "quarantine"), "1") {
		t.Fatalf("nothing new: got %s", show(again))
	}
	f := w.produce(0, w.event("evt_9", "9"))
	w.apply(f[0], "user_9", 9)
	w.process(fact{w.event("evt_6", `{"n":6}`), 1, 4}, "ignored")
	w.commit()
	second := w.increment(again.Mark)
	if !second.OK || second.Records != 2 || !strings.Contains(check(second, verify.CheckBalances).Found, ", 1 entry") {
		t.Fatalf("two new: got %s", show(second))
	}
	if rep := w.run(); !rep.OK {
		t.Fatalf("the whole: got %s", show(rep))
	}
	if second.Mark.FullAt != first.Mark.FullAt || !second.Mark.ProvedAt.After(first.Mark.ProvedAt) {
		t.Errorf("got marks %+v and %+v", first.Mark, second.Mark)
	}
	// A group that was moved back proves nothing anew, and unproves nothing.
	w.commitOffset(0, 0)
	if rep := w.increment(second.Mark); rep.Records != 0 || rep.Mark.Partitions[0] != 5 {
		t.Errorf("rewound: got %s, %v", show(rep), rep.Mark.Partitions)
	}
}

func TestRun_IncrementsFindDamageOfWhatIsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(*world, fact)
		check  string
	}{
		"balance off by one": {func(w *world, _ fact) {
			w.exec(`update accounts set balance = balance + 1 where account_id = 'user_9'`)
		}, verify.CheckBalances},
		"old balance off by one": {func(w *world, _ fact) {
			w.exec(`update accounts set balance = balance + 1 where account_id = 'user_1'`)
		}, verify.CheckBalances},
		"two balances, sum is same": {func(w *world, _ fact) {
			w.exec(`update accounts set balance = balance + case account_id when 'user_1' then 1 else -1 end where account_id in ('user_1', 'user_2')`)
		}, verify.CheckBalances},
		"entry count off by one": {func(w *world, _ fact) {
			w.exec(`update accounts set entry_count = entry_count + 1 where account_id = 'user_9'`)
		}, verify.CheckBalances},
		"old entry and its balance": {func(w *world, _ fact) {
			w.exec(`update ledger_entries set amount = amount + 5 where event_id = 'evt_1'`)
			w.exec(`update accounts set balance = balance + 5 where account_id = 'user_1'`)
		}, verify.CheckBalances},
		"new entry and its balance": {func(w *world, _ fact) {
			w.exec(`update ledger_entries set amount = amount + 5 where event_id = 'evt_9'`)
			w.exec(`update accounts set balance = balance + 5 where account_id = 'user_9'`)
		}, verify.CheckMeaning},
		"entry for no event": {func(w *world, _ fact) { w.enter(fact{Event: w.event("evt_forged", "")}, "user_9", 5) }, verify.CheckEntries},
		"event without entry": {func(w *world, _ fact) {
			w.exec(`delete from ledger_entries where event_id = 'evt_9'`)
			w.exec(`delete from accounts where account_id = 'user_9'`)
		}, verify.CheckEvents},
		"record nowhere on record": {func(w *world, _ fact) { w.produce(0, w.event("evt_10", "10")); w.commit() }, verify.CheckRecords},
		"other bytes": {func(w *world, _ fact) {
			w.exec(`update processed_events set body_sha256 = sha256('x') where event_id = 'evt_9'`)
		}, verify.CheckHashes},
		"progress behind": {func(w *world, _ fact) { w.exec(`update consumer_progress set next_offset = 2 where partition = 0`) }, verify.CheckPositions},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1)
			f := w.produce(0, w.event("evt_1", "1"), w.event("evt_2", "2"))
			w.apply(f[0], "user_1", 100)
			w.apply(f[1], "user_2", -40)
			w.commit()
			mark := w.increment(nil).Mark
			g := w.produce(0, w.event("evt_9", "credit user_9 9 evt_9"))[0]
			w.apply(g, "user_9", 9)
			w.commit()
			// The control: undamaged, the increment is right.
			if rep := w.increment(mark); !rep.OK || rep.Records != 1 {
				t.Fatalf("undamaged: got %s", show(rep))
			}
			c.damage(w, g)
			rep := w.with(func(o *verify.Options) { o.Incremental, o.Since = true, mark; told(o) })
			if got := broken(rep); !slices.Equal(got, []string{c.check}) {
				t.Errorf("got %v, want %s: %s", got, c.check, show(rep))
			}
		})
	}
}

// A mark that belongs to something else is set aside, and everything is proved.
func TestRun_MarkThatDoesNotFitIsSetAside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world, *verify.Mark)
		why    string
	}{
		"another topic":      {func(_ *world, m *verify.Mark) { m.TopicID = strings.Repeat("00", 16) }, "the topic was made again since"},
		"another cluster":    {func(_ *world, m *verify.Mark) { m.ClusterID = "other" }, "another Kafka cluster"},
		"another group":      {func(_ *world, m *verify.Mark) { m.Group = "other" }, "another topic or group"},
		"another version":    {func(_ *world, m *verify.Mark) { m.Version = 99 }, "another version of hookledger"},
		"a log that was cut": {func(_ *world, m *verify.Mark) { m.Partitions[1] = 99 }, "the log ends before what was proved of it"},
		"an edited anchor":   {func(_ *world, m *verify.Mark) { m.Entries.Anchor = "x'" }, "an older copy of it"},
		"another Postgres":   {func(_ *world, m *verify.Mark) { m.Entries.Server = 1 }, "Postgres is of another version"},
		"an older copy": {func(w *world, _ *verify.Mark) {
			w.exec(`delete from ledger_entries where event_id = 'evt_3'`)
			w.exec(`update accounts set balance = balance - 7, entry_count = 1 where account_id = 'user_1'`)
			w.exec(`update processed_events set outcome = 'ignored' where event_id = 'evt_3'`)
		}, "an older copy of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 2)
			w.populate()
			mark := w.increment(nil).Mark
			c.change(w, mark)
			rep := w.increment(mark)
			if !rep.OK || rep.Records != 8 || !strings.Contains(note(rep, "mark_set_aside"), c.why) {
				t.Errorf("got %s", show(rep))
			}
		})
	}
}

// While a core applies and moves money, increments go on from mark to mark and find
// nothing, and together they prove what one whole run does.
func TestRun_IncrementsWhileWorkersApply(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	const rounds, each = 12, 40
	var events [3][]schema.Event
	for p := range int32(3) {
		for i := range rounds * each {
			events[p] = append(events[p], w.event(fmt.Sprintf("evt_%d_%d", p, i), fmt.Sprintf("credit user_%d %d m%d_%d", i%7, 1+i%5, p, i)))
		}
		w.produce(p, events[p]...)
	}
	core := ledger.New(w.pool, tell, ledger.Options{})
	var workers sync.WaitGroup
	for p := range int32(3) {
		records := w.read(p)
		workers.Go(func() { // ends with its records
			pos := ledger.Position{ClusterID: w.cluster, Topic: w.topic, TopicID: w.topicID, Partition: p}
			if err := core.WritePosition(t.Context(), ledger.PositionWrite{Position: pos}); err != nil {
				t.Error(err)
				return
			}
			for at := int64(0); at < int64(len(records)); {
				done, err := core.Apply(t.Context(), ledger.Batch{Position: pos, Start: at, Records: records[at : at+each]})
				if err != nil {
					t.Error(err)
					return
				}
				at = done.Next()
				w.commitOffset(p, at)
			}
		})
	}
	ended := make(chan struct{})
	go func() { workers.Wait(); close(ended) }() // ends with the workers
	var mark *verify.Mark
	var records int64
	for last := false; ; {
		rep := w.increment(mark)
		if !rep.OK || note(rep, "mark_set_aside") != "" {
			t.Fatalf("got %s", show(rep))
		}
		mark, records = rep.Mark, records+rep.Records
		if last {
			break
		}
		select {
		case <-ended:
			last = true
		default:
		}
	}
	if rep := w.run(); !rep.OK || records != 3*rounds*each || rep.Records != records {
		t.Errorf("the increments judged %d records, the whole is %s", records, show(rep))
	}
}
