package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

func ptr[T any](v T) *T { return &v }

func TestRun_DoesWhatThePlanSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Workers applied the first half under a mapping that knew no money.
	w.meaning = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
	w.pay(0, "old", 1500)
	w.work()
	w.meaning = mapFact
	w.pay(1, "done", 1200)
	w.work()
	w.produce(
		w.event(0, "acme", "new", fact{Account: "z", Amount: 100, Currency: "USD", Movement: "m"}),
		w.event(0, "acme", "twin", fact{Account: "z", Amount: 100, Currency: "USD", Movement: "m"}),
		w.event(0, "acme", "liar", fact{Account: "z", Amount: 101, Currency: "USD", Movement: "m"}),
		w.event(0, "acme", "old3", fact{Account: "a3", Amount: 7, Currency: "EUR"}),
	)
	before := w.books()
	p := w.plan(Selection{})
	if got, want := counts(p.Would), "map[applied:1501 conflict:1 duplicate:1200 quarantined:1 same_effect:1]"; got != want {
		t.Errorf("plan: got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(p.Records, p.Moves, p.Accounts), "2704 [{ EUR 1500} { USD 100}] 11"; got != want {
		t.Errorf("plan: got %s, want %s", got, want)
	}
	if p.EstimateSeconds <= 0 {
		t.Errorf("got an estimate of %v s", p.EstimateSeconds)
	}
	if got := w.books(); got != before || w.sql(`select count(*)::text from replays`) != "0" {
		t.Errorf("the plan changed the books from %s to %s", before, got)
	}
	dry := w.mustRun(p, Order{DryRun: true})
	if !dry.MatchesPlan || dry.ReplayID != nil || w.books() != before {
		t.Errorf("dry run: got %+v, books %s", dry, w.books())
	}
	res := w.mustRun(p, order)
	if !res.MatchesPlan || counts(res.Outcome) != counts(p.Would) || fmt.Sprint(res.Moves) != fmt.Sprint(p.Moves) || res.Records != p.Records {
		t.Errorf("run: got %+v", res)
	}
	if got, want := w.books(), "2701 2800 2800 0@1500,1@1200"; got != want {
		t.Errorf("books: got %s, want %s: positions are the workers'", got, want)
	}
	if got, want := w.sql(`select concat_ws(' ', kind, state, requested_by, reason, database_user, records, finished_at is not null, plan_hash) from replays`),
		"run done tester test "+w.sql(`select session_user::text`)+" 2704 t "+p.Hash; got != want {
		t.Errorf("audit: got %s, want %s", got, want)
	}
	// Again: the plan is over, and a new one would move nothing.
	_, err := w.run(p, order)
	wantErr(t, "the same plan again", err, ErrPlanDone)
	again := w.mustRun(w.plan(Selection{}), order)
	if got, want := counts(again.Outcome), "map[conflict:1 duplicate:2702 quarantined:1]"; got != want || !again.MatchesPlan || len(again.Moves) != 0 {
		t.Errorf("again: got %s %+v, want %s", got, again, want)
	}
	w.work() // the workers come to what was replayed before them
	if got, want := w.books(), "2701 2800 2800 0@1504,1@1200"; got != want {
		t.Errorf("books: got %s, want %s", got, want)
	}
}

func TestPlan_Selects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 5) // seconds 1 to 5
	w.pay(1, "q", 5) // seconds 6 to 10
	other := w.event(1, "beta", "b1", fact{Account: "a1", Amount: 1, Currency: "USD"})
	other.Headers = append(other.Headers[:3:3], append([]kgo.RecordHeader{{Key: schema.HeaderType, Value: []byte("refunded")}}, other.Headers[4:]...)...)
	w.produce(other, &kgo.Record{Topic: topic, Partition: 1, Key: []byte("?"), Value: []byte("?"), Timestamp: begin})
	at := func(s int) *time.Time { return ptr(begin.Add(time.Duration(s) * time.Second)) }
	for name, c := range map[string]struct {
		sel  Selection
		want int64
	}{
		"all":                   {Selection{}, 12},
		"from time":             {Selection{FromTime: at(4)}, 8},
		"time":                  {Selection{FromTime: at(4), ToTime: at(7)}, 3},
		"source":                {Selection{Sources: []string{"beta"}}, 1},
		"two sources":           {Selection{Sources: []string{"beta", "acme"}}, 11},
		"type":                  {Selection{Types: []string{"refunded"}}, 1},
		"events":                {Selection{EventIDs: []string{"p1", "q4", "none"}}, 2},
		"account":               {Selection{Account: "a1"}, 3},
		"account of source":     {Selection{Account: "a1", Sources: []string{"acme"}}, 2},
		"partition":             {Selection{Partition: ptr(int32(0))}, 5},
		"offsets":               {Selection{FromOffset: ptr(int64(1)), ToOffset: ptr(int64(3))}, 4},
		"offsets of partition":  {Selection{Partition: ptr(int32(1)), FromOffset: ptr(int64(5))}, 2},
		"beyond the end":        {Selection{FromOffset: ptr(int64(99))}, 0},
		"later than everything": {Selection{FromTime: at(1000)}, 0},
	} {
		p := w.plan(c.sel)
		if p.Records != c.want {
			t.Errorf("%s: got %d records, want %d", name, p.Records, c.want)
		}
	}
	if _, err := w.replayer("hookledger_reader").Plan(t.Context(), Selection{Partition: ptr(int32(7))}, "tester"); err == nil {
		t.Error("a partition that is not there: got no error")
	}
}

