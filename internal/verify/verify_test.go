package verify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/internal/verify"
	"hookledger/schema"
)

func TestRun_WorldInOrderIsOK(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate()
	rep := w.run()
	if !rep.OK || rep.UnaccountedEvents != 0 || rep.Records != 8 {
		t.Fatalf("got %s", show(rep))
	}
	for name, want := range map[string]string{"quarantine": "1 body_unreadable", "conflicts": "evt_2", "changed_bodies": "evt_3"} {
		if got := note(rep, name); !strings.Contains(got, want) {
			t.Errorf("note %s: got %q, want %q in it", name, got, want)
		}
	}
}

func TestRun_RoleThatMayOnlySelect(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate()
	if rep := w.runAs(w.asReader()); !rep.OK {
		t.Fatalf("got %s", show(rep))
	}
}

func TestRun_FreshSystemIsOK(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int32{"no topic": 0, "empty topic": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, partitions)
			if rep := w.run(); !rep.OK || rep.Records != 0 {
				t.Fatalf("got %s", show(rep))
			}
		})
	}
}

func TestRun_WithoutSchemaSaysMigrate(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.exec(`drop table incidents, accounts cascade`)
	_, err := verify.Run(t.Context(), verify.Options{Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group})
	if err == nil || !strings.Contains(err.Error(), "hookledger migrate up") {
		t.Fatalf("got %v", err)
	}
}

