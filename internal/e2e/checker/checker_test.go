package checker

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheck_GoodWorldHasNoViolation(t *testing.T) {
	t.Parallel()
	for _, v := range Check(goodWorld()) {
		t.Errorf("got violation %s, want none", v)
	}
}

// Each way to damage the good world is found, as the first violation and with the
// event or the place that was damaged.
func TestCheck_DamagedWorldIsCaught(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		damage func(*World)
		want   string // invariant
		names  string // in the violation's text
	}{
		{"lost record and all", func(w *World) {
			dropRecords(w, "acme", "a2")
			dropEvent(w, "acme", "a2")
			dropEntry(w, "acme", "a2")
			account(w, "alice", "EUR").Balance += 200
		}, "I1", "acme/a2"},
		{"skipped record", func(w *World) { dropEvent(w, "acme", "a2"); dropEntry(w, "acme", "a2") }, "I1", "acme/a2"},
		{"money event ignored", func(w *World) { event(w, "acme", "a1").Outcome = "ignored" }, "I1", "acme/a1"},
		{"money event in quarantine", func(w *World) {
			e := event(w, "acme", "a1")
			w.Tables.Quarantined = append(w.Tables.Quarantined, Held{Source: "acme", EventID: "a1", Partition: e.Partition, Offset: e.Offset, Reason: "bad_amount"})
			dropEvent(w, "acme", "a1")
			dropEntry(w, "acme", "a1")
		}, "I1", "bad_amount"},
		{"poison record skipped", func(w *World) { w.Tables.Quarantined = nil }, "I1", "acme/poison"},
		{"poison record applied", func(w *World) {
			h := w.Tables.Quarantined[0]
			w.Tables.Quarantined = nil
			w.Tables.Events = append(w.Tables.Events, Event{Source: "acme", EventID: "poison", Outcome: "applied", Partition: h.Partition, Offset: h.Offset})
		}, "I1", "acme/poison"},
		{"event without money applied", func(w *World) { event(w, "stripe", "s2").Outcome = "applied" }, "I1", "stripe/s2"},

		{"event from nowhere", func(w *World) {
			w.Tables.Events = append(w.Tables.Events, Event{Source: "acme", EventID: "ghost", Outcome: "ignored", Partition: 1, Offset: 2})
		}, "I2", "acme/ghost"},
		{"entry from nowhere", func(w *World) {
			w.Tables.Entries = append(w.Tables.Entries, Entry{EntryID: 99, Source: "acme", EventID: "ghost", AccountID: "alice", Currency: "EUR", Amount: 1})
		}, "I2", "acme/ghost"},
		{"record from nowhere", func(w *World) {
			r := w.Records[len(w.Records)-1]
			r.Key, r.Offset = []byte("ghost"), r.Offset+1
			w.Records = append(w.Records, r)
		}, "I2", "acme/ghost"},
		{"refused event processed", func(w *World) {
			w.Tables.Events = append(w.Tables.Events, Event{Source: "acme", EventID: "refused", Outcome: "ignored", Partition: 1, Offset: 2})
		}, "I2", "acme/refused"},

		{"entry twice", func(w *World) {
			e := w.Tables.Entries[0]
			e.EntryID = 99
			w.Tables.Entries = append(w.Tables.Entries, e)
		}, "I3", "acme/a1"},
		{"movement twice", func(w *World) {
			w.Tables.Entries = append(w.Tables.Entries, Entry{EntryID: 99, Source: "stripe", EventID: "m2", AccountID: "bob", Currency: "USD", Amount: 11})
		}, "I3", "stripe/m1"},
		{"event row twice", func(w *World) {
			e := *event(w, "acme", "a1")
			e.Offset = 45
			w.Tables.Events = append(w.Tables.Events, e)
		}, "I3", "acme/a1"},
		{"unpaired in SQL", func(w *World) { w.Tables.Unpaired = []Ref{{"acme", "a1"}} }, "I3", "acme/a1"},

		{"balance wrong", func(w *World) { account(w, "alice", "EUR").Balance++ }, "I4", "alice EUR"},
		{"balance wrong in SQL", func(w *World) { w.Tables.Unbalanced = []Account{{"alice", "EUR", 1, 1}} }, "I4", "alice EUR"},
		{"account missing", func(w *World) { w.Tables.Accounts = w.Tables.Accounts[1:] }, "I4", "alice EUR"},
		{"account from nowhere", func(w *World) { w.Tables.Accounts = append(w.Tables.Accounts, Account{"carol", "EUR", 1, 1}) }, "I4", "carol EUR"},
		{"entry for another account", func(w *World) { w.Tables.Entries[0].AccountID = "bob" }, "I4", "acme/a1"},
		{"entry of another amount", func(w *World) { w.Tables.Entries[0].Amount = 501 }, "I4", "acme/a1"},

		{"bytes changed in the topic", func(w *World) { w.Records[0].Value = []byte("{}") }, "I5", "acme/a1"},
		{"hash wrong in the record", func(w *World) { setHeader(&w.Records[0], "hl_body_sha256", "00") }, "I5", "acme/a1"},
		{"key is not the event ID", func(w *World) { setHeader(&w.Records[0], "ce_id", "a9") }, "I5", "acme/a1"},
		{"hash wrong in the row", func(w *World) { event(w, "acme", "a1").BodySHA256 = make([]byte, 32) }, "I5", "acme/a1"},
		{"row names another record", func(w *World) { event(w, "acme", "a1").Offset = 42 }, "I5", "acme/a1"},

		{"refused event stored", func(w *World) {
			r := w.Records[len(w.Records)-1]
			r.Key, r.Offset = []byte("refused"), r.Offset+1
			setHeader(&r, "ce_id", "refused")
			w.Records = append(w.Records, r)
		}, "I6", "acme/refused"},

		{"unheard event skipped", func(w *World) {
			dropEvent(w, "acme", "taken")
			dropEntry(w, "acme", "taken")
			account(w, "alice", "EUR").Balance -= 30
		}, "I4", "alice"},
		// Nobody heard the answer and it moves no money, so nothing else misses it.
		{"offset leads at the end", func(w *World) { dropEvent(w, "acme", "quiet") }, "I7", "acme/quiet"},
		{"offset led during the run", func(w *World) { event(w, "acme", "a1").ProcessedAt = start.Add(90 * time.Minute) }, "I7", "acme/a1"},

		{"replay changed a balance", func(w *World) {
			before := *w.Before
			before.Accounts = slices.Clone(before.Accounts)
			before.Accounts[0].Balance = 330
			w.Before = &before
		}, "I8", "alice EUR"},
		{"replay wrote an entry", func(w *World) {
			before := *w.Before
			before.Entries = before.Entries[1:]
			w.Before = &before
		}, "I8", "acme/a1"},

		{"two outcomes for one record", func(w *World) {
			e := event(w, "acme", "a1")
			w.Tables.Quarantined = append(w.Tables.Quarantined, Held{Source: "acme", EventID: "a1", Partition: e.Partition, Offset: e.Offset, Reason: "bad_amount"})
		}, "I9", "acme/a1"},
		{"offset trails the row", func(w *World) {
			w.Group.Committed[1] = 1
			w.Samples = nil
		}, "I9", "acme/taken"},

		{"answer before the record", func(w *World) { w.Records[0].Time = start.Add(time.Hour) }, "I10", "acme/a1"},

		{"lag at the end", func(w *World) {
			dropEvent(w, "stripe", "m2") // never read: behind the committed offset
			w.History = slices.DeleteFunc(w.History, func(d Delivery) bool { return d.EventID == "m2" && d.Source == "stripe" })
			d := w.History[0]
			d.Source, d.EventID, d.Result, d.Amount, d.T1 = "stripe", "m2", Unknown, 0, d.T0
			d.SHA256 = hashOf(w, "stripe", "m2")
			w.History = append(w.History, d)
			w.Group.Committed[0]--
		}, "I11", "partition 0"},
		{"slow request", func(w *World) { w.History[2].T1 = w.History[2].T0.Add(7 * time.Second) }, "I11", "stripe/a1"},

		{"secret in a log", func(w *World) { w.Texts["ingest 1"] += "key=whsec_canary\n" }, "I13", "line 3 of ingest 1"},
		{"secret in the topic", func(w *World) { setHeader(&w.Records[0], "stripe-signature", "whsec_canary") }, "I13", "acme/a1"},

		{"silent jump back", func(w *World) { w.Samples[2].Committed[0] = 30 }, "I14", "partition 0"},
		{"incident without a cause", func(w *World) {
			w.Tables.Incidents = []Incident{{ID: 7, Severity: "loss", Kind: "truncated", Partition: 0}}
		}, "I14", "incident 7"},
		{"forged event answered 2xx", func(w *World) { delivery(w, "stripe", "forged").Result = OK }, "I6", "stripe/forged"},
		{"forged event stored after no answer", func(w *World) {
			r := w.Records[0]
			r.Key, r.Headers = []byte("forged"), slices.Clone(r.Headers)
			setHeader(&r, "hl_source", "stripe")
			setHeader(&r, "ce_source", "/webhooks/stripe")
			setHeader(&r, "ce_id", "forged")
			setHeader(&r, "hl_body_sha256", delivery(w, "stripe", "forged").SHA256)
			r.Value, r.Partition, r.Offset = []byte(bodyOf("stripe", "forged")), 1, w.Group.Committed[1]
			w.Records = append(w.Records, r)
		}, "I6", "stripe/forged"},

		{"older state stands", func(w *World) { w.Tables.States[0] = ObjectState{"acme", "order-1", "pending", 10, time.Unix(999, 0)} }, "S1", "acme/order-1"},
		{"state missing", func(w *World) { w.Tables.States = nil }, "S1", "acme/order-1"},
		{"state of nobody", func(w *World) {
			w.Tables.States = append(w.Tables.States, ObjectState{Source: "acme", Object: "order-2"})
		}, "S1", "acme/order-2"},

		{"key paid twice", func(w *World) {
			p := w.Tables.Payments[0]
			p.PaymentID = "again"
			w.Tables.Payments = append(w.Tables.Payments, p)
		}, "P1", "k1"},
		{"key answered in two ways", func(w *World) { w.Tries[1].Body += " " }, "P1", "k1"},
		{"key of two bodies answered twice", func(w *World) {
			t := w.Tries[1]
			t.Reference = "ref-k1-other"
			w.Tries = append(w.Tries, t)
		}, "P1", "k1"},
		{"refused for good and paid", func(w *World) {
			w.Tables.Payments = append(w.Tables.Payments, Payment{"id-of-k2", "alice", "carol", 9_000_000, "EUR", "ref-k2"})
		}, "P1", "k2"},
		{"answered 201 and not paid", func(w *World) {
			w.Tables.Payments = nil
			w.Tables.Entries = slices.DeleteFunc(slices.Clone(w.Tables.Entries), func(e Entry) bool { return e.EventID == "" })
			w.Tables.Accounts = slices.Clone(w.Tables.Accounts)
			w.Tables.Accounts[0].Balance += 20
			w.Tables.Accounts = w.Tables.Accounts[:3]
			before := w.Tables
			w.Before = &before
		}, "P2", "k1"},
		{"payment of nobody", func(w *World) {
			w.Tables.Payments = append(w.Tables.Payments, Payment{"ghost", "alice", "carol", 1, "EUR", "ref-ghost"})
		}, "P3", "ghost"},
		{"payment of another amount", func(w *World) { w.Tables.Payments[0].Amount = 21 }, "P2", "k1"},
		{"one side of a payment", func(w *World) {
			w.Tables.Payments[0].To, w.Tries[0].To, w.Tries[1].To, w.Tries[2].To = "dave", "dave", "dave", "dave"
		}, "P3", "id-of-k1"},
		{"entries without a payment", func(w *World) {
			for i := range w.Tables.Entries {
				if w.Tables.Entries[i].EventID == "" {
					w.Tables.Entries[i].MovementID = "ghost"
				}
			}
		}, "P3", "ghost"},

		{"progress trails at the end", func(w *World) { w.Tables.Progress[0].Next-- }, "I15", "partition 0"},
		{"progress trailed silently", func(w *World) { w.Samples[1].Progress[0] = Progress{Next: 41, From: 40} }, "I15", "partition 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := goodWorld()
			tc.damage(&w)
			found := Check(w)
			if len(found) == 0 {
				t.Fatalf("got no violation, want %s", tc.want)
			}
			if got := found[0]; got.Invariant != tc.want || !strings.Contains(got.String(), tc.names) {
				t.Errorf("got first violation %s, want %s naming %q; all: %v", got, tc.want, tc.names, found)
			}
			if strings.Contains(strings.Join(texts(found), "\n"), "whsec_canary") {
				t.Error("a violation repeats the secret")
			}
		})
	}
}

