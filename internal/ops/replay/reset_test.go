package replay

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ops"
)

// commit commits at in both partitions.
func (w *world) commit(at int64) {
	w.t.Helper()
	offsets := make(kadm.Offsets)
	for p := range int32(2) {
		offsets.AddOffset(topic, p, at, -1)
	}
	if err := kadm.NewClient(w.cl).CommitAllOffsets(w.t.Context(), group, offsets); err != nil {
		w.t.Fatal(err)
	}
}

func TestReset_ShowsWhatTheWorkersWouldDoAndIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 50)
	w.work()
	w.commit(50)
	w.pay(0, "q", 5)
	earliest := ops.Target{Earliest: true}
	p, unforeseen, err := w.replayer("hookledger_reader").PlanReset(t.Context(), earliest, -1, 0)
	if err != nil || unforeseen != nil {
		t.Fatal(err, unforeseen)
	}
	if got, want := counts(p.Would), "map[applied:5 duplicate:50]"; got != want || p.Records != 55 || *p.Looked != 55 || p.Accounts != 5 || p.Moves[0].Amount != 5 {
		t.Errorf("got %s of %+v, want %s", got, p, want)
	}
	if some, _, err := w.replayer("hookledger_reader").PlanReset(t.Context(), earliest, -1, 20); err != nil || *some.Looked != 10 || some.Records != 55 {
		t.Errorf("looking at 20, 10 of each partition: got %+v (%v)", some, err)
	}
	if err := w.replayer("hookledger_operator").Reset(t.Context(), p, "tester", "a test"); err != nil {
		t.Fatal(err)
	}
	if got, want := w.sql(`select concat_ws(' ', kind, state, requested_by, reason, plan_hash, plan->'would'->>'duplicate') from replays`), "reset done tester a test "+p.Hash+" 50"; got != want {
		t.Errorf("audit: got %s, want %s", got, want)
	}
	if got := w.sql(`select concat_ws(' ', kind, detail->>'reason', detail->>'replay_id') from incidents`); got != "replay_reset a test 1" {
		t.Errorf("incident: got %s", got)
	}
	committed, err := kadm.NewClient(w.cl).FetchOffsets(t.Context(), group)
	if o, ok := committed.Lookup(topic, 0); err != nil || !ok || o.At != 0 {
		t.Errorf("committed: got %v (%v), want 0", o, err)
	}
	if err := w.replayer("hookledger_reader").Reset(t.Context(), p, "tester", "a test"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("as a reader: got %v, want permission denied", err)
	}
}

func TestReset_RefusesTheWrongGroupAndSaysWhatItCouldNotForesee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(0, "p", 5)
	w.work()
	r := w.replayer("hookledger_operator")
	r.Group = "another"
	p, _, err := r.PlanReset(t.Context(), ops.Target{Earliest: true}, -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "a group that never committed", r.Reset(t.Context(), p, "t", "r"), ErrWrongGroup)
	if got := w.sql(`select count(*)::text from replays`) + w.sql(`select count(*)::text from incidents`); got != "00" {
		t.Errorf("a refusal left %s rows", got)
	}
	w.produce(w.event(0, "elsewhere", "x", fact{}), &kgo.Record{Topic: topic, Partition: 1, Value: []byte("?")})
	p, unforeseen, err := w.replayer("hookledger_reader").PlanReset(t.Context(), ops.Target{Earliest: true}, -1, 0)
	if err != nil || unforeseen == nil || p.Would != nil || p.Records != 7 {
		t.Errorf("got %+v, %v (%v), want a plan without what would become of it", p, unforeseen, err)
	}
}