// Every damage is found by the check that is for it, and by no other.
func TestRun_FindsDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(*world, []fact)
		checks []string // in the order of the report
		want   string   // in the first one's found
		missed int64
	}{
		"balance off by one": {
			func(w *world, _ []fact) {
				w.exec(`update accounts set balance = balance + 1 where account_id = 'user_1'`)
			},
			[]string{verify.CheckBalances}, "EUR: balance 108, entries sum to 107", 0,
		},
		"entry count off by one": {
			func(w *world, _ []fact) {
				w.exec(`update accounts set entry_count = entry_count + 1 where account_id = 'user_2'`)
			},
			[]string{verify.CheckBalances}, "user_2 minor EUR: balance -40, entries sum to -40; entry_count 2, entries 1", 0,
		},
		"account missing": {
			func(w *world, _ []fact) { w.exec(`delete from accounts where account_id = 'user_2'`) },
			[]string{verify.CheckBalances}, "user_2 minor EUR: balance none, entries sum to -40", 0,
		},
		"account without entries": {
			func(w *world, _ []fact) { w.exec(`insert into accounts values (0, 1, now(), 'user_9', 'EUR')`) },
			[]string{verify.CheckBalances}, "user_9 minor EUR: balance 0, entries sum to none", 0,
		},
		"account of another currency": {
			func(w *world, _ []fact) { w.exec(`update accounts set currency = 'USD' where account_id = 'user_2'`) },
			[]string{verify.CheckBalances}, "2 accounts", 0,
		},
		"entry deleted": {
			func(w *world, _ []fact) { w.exec(`delete from ledger_entries where event_id = 'evt_2'`) },
			[]string{verify.CheckBalances, verify.CheckEvents}, "user_2 minor EUR: balance -40, entries sum to none", 0,
		},
		"entry deleted, balance mended": {
			func(w *world, _ []fact) {
				w.exec(`delete from ledger_entries where event_id = 'evt_3'`)
				w.exec(`update accounts set balance = balance - 7, entry_count = 1 where account_id = 'user_1'`)
			},
			[]string{verify.CheckEvents}, "stripe/evt_3", 0,
		},
		"entry added for no event": {
			func(w *world, _ []fact) { w.enter(fact{Event: w.event("evt_forged", "")}, "user_1", 5) },
			[]string{verify.CheckEntries}, "stripe/evt_forged", 0,
		},
		"entry of an ignored event": {
			func(w *world, f []fact) { w.enter(f[4], "user_1", 5) },
			[]string{verify.CheckEntries}, "stripe/evt_4", 0,
		},
		"entry of a payment that is not there": {
			func(w *world, f []fact) {
				w.enter(fact{Event: w.event("evt_forged", "")}, "user_1", 5)
				w.exec(`update ledger_entries set event_key = null, source = null, event_id = null, payment_id = '00000000-0000-0000-0000-000000000009',
					rule = 'payment', movement_id = '00000000-0000-0000-0000-000000000009', effect_key = $1 where event_id = 'evt_forged'`, effectKey("_payments", "payment", "00000000-0000-0000-0000-000000000009", 0))
			},
			[]string{verify.CheckEntries}, "payment ", 0,
		},
		"row of an applied event deleted": {
			func(w *world, _ []fact) { w.exec(`delete from processed_events where event_id = 'evt_2'`) },
			[]string{verify.CheckEntries}, "stripe/evt_2", 0,
		},
		"row of an ignored event deleted": {
			func(w *world, _ []fact) { w.exec(`delete from processed_events where event_id = 'evt_4'`) },
			[]string{verify.CheckRecords}, "stripe/evt_4 at ", 1,
		},
		"record below the committed offset not processed": {
			func(w *world, _ []fact) {
				w.produce(2, w.event("evt_7", `{"n":7}`), w.event("evt_8", `{"n":8}`), w.event("evt_7", `{"n":7}`))
				w.commit()
			},
			[]string{verify.CheckRecords}, "stripe/evt_7 at ", 4, // evt_6 is below the offset now, too
		},
		"conflict forgotten with its event": {
			func(w *world, _ []fact) {
				w.exec(`delete from event_conflicts`)
				w.exec(`delete from processed_events where event_id = 'evt_2'`)
				w.exec(`delete from ledger_entries where event_id = 'evt_2'`)
				w.exec(`delete from accounts where account_id = 'user_2'`)
			},
			[]string{verify.CheckRecords}, "stripe/evt_2 at ", 2,
		},
		"quarantine emptied": {
			func(w *world, _ []fact) { w.exec(`delete from quarantined_events`) },
			[]string{verify.CheckRecords}, "stripe/evt_5 at ", 1,
		},
		"stored hash changed": {
			func(w *world, _ []fact) {
				w.exec(`update processed_events set body_sha256 = sha256('x') where event_id = 'evt_1'`)
			},
			[]string{verify.CheckHashes}, "stripe/evt_1 at ", 0,
		},
		"bytes of the topic changed after they were applied": {
			func(w *world, _ []fact) {
				e := w.event("evt_7", `{"n":7}`)
				e.Body = []byte(`{"n":8}`)
				f := w.produce(2, e)[0]
				w.apply(f, "user_7", 7)
				w.commitOffset(2, 1)
				w.exec(`insert into consumer_progress values (0, 1, now(), $1, 2, 0, $2, $3)`, w.topicID, w.cluster, w.topic)
			},
			[]string{verify.CheckHashes}, "stripe/evt_7 at ", 0,
		},
		"bytes in quarantine changed": {
			func(w *world, _ []fact) { w.exec(`update quarantined_events set body = 'x'`) },
			[]string{verify.CheckHashes}, "stripe/evt_5 at ", 0,
		},
		"bytes of a conflict changed": {
			func(w *world, _ []fact) { w.exec(`update event_conflicts set body = 'x'`) },
			[]string{verify.CheckHashes}, "conflict of stripe/evt_2", 0,
		},
		"amount out of range": {
			func(w *world, _ []fact) {
				w.exec(`alter table ledger_entries drop constraint ledger_entries_amount_range`)
				w.exec(`update ledger_entries set amount = 2000000000000000 where event_id = 'evt_2'`)
				w.exec(`update accounts set balance = 2000000000000000 where account_id = 'user_2'`)
			},
			[]string{verify.CheckAmounts}, "2000000000000000 minor EUR", 0,
		},
		"currency in lower case": {
			func(w *world, _ []fact) {
				w.exec(`update ledger_entries set currency = 'eur' where event_id = 'evt_2'`)
				w.exec(`update accounts set currency = 'eur' where account_id = 'user_2'`)
			},
			[]string{verify.CheckAmounts}, "-40 minor eur", 0,
		},
		"committed beyond the log's end": {
			func(w *world, _ []fact) { w.commitOffset(2, 9) },
			[]string{verify.CheckPositions}, "committed 9 is beyond the log's end 0", 0,
		},
		"committed ahead of progress": {
			func(w *world, _ []fact) { w.exec(`update consumer_progress set next_offset = 2 where partition = 0`) },
			[]string{verify.CheckPositions}, "committed 4 is ahead of progress 2", 0,
		},
		"progress beyond the log's end": {
			func(w *world, _ []fact) { w.exec(`update consumer_progress set next_offset = 99 where partition = 0`) },
			[]string{verify.CheckPositions}, "progress 99 is beyond the log's end 4", 0,
		},
		"progress lost": {
			func(w *world, _ []fact) { w.exec(`delete from consumer_progress where partition = 0`) },
			[]string{verify.CheckPositions}, "Postgres has no progress", 0,
		},
		"database of another cluster": {
			func(w *world, _ []fact) {
				w.exec(`insert into consumer_progress values (0, 1, now(), gen_random_uuid(), 0, 0, 'other', $1)`, w.topic)
			},
			[]string{verify.CheckPositions}, "belongs to cluster other", 0,
		},
		"records deleted before they were applied": {
			func(w *world, _ []fact) {
				w.produce(2, w.event("evt_7", `{"n":7}`), w.event("evt_8", `{"n":8}`))
				w.deleteBelow(2, 2)
				w.exec(`insert into consumer_progress values (0, 0, now(), $1, 2, 0, $2, $3)`, w.topicID, w.cluster, w.topic)
			},
			[]string{verify.CheckPositions}, "records 0 to 1 were deleted", 0,
		},
		"leg of a payment that is another": {
			func(w *world, _ []fact) {
				w.pay(100)
				w.exec(`update ledger_entries set amount = -amount where payment_id is not null`)
				w.exec(`update accounts a set balance = (select sum(amount) from ledger_entries l where l.account_id = a.account_id and l.currency = a.currency)`)
			},
			[]string{verify.CheckEntries}, "payment ", 0,
		},
		"payment without its legs": {
			func(w *world, _ []fact) { w.insertPayment(100) },
			[]string{verify.CheckEvents}, "from alice to bob: 0 of its 2 entries", 0,
		},
		"amendment without an entry": {
			func(w *world, _ []fact) { w.insertAmendment() },
			[]string{verify.CheckEvents}, "amendment ", 0,
		},
		"quarantine emptied by a word": {
			func(w *world, _ []fact) {
				w.exec(`update quarantined_events set resolved_at = now(), resolution = 'replayed'`)
			},
			[]string{verify.CheckResolutions}, "stripe/evt_5, body_unreadable: replayed at ", 0,
		},
		"effect key changed": {
			func(w *world, _ []fact) {
				w.exec(`update ledger_entries set effect_key = gen_random_uuid() where event_id = 'evt_2'`)
			},
			[]string{verify.CheckEffectKeys}, " of stripe/evt_2", 0,
		},
		"effect key of another posting of the movement": {
			func(w *world, _ []fact) {
				w.exec(`update ledger_entries set effect_key = $1 where event_id = 'evt_2'`, effectKey("stripe", "paid", "evt_2", 1))
			},
			[]string{verify.CheckEffectKeys}, " of stripe/evt_2", 0,
		},
		"effect key changed of an event that is forgotten": {
			func(w *world, _ []fact) {
				w.exec(`update ledger_entries set effect_key = gen_random_uuid() where event_id = 'evt_1'`)
				w.exec(`delete from processed_events where event_id = 'evt_1'`)
			},
			[]string{verify.CheckEntries, verify.CheckEffectKeys}, "stripe/evt_1", 0,
		},
		"effect keys of a payment exchanged": {
			func(w *world, _ []fact) {
				w.pay(100)
				w.exec(`update ledger_entries set line = 1 - line where payment_id is not null`)
			},
			[]string{verify.CheckEffectKeys}, "2 entries whose effect key is not that of their movement", 0,
		},
		"label of a payment's entry changed": {
			func(w *world, _ []fact) {
				w.pay(100)
				w.exec(`update ledger_entries set rule = 'fee' where payment_id is not null and amount > 0`)
			},
			[]string{verify.CheckEffectKeys}, "1 entry whose effect key is not that of its movement", 0,
		},
		"event that an entry names changed": {
			func(w *world, _ []fact) {
				w.exec(`update ledger_entries set event_id = 'evt_4' where event_id = 'evt_1'`)
			},
			[]string{verify.CheckEntries}, "of stripe/evt_4, whose event key is another event's", 0,
		},
		"effect key of an amendment changed": {
			func(w *world, _ []fact) {
				w.pay(100)
				id := w.insertAmendment()
				w.exec(`update ledger_entries set payment_id = null, amendment_id = $1`+
					` where account_id = 'bob' and payment_id is not null`, id)
				w.exec(`delete from ledger_entries where payment_id is not null`)
				w.exec(`update amendments set kind = 'amend', meaning = gen_random_uuid()`)
				w.exec(`delete from payments`)
				w.exec(`delete from accounts where account_id = 'alice'`)
			},
			[]string{verify.CheckEffectKeys}, " of amendment ", 0,
		},
		"loss that nobody acknowledged": {
			func(w *world, _ []fact) {
				w.exec(`insert into incidents (severity, kind, topic, partition, from_offset, to_offset, raised_at) values ('loss', 'expired', 'payments', 3, 10, 20, now())`)
			},
			[]string{verify.CheckIncidents}, "incident 1: expired payments/3, offsets 10 to 20", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 3)
			c.damage(w, w.populate())
			rep := w.run()
			if got := broken(rep); !slices.Equal(got, c.checks) {
				t.Fatalf("got %v, want %v broken: %s", got, c.checks, show(rep))
			}
			first := check(rep, c.checks[0])
			if rep.OK || rep.UnaccountedEvents != c.missed || !strings.Contains(first.Found, c.want) || first.Next == "" ||
				strings.HasPrefix(c.want, "payment ") && first.Next != "hookledger accounts list" {
				t.Fatalf("want %d unaccounted, %q in found, and what is next: got %s", c.missed, c.want, show(rep))
			}
		})
	}
}