// A record that is no event of ours is on record by its place, and by that alone.
func TestCheck_NamelessRecordIsOnRecordByItsPlace(t *testing.T) {
	t.Parallel()
	w := goodWorld()
	w.Samples = nil
	r := Record{Partition: 1, Offset: w.Group.Committed[1], Time: start, Value: []byte("hello")}
	w.Records = append(w.Records, r)
	w.Group.Committed[1]++
	w.Tables.Progress[1].Next++
	w.Tables.Quarantined = append(w.Tables.Quarantined, Held{Partition: 1, Offset: r.Offset, Reason: "not_an_event"})
	for _, v := range Check(w) {
		if v.Invariant != "I2" && v.Invariant != "I5" { // it was not sent, and has no hash
			t.Errorf("got violation %s, want none", v)
		}
	}
	w.Tables.Quarantined[len(w.Tables.Quarantined)-1].Offset++
	if found := Check(w); !slices.ContainsFunc(found, func(v Violation) bool { return v.Invariant == "I7" }) {
		t.Errorf("quarantine names another place: got %v, want I7", found)
	}
}

// Once a generation was emptied, rows may be missing; entries and what they prove may not.
func TestCheck_ForgottenRowsAreFineAndLostMoneyIsNot(t *testing.T) {
	t.Parallel()
	w := goodWorld()
	for _, ref := range []Ref{{"acme", "a1"}, {"stripe", "s2"}, {"stripe", "m2"}} { // money, none, told twice
		dropEvent(&w, ref.Source, ref.ID)
	}
	w.Tables.Unpaired = []Ref{{"acme", "a1"}}
	if found := Check(w); len(found) == 0 {
		t.Error("rows are missing though nothing was forgotten: got no violation")
	}
	w.Forgot = true
	event(&w, "acme", "quiet").ProcessedAt = start.Add(90 * time.Minute) // came again
	for _, v := range Check(w) {
		t.Errorf("got violation %s, want none", v)
	}
	dropEntry(&w, "acme", "a1")
	if found := Check(w); len(found) == 0 || found[0].Invariant != "I1" || !strings.Contains(found[0].String(), "acme/a1") {
		t.Errorf("entry lost with its row: got %v, want I1 naming acme/a1", found)
	}
}

