package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hookledger/internal/ledger"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// with verifies with options of its own beside those of the world.
func (w *world) with(set func(*verify.Options)) verify.Report {
	w.tb.Helper()
	opts := verify.Options{Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group}
	set(&opts)
	rep, err := verify.Run(w.tb.Context(), opts)
	must(w.tb, err)
	return rep
}

// told is the mapping of these tests, as today's configuration would have it.
func told(opts *verify.Options) {
	opts.Meaning = func(e *schema.Event) (schema.Meaning, error) { return tell(e) }
}

// applyAll has the real core apply all that was produced to a partition.
func (w *world) applyAll(partition int32, tell ledger.Mapper) {
	w.tb.Helper()
	core := ledger.New(w.pool, tell, ledger.Options{})
	pos := ledger.Position{ClusterID: w.cluster, Topic: w.topic, TopicID: w.topicID, Partition: partition}
	must(w.tb, core.WritePosition(w.tb.Context(), ledger.PositionWrite{Position: pos}))
	_, err := core.Apply(w.tb.Context(), ledger.Batch{Position: pos, Records: w.read(partition)})
	must(w.tb, err)
	w.commitOffset(partition, w.next[partition])
}

// The blind spot of sums: an entry and its balance changed together by the same amount.
func TestRun_EntriesAreWhatTheEventMeant(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"evt_plain": "credit user_1 100 m1",
		"evt_two":   "two user_2 40 m2",              // two postings
		"evt_first": "credit user_3 7 shared",        // tells of one of the two movements of …
		"evt_part":  "pair user_3 7 shared user_4 9", // … which writes the other alone
		"evt_state": "paid user_5 11 m5",             // a status beside its posting
	}
	mapping := func(e *schema.Event) (schema.Meaning, error) {
		f := strings.Fields(string(e.Body))
		post := func(account, amount, movement string) schema.Posting {
			var n int64
			_, err := fmt.Sscan(amount, &n)
			must(t, err)
			return schema.Posting{Account: account, Contra: "external:stripe", Amount: n, Currency: "EUR", Rule: "paid", Movement: movement}
		}
		switch f[0] {
		case "two":
			return schema.Meaning{Postings: []schema.Posting{post(f[1], f[2], f[3]), post(f[1], "-1", f[3])}}, nil
		case "pair":
			return schema.Meaning{Postings: []schema.Posting{post(f[1], f[2], f[3]), post(f[4], f[5], "other")}}, nil
		case "paid":
			return schema.Meaning{Postings: []schema.Posting{post(f[1], f[2], f[3])}, Status: &schema.Status{Object: "o", Status: "paid"}}, nil
		}
		return schema.Meaning{Postings: []schema.Posting{post(f[1], f[2], f[3])}}, nil
	}
	populated := func(t *testing.T) *world {
		w := setup(t, 1)
		for _, id := range []string{"evt_plain", "evt_two", "evt_first", "evt_part", "evt_state"} {
			w.produce(0, w.event(id, bodies[id]))
		}
		w.applyAll(0, mapping)
		return w
	}
	run := func(w *world) verify.Report {
		return w.with(func(o *verify.Options) { o.Meaning = mapping })
	}
	t.Run("undamaged", func(t *testing.T) {
		t.Parallel()
		w := populated(t)
		if rep := run(w); !rep.OK || note(rep, "meanings_not_compared") != "" {
			t.Errorf("got %s", show(rep))
		}
		// Without a mapping, or with another one, nothing is claimed of what no table keeps.
		if rep := w.run(); !rep.OK || !strings.HasPrefix(note(rep, "meanings_not_compared"), "2 ") {
			t.Errorf("without a mapping: got %s", show(rep))
		}
		rep := w.with(func(o *verify.Options) {
			o.Meaning = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, errors.New("not today") }
		})
		if !rep.OK || !strings.HasPrefix(note(rep, "meanings_not_compared"), "2 ") {
			t.Errorf("with another mapping: got %s", show(rep))
		}
	})
	for id, account := range map[string]string{"evt_plain": "user_1", "evt_two": "user_2", "evt_part": "user_4", "evt_state": "user_5"} {
		t.Run(id+" and its balance changed alike", func(t *testing.T) {
			t.Parallel()
			w := populated(t)
			w.exec(`update ledger_entries set amount = amount + 1000 where event_id = $1 and line = (select min(line) from ledger_entries where event_id = $1)`, id)
			w.exec(`update accounts set balance = balance + 1000 where account_id = $1`, account)
			rep := run(w)
			if got := broken(rep); !slices.Equal(got, []string{verify.CheckMeaning}) || !strings.Contains(check(rep, verify.CheckMeaning).Found, "stripe/"+id+" at ") {
				t.Errorf("got %s", show(rep))
			}
		})
	}
	t.Run("an entry moved to another account", func(t *testing.T) {
		t.Parallel()
		w := populated(t)
		w.exec(`update ledger_entries set account_id = 'mallory' where event_id = 'evt_plain'`)
		w.exec(`update accounts set account_id = 'mallory' where account_id = 'user_1'`)
		if got := broken(run(w)); !slices.Equal(got, []string{verify.CheckMeaning}) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("an amended event", func(t *testing.T) {
		t.Parallel()
		w := populated(t)
		w.exec(`insert into amendments (amendment_id, amended_at, event_key, meaning, kind, source, event_id, amended_by, reason)
			select gen_random_uuid(), now(), event_key, gen_random_uuid(), 'amend', source, event_id, 'me', 'test' from processed_events where event_id = 'evt_plain'`)
		w.exec(`update processed_events set meaning = gen_random_uuid() where event_id = 'evt_plain'`)
		if got := broken(run(w)); slices.Contains(got, verify.CheckMeaning) {
			t.Errorf("got %v", got)
		}
	})
}

// Signatures are checked as of when they came; what cannot be checked is no finding.
func TestRun_SignaturesAtReceiveTime(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	event := func(id, scheme, key string, at time.Duration) schema.Event {
		e := w.event(id, "{}")
		e.ReceivedAt, e.Scheme, e.KeyID = w.now.Add(at), scheme, key
		return e
	}
	events := []schema.Event{
		event("evt_before", "stripe", "k1", -3*time.Hour), // made by the secret that had this name before
		event("evt_good", "stripe", "k1", -2*time.Hour),
		event("evt_wrong", "stripe", "k1", -time.Hour),
		event("evt_good2", "stripe", "k1", 0),
		event("evt_rotated", "stripe", "k0", -time.Hour),
		event("evt_token", "token", "t", 0),
		event("evt_filled", "import", "alice", 0),
	}
	for _, f := range w.produce(0, events...) {
		w.process(f, "ignored")
	}
	w.commit()
	verifier := func(wrong ...string) func(*verify.Options) {
		return func(o *verify.Options) {
			o.CheckSignature = func(e *schema.Event) error {
				switch {
				case e.Scheme == "import":
					t.Errorf("asked about %s, which nobody signed", e.ID)
				case e.Scheme == "token":
					return &verify.UncheckedError{Why: "no token is stored"}
				case slices.Contains(wrong, e.ID):
					return errors.New("no match")
				}
				return nil
			}
		}
	}
	rep := w.with(verifier("evt_before", "evt_rotated"))
	if !rep.OK {
		t.Errorf("nothing wrong: got %s", show(rep))
	}
	if !strings.Contains(note(rep, "imported"), "evt_filled") {
		t.Errorf("got %s", show(rep))
	}
	var notes strings.Builder
	for _, n := range rep.Notes {
		if n.Name == "signatures_not_checkable" {
			notes.WriteString(n.Found + "\n")
		}
	}
	for _, want := range []string{"1 signature not checkable, no token is stored: stripe/evt_token", "2 signatures not checkable, made by no secret of today"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("got notes %s, want %q", &notes, want)
		}
	}
	rep = w.with(verifier("evt_before", "evt_rotated", "evt_wrong"))
	if got := broken(rep); !slices.Equal(got, []string{verify.CheckSignatures}) || !strings.Contains(check(rep, verify.CheckSignatures).Found, "1 record whose signature was made by no secret that was in use when it was received: stripe/evt_wrong") {
		t.Errorf("got %s", show(rep))
	}
}