func TestRun_LossAcknowledgedIsOK(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.exec(`insert into incidents (severity, kind, raised_at, acknowledged_at, acknowledged_by) values ('loss', 'expired', now(), now(), 'me')`)
	w.exec(`insert into incidents (severity, kind, raised_at) values ('warning', 'progress_behind', now())`)
	rep := w.run()
	if !rep.OK || !strings.Contains(note(rep, "warnings"), "progress_behind") {
		t.Fatalf("got %s", show(rep))
	}
}

// The rows of the oldest generation are gone: what was applied then is known by its
// entries, what was ignored then cannot be told, and what is younger must be there.
func TestRun_ForgottenEvents(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	old := func(e schema.Event) schema.Event {
		e.ReceivedAt = w.now.Add(-48 * time.Hour)
		return e
	}
	f := w.produce(0, old(w.event("evt_1", `1`)), old(w.event("evt_2", `2`)), w.event("evt_3", `3`), w.event("evt_4", `4`))
	w.enter(f[0], "user_1", 100)
	w.exec(`update ledger_entries set applied_at = applied_at - interval '47 hours'`)
	w.apply(f[2], "user_1", 5)
	w.commit()
	w.exec(`update event_ring set forgotten_count = 1, oldest_generation = 1, open_generation = 1, opened_at[2] = now() - interval '24 hours'`)

	rep := w.run()
	if got := check(rep, verify.CheckRecords); rep.UnaccountedEvents != 1 || !strings.Contains(got.Found, "evt_4") {
		t.Fatalf("want evt_4 unaccounted: got %s", show(rep))
	}
	if got := broken(rep); len(got) != 1 {
		t.Fatalf("want one check broken: got %s", show(rep))
	}
	for name, want := range map[string]string{"known_by_entry": "evt_1", "forgotten": "evt_2", "entries_by_ledger_alone": "1 entry older"} {
		if got := note(rep, name); !strings.Contains(got, want) {
			t.Errorf("note %s: got %q, want %q in it", name, got, want)
		}
	}
	// An entry from within memory has no such excuse.
	w.exec(`update ledger_entries set applied_at = now() where event_id = 'evt_1'`)
	if got := check(w.run(), verify.CheckEntries); got.OK || !strings.Contains(got.Found, "evt_1") {
		t.Fatalf("got %+v", got)
	}
}