// A new coordinator tells an older offset for a moment. That is no jump, unless Postgres
// went back as well.
func TestCheck_AStaleAnswerOfANewCoordinatorIsNoJump(t *testing.T) {
	t.Parallel()
	dip := func() World {
		w := goodWorld()
		w.Samples[2].Committed[0] = 30
		w.CoordinatorMoved = true
		return w
	}
	for _, v := range Check(dip()) {
		t.Errorf("got violation %s, want none", v)
	}
	w := dip()
	w.Samples[2].Progress[0] = Progress{Next: 30, From: 30}
	if found := Check(w); len(found) == 0 || found[0].Invariant != "I14" {
		t.Errorf("progress went back too: got %v, want I14", found)
	}
	w = dip()
	w.CoordinatorMoved = false
	if found := Check(w); len(found) == 0 || found[0].Invariant != "I14" {
		t.Errorf("no coordinator moved: got %v, want I14", found)
	}
}

func TestCheck_IncidentOfTheRunIsFine(t *testing.T) {
	t.Parallel()
	w := goodWorld()
	w.Samples[2].Committed[0] = 30
	w.Incidents = []string{"rewind"}
	w.Tables.Incidents = []Incident{{ID: 1, Severity: "info", Kind: "rewind", Partition: 0, RaisedAt: start.Add(time.Minute)}}
	for _, v := range Check(w) {
		t.Errorf("got violation %s, want none", v)
	}
}