func TestPlan_EndsWhereWorkersAreWhileTheyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 10)
	w.work()
	w.pay(0, "q", 10)
	if p := w.plan(Selection{}); p.Records != 20 {
		t.Errorf("without members: got %d records, want 20", p.Records)
	}
	testkit.Member(t, w.cluster.ListenAddrs(), group, topic)
	p := w.plan(Selection{})
	if p.Records != 10 {
		t.Errorf("with a member: got %d records, want the 10 that were applied", p.Records)
	}
	if res := w.mustRun(p, order); !res.MatchesPlan || counts(res.Outcome) != "map[duplicate:10]" {
		t.Errorf("run beside a member: got %+v", res)
	}
	committed, err := kadm.NewClient(w.cl).FetchOffsets(t.Context(), group)
	if err != nil || len(committed[topic]) != 0 {
		t.Errorf("a replay committed offsets: %v (%v)", committed, err)
	}
}

func TestRun_RefusesWhatHasChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world)
		want   string
		// accepted is what becomes of the records with Accept.
		accepted string
	}{
		"the workers were faster": {func(w *world) { w.work() }, "0 applied instead of 10", "map[duplicate:10]"},
		"another mapping": {func(w *world) {
			w.meaning = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
		}, "10 ignored instead of 0", "map[ignored:10]"},
		"other amounts": {func(w *world) {
			w.meaning = func(e *schema.Event) (schema.Meaning, error) {
				m, err := mapFact(e)
				m.Postings[0].Amount *= 2
				return m, err
			}
		}, "0.20 EUR instead of 0.10 EUR", "map[applied:10]"},
		"retention": {func(w *world) {
			var offsets kadm.Offsets
			offsets.AddOffset(topic, 0, 4, -1)
			if _, err := kadm.NewClient(w.cl).DeleteRecords(w.t.Context(), offsets); err != nil {
				w.t.Fatal(err)
			}
		}, "retention deleted 4 of the offsets of partition 0, from 0 on", "map[applied:6]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pay(0, "p", 10)
			p := w.plan(Selection{})
			c.change(w)
			before := w.books()
			_, err := w.run(p, order)
			var changed *ChangedError
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--accept") {
				t.Fatalf("got %v, want a ChangedError with %q", err, c.want)
			}
			if got := w.books(); got != before || w.sql(`select count(*)::text from replays`) != "0" {
				t.Errorf("a refusal changed the books from %s to %s", before, got)
			}
			res := w.mustRun(p, Order{By: "tester", Reason: "test", Accept: true})
			if res.MatchesPlan || len(res.Differences) == 0 || counts(res.Outcome) != c.accepted {
				t.Errorf("accepted: got %+v, want %s and no match", res, c.accepted)
			}
			if got := w.sql(`select accepted::text from replays`); got != "true" {
				t.Errorf("audit: accepted is %s", got)
			}
		})
	}
}

func TestRun_RefusesAPlanOfAnotherWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 10)
	p := w.plan(Selection{})
	elsewhere := newWorld(t)
	elsewhere.pay(0, "p", 10)
	_, err := elsewhere.run(p, order)
	wantErr(t, "another cluster and database", err, ErrElsewhere)

	other := w.replayer("hookledger_operator")
	other.Store = &Store{elsewhere.open("hookledger_operator")}
	_, err = other.Run(t.Context(), p, order)
	wantErr(t, "another database", err, ErrElsewhere)

	if _, err := kadm.NewClient(w.cl).DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	w.createTopic()
	w.connect()
	w.pay(0, "p", 10)
	_, err = w.run(p, order)
	wantErr(t, "a topic made again", err, ErrElsewhere)
	if err == nil || !strings.Contains(err.Error(), "was made again") {
		t.Errorf("got %v, want it to say what happened", err)
	}
	if got := w.books() + elsewhere.books(); got != "0 0 00 0 0" {
		t.Errorf("refusals changed the books: %s", got)
	}
}

func TestPlan_FileIsTakenAsItWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 3)
	p := w.plan(Selection{FromTime: ptr(begin), Sources: []string{"acme"}})
	file := filepath.Join(t.TempDir(), "p.plan")
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v (%v), want 0600: it names accounts", info.Mode(), err)
	}
	again, err := ReadPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	if !w.mustRun(again, order).MatchesPlan {
		t.Error("the plan read back does not match")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"a count":          {`"applied": 3`, `"applied": 2`},
		"a selection":      {`"acme"`, `"beta"`},
		"an account":       {`"a1"`, `"a2"`},
		"an unknown field": {`"records"`, `"extra": 1, "records"`},
		"the hash":         {p.Hash, strings.Repeat("0", 64)},
		"no plan":          {"hookledger.replay-plan.v1", "hookledger.lag.v1"},
		"something behind": {"}\n", "}{}\n"},
	} {
		edited := strings.Replace(string(text), edit[0], edit[1], 1)
		if name == "something behind" {
			edited = string(text) + "{}"
		}
		if edited == string(text) {
			t.Fatalf("%s: nothing was edited", name)
		}
		if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPlan(file); err == nil {
			t.Errorf("%s was edited: got no error", name)
		}
	}
}

func TestRun_NeedsTheOperatorsRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 3)
	p := w.plan(Selection{}) // as hookledger_reader
	for _, role := range []string{"hookledger_reader", "hookledger_worker"} {
		if _, err := w.replayer(role).Run(t.Context(), p, order); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: got %v, want permission denied", role, err)
		}
	}
	if got := w.books(); got != "0 0 0" {
		t.Errorf("books: %s", got)
	}
	var wait *ledger.WaitError
	w.produce(w.event(1, "elsewhere", "x", fact{}))
	if _, err := w.replayer("hookledger_reader").Plan(t.Context(), Selection{}, "tester"); !errors.As(err, &wait) {
		t.Errorf("a source that is not configured here: got %v, want a WaitError", err)
	}
}