// A record that is no event of ours is in quarantine or it is unaccounted.
func TestRun_ForeignRecord(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	rec := &kgo.Record{Topic: w.topic, Partition: 0, Key: []byte("k"), Value: nil}
	must(t, w.cl.ProduceSync(t.Context(), rec).FirstErr())
	w.next[0] = 1
	w.commit()
	rep := w.run()
	if rep.UnaccountedEvents != 1 || !strings.Contains(check(rep, verify.CheckRecords).Found, "(no event) at "+w.topic+"/0@0") ||
		!strings.Contains(check(rep, verify.CheckRecords).Next, "--to-offset 0") {
		t.Fatalf("got %s", show(rep))
	}
	w.quarantine(fact{partition: 0, offset: 0}, "not_an_event")
	if rep := w.run(); !rep.OK {
		t.Fatalf("got %s", show(rep))
	}
}

// A record whose value never matched its hash is in quarantine: no hash of ours.
func TestRun_RecordThatContradictsItselfInQuarantine(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	e := w.event("evt_1", `1`)
	e.Body = []byte(`2`)
	f := w.produce(0, e)[0]
	w.quarantine(f, "body_hash_mismatch")
	w.commit()
	if rep := w.run(); !rep.OK {
		t.Fatalf("got %s", show(rep))
	}
}