// historyFile writes deliveries as `send --history` does.
func (w *world) historyFile(lines ...map[string]any) string {
	w.tb.Helper()
	var text strings.Builder
	for _, l := range lines {
		line := map[string]any{"source": "stripe", "result": "ok", "http": 200, "t0": w.now, "t1": w.now}
		for k, v := range l {
			line[k] = v
		}
		b, err := json.Marshal(line)
		must(w.tb, err)
		text.Write(append(b, '\n'))
	}
	path := filepath.Join(w.tb.TempDir(), "history.jsonl")
	must(w.tb, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

func TestRun_AcknowledgedDeliveriesAreThere(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate() // evt_6 is above the committed offset
	rows := w.produce(2, w.event("evt_gone", "1"), w.event("evt_held", "{"))
	w.process(rows[0], "ignored")
	w.quarantine(rows[1], "body_unreadable")
	w.exec(sqlAdvance, w.cluster, w.topic, w.topicID, 2, 2)
	w.commitOffset(2, 2)
	w.deleteBelow(2, 2)
	good := w.historyFile(
		map[string]any{"event_id": "evt_1"}, map[string]any{"event_id": "evt_1"}, map[string]any{"event_id": "evt_6"},
		map[string]any{"event_id": "evt_gone"}, map[string]any{"event_id": "evt_held"},
		map[string]any{"event_id": "evt_refused", "result": "reject", "http": 400}, map[string]any{"event_id": "evt_unknown", "result": "unknown", "http": 503})
	rep := w.with(func(o *verify.Options) { o.Histories = []string{good} })
	if !rep.OK || check(rep, verify.CheckAcknowledged).Found != "5 acknowledged deliveries of 4 events" || !strings.HasPrefix(note(rep, "acknowledged_by_record"), "2 ") || note(rep, "history_cut") != "" {
		t.Errorf("got %s", show(rep))
	}
	bad := w.historyFile(map[string]any{"event_id": "evt_lost"}, map[string]any{"event_id": "evt_1", "source": "acme"})
	rep = w.with(func(o *verify.Options) {
		o.Histories = []string{good, bad}
		o.SourceKey = func(name string) string {
			return map[string]string{"acme": "stripe"}[name] + map[string]string{"stripe": name}[name]
		}
	})
	if got := broken(rep); !slices.Equal(got, []string{verify.CheckAcknowledged}) || !strings.Contains(check(rep, verify.CheckAcknowledged).Found, "1 acknowledged delivery whose") ||
		!strings.Contains(check(rep, verify.CheckAcknowledged).Found, "stripe/evt_lost acknowledged at ") ||
		!strings.Contains(check(rep, verify.CheckAcknowledged).Next, "events import FILE") {
		t.Errorf("got %s", show(rep))
	}
	// Out of the range of time, nobody asks for it.
	if rep := w.with(func(o *verify.Options) { o.Histories, o.To = []string{bad}, w.now.Add(-time.Minute) }); !rep.OK {
		t.Errorf("outside the range: got %s", show(rep))
	}
	// A line that is being written is not there yet; one that is none is an error.
	half := filepath.Join(t.TempDir(), "half.jsonl")
	must(t, os.WriteFile(half, []byte(`{"source":"stripe","event_id":"evt_1","http":200}`+"\n"+`{"source":"str`), 0o600))
	if rep := w.with(func(o *verify.Options) { o.Histories = []string{half, good} }); !rep.OK || !strings.HasPrefix(note(rep, "history_cut"), "1 last line of a history has no end") || !strings.Contains(note(rep, "history_cut"), "half.jsonl") {
		t.Errorf("half a line: got %s", show(rep))
	}
	for text, want := range map[string]string{"hello\n": "line 1 is not a line of a history", "\n" + strings.Repeat("x", 1<<20): "line 2 is longer than any line of a history"} {
		must(t, os.WriteFile(half, []byte(text), 0o600))
		_, err := verify.Run(t.Context(), verify.Options{Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group, Histories: []string{half}})
		var history *verify.HistoryError
		if !errors.As(err, &history) || !strings.Contains(err.Error(), want) {
			t.Errorf("no history: got %v, want %s", err, want)
		}
	}
}

func TestRun_RangeOfTimeJudgesItsRecordsAlone(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	for i, at := range []time.Duration{-3 * time.Hour, -2 * time.Hour, -time.Hour, 0} {
		e := w.event(fmt.Sprintf("evt_%d", i), "1")
		e.ReceivedAt = w.now.Add(at)
		f := w.produce(0, e)[0]
		if i != 1 && i != 3 {
			w.process(f, "ignored")
		}
	}
	w.commit()
	for name, c := range map[string]struct {
		from, to time.Duration
		records  int64
		lost     string
	}{
		"all":          {-9 * time.Hour, time.Hour, 4, "2 records"},
		"the first":    {-9 * time.Hour, -150 * time.Minute, 1, ""},
		"the second":   {-2 * time.Hour, -time.Hour, 1, "stripe/evt_1"},
		"the third":    {-time.Hour, 0, 1, ""},
		"none of them": {time.Minute, time.Hour, 0, ""},
	} {
		rep := w.with(func(o *verify.Options) { o.From, o.To = w.now.Add(c.from), w.now.Add(c.to) })
		if found := check(rep, verify.CheckRecords).Found; rep.Records != c.records || rep.OK != (c.lost == "") || !strings.Contains(found, c.lost) {
			t.Errorf("%s: got %s", name, show(rep))
		}
		if rep.Range.FromTime == nil || rep.Range.ToTime == nil || len(rep.Range.Partitions) != 1 {
			t.Errorf("%s: got range %+v", name, rep.Range)
		}
	}
}

func TestRun_StrictBreaksOnWhatWaits(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	facts := w.populate()
	rep := w.with(func(o *verify.Options) { o.Strict, o.Command = true, "hookledger --config /etc/h.yaml" })
	if got := broken(rep); !slices.Equal(got, []string{"quarantine", "conflicts"}) || check(rep, "quarantine").Next != "hookledger --config /etc/h.yaml quarantine list" {
		t.Errorf("got %s", show(rep))
	}
	w.process(facts[7], "discarded")
	w.exec(`update quarantined_events set resolved_at = now(), resolution = 'discarded'`)
	// Nobody leaves a trace of what is no event.
	w.quarantine(fact{Event: w.event("evt_none", ""), partition: 2, offset: 9}, "bad_header")
	w.exec(`update quarantined_events set resolved_at = now(), resolution = 'discarded' where reason = 'bad_header'`)
	w.exec(`update event_conflicts set resolved_at = now(), resolution = 'discarded'`)
	if rep := w.with(func(o *verify.Options) { o.Strict = true }); !rep.OK {
		t.Errorf("got %s", show(rep))
	}
}