// An offset that moves back no further than a crash may go is no jump, also if Postgres was
// away when it was last looked at; further back it is one.
func TestCheck_OffsetMovesWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	for back, want := range map[int64]bool{0: false, 1: true} {
		w := goodWorld()
		from := w.Samples[0].Progress[0].From
		w.Samples[1].Progress = nil
		w.Samples[2].Committed[0] = from - back
		found := slices.ContainsFunc(Check(w), func(v Violation) bool { return v.Invariant == "I14" })
		if found != want {
			t.Errorf("back to %d from the last known commit %d: got a jump %t, want %t", from-back, from, found, want)
		}
	}
}

func texts(found []Violation) []string {
	var all []string
	for _, v := range found {
		all = append(all, v.String())
	}
	return all
}

func delivery(w *World, source, id string) *Delivery {
	for i := range w.History {
		if w.History[i].Ref() == (Ref{source, id}) {
			return &w.History[i]
		}
	}
	panic("no delivery " + source + "/" + id)
}

func event(w *World, source, id string) *Event {
	for i := range w.Tables.Events {
		if w.Tables.Events[i].Ref() == (Ref{source, id}) {
			return &w.Tables.Events[i]
		}
	}
	panic("no event " + source + "/" + id)
}

func account(w *World, id, currency string) *Account {
	for i := range w.Tables.Accounts {
		if a := &w.Tables.Accounts[i]; a.AccountID == id && a.Currency == currency {
			// Before shares the rows: damage is to now alone.
			before := *w.Before
			before.Accounts = slices.Clone(before.Accounts)
			w.Before = &before
			return a
		}
	}
	panic("no account " + id)
}

func dropEvent(w *World, source, id string) {
	w.Tables.Events = slices.DeleteFunc(slices.Clone(w.Tables.Events), func(e Event) bool { return e.Ref() == Ref{source, id} })
}

func dropEntry(w *World, source, id string) {
	w.Tables.Entries = slices.DeleteFunc(slices.Clone(w.Tables.Entries), func(e Entry) bool { return e.Ref() == Ref{source, id} })
}

func dropRecords(w *World, source, id string) {
	w.Records = slices.DeleteFunc(w.Records, func(r Record) bool { return r.Ref() == Ref{source, id} })
}

func setHeader(r *Record, key, value string) {
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			r.Headers[i].Value = value
		}
	}
}

func hashOf(w *World, source, id string) string {
	for i := range w.Records {
		if w.Records[i].Ref() == (Ref{source, id}) {
			return w.Records[i].Header("hl_body_sha256")
		}
	}
	panic("no record " + source + "/" + id)
}