// Text of events reaches the report escaped and on one line.
func TestRun_ForeignTextIsEscaped(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.exec(`insert into accounts values (0, 1, now(), E'a\x1b[31m\nb', 'EUR')`)
	if got := check(w.run(), verify.CheckBalances); strings.ContainsAny(got.Found+got.Next, "\x1b\n") || !strings.Contains(got.Next, `\x1b`) {
		t.Fatalf("got %q, %q", got.Found, got.Next)
	}
	for id, want := range map[string]string{"$(reboot)": "'$(reboot)'", "a'b`c`": `'a'\''b` + "`c`'", "--help": "-- --help", "shop:1": "shop:1"} {
		w.exec(`update accounts set account_id = $1`, id)
		if got := check(w.run(), verify.CheckBalances).Next; got != "hookledger accounts show "+want {
			t.Errorf("account %q: got %q, want it as %s", id, got, want)
		}
	}
}

func TestRun_LogThatBeginsLater(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	f := w.produce(0, w.event("evt_1", `1`), w.event("evt_2", `2`), w.event("evt_3", `3`))
	for _, one := range f {
		w.process(one, "ignored")
	}
	w.commit()
	w.deleteBelow(0, 2)
	if rep := w.run(); !rep.OK || rep.Records != 1 {
		t.Fatalf("got %s", show(rep))
	}
}

// A topic that was deleted took its unapplied records with it: no books are right then.
func TestRun_TopicThatIsGone(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	for _, one := range w.produce(0, w.event("evt_1", `1`), w.event("evt_2", `2`)) {
		w.process(one, "ignored")
	}
	w.commit()
	_, err := kadm.NewClient(w.cl).DeleteTopic(t.Context(), w.topic)
	must(t, err)
	rep := w.run()
	got := check(rep, verify.CheckPositions)
	if rep.OK || got.OK || !strings.Contains(got.Found, "the topic is gone") || !strings.Contains(got.Next, "hookledger topics apply") {
		t.Fatalf("got %s", show(rep))
	}
}

func TestRun_CountsWhatIsNotSettledYet(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	f := w.produce(0, w.event("evt_1", `1`), w.event("evt_2", `2`), w.event("evt_3", `3`))
	w.process(f[0], "ignored")
	w.exec(sqlAdvance, w.cluster, w.topic, w.topicID, 0, 1)
	w.commitOffset(0, 1)
	if rep := w.run(); !rep.OK || !strings.Contains(note(rep, "waiting"), "2 records") {
		t.Fatalf("got %s", show(rep))
	}
}

func TestRun_GroupThatIsNotTheWorkers(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate()
	opts := verify.Options{Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: "mistyped"}
	rep, err := verify.Run(t.Context(), opts)
	must(t, err)
	if !rep.OK || rep.Records != 8 || !strings.Contains(note(rep, "group"), "group mistyped committed nothing") || !strings.Contains(note(rep, "waiting"), "1 record is above") {
		t.Fatalf("got %s", show(rep))
	}
	// What workers applied is judged all the same.
	w.exec(`delete from processed_events where event_id = 'evt_4'`)
	rep, err = verify.Run(t.Context(), opts)
	must(t, err)
	if got := broken(rep); !slices.Equal(got, []string{verify.CheckRecords}) {
		t.Fatalf("got %v broken: %s", got, show(rep))
	}
	if found := note(w.run(), "group"); found != "" {
		t.Fatalf("the workers' own group: %s", found)
	}
}

func TestRun_TopicThatIsNotTheWorkers(t *testing.T) {
	t.Parallel()
	w := setup(t, 3)
	w.populate()
	empty := testkit.UniqueName("other")
	_, err := kadm.NewClient(w.cl).CreateTopic(t.Context(), 1, 1, nil, empty)
	must(t, err)
	for _, topic := range []string{empty, "mistyped"} {
		rep := w.with(func(o *verify.Options) { o.Topic = topic })
		c := check(rep, verify.CheckPositions)
		if got := broken(rep); !slices.Equal(got, []string{verify.CheckPositions}) || !strings.Contains(c.Found, "records of topic "+w.topic) ||
			!strings.Contains(c.Found, "correct kafka.topic") || c.Next != "hookledger config show" || note(rep, "topic") != "" {
			t.Errorf("%s: got %v broken: %s", topic, got, show(rep))
		}
	}
	// A topic that followed another one is known once workers have taken it.
	w.exec(sqlAdvance, w.cluster, empty, [16]byte{9}, 0, 0)
	if rep := w.with(func(o *verify.Options) { o.Topic = empty }); !rep.OK {
		t.Errorf("got %s", show(rep))
	}
}

func (w *world) deleteBelow(partition int32, offset int64) {
	w.tb.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(w.topic, partition, offset, -1)
	res, err := kadm.NewClient(w.cl).DeleteRecords(w.tb.Context(), offsets)
	must(w.tb, err)
	must(w.tb, res.Error())
}

func TestRun_PaymentsAndAmendmentsAreFoundations(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.pay(100)
	id := w.insertAmendment()
	w.exec(`update amendments set kind = 'amend', meaning = $1`, [16]byte(meaning("m", "bob", -7)))
	w.exec(`insert into ledger_entries (effect_key, amendment_id, line, amount, applied_at, currency, account_id, contra, rule, movement_id)
		values ($2, $1, 0, -7, now(), 'EUR', 'bob', 'external:stripe', 'paid', 'm')`, id, effectKey("_amendments", "amendment", id, 0))
	w.exec(`update accounts set balance = balance - 7, entry_count = entry_count + 1 where account_id = 'bob'`)
	if rep := w.run(); !rep.OK {
		t.Fatalf("got %s", show(rep))
	}
	w.exec(`delete from amendments`)
	if rep := w.run(); rep.OK || !strings.Contains(check(rep, verify.CheckEntries).Found, "amendment "+id) {
		t.Fatalf("got %s", show(rep))
	}
}
