package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// clock hands out moments 10 ms apart.
type clock struct{ n int }

func (c *clock) next() time.Time {
	c.n++
	return start.Add(time.Duration(c.n) * 10 * time.Millisecond)
}

// builder makes worlds the way a run would.
type builder struct {
	World
	clock clock
	next  map[int32]int64
}

func (b *builder) deliver(source, id, account string, amount int64, currency, result string) *Delivery {
	body := sha256.Sum256([]byte(bodyOf(source, id)))
	http := map[string]int{OK: 200, Reject: 400, Unknown: 503}[result]
	b.History = append(b.History, Delivery{
		I: len(b.History), T0: b.clock.next(), Source: source, EventID: id, Account: account, Amount: amount, Currency: currency,
		SHA256: hex.EncodeToString(body[:]), Result: result, HTTP: http,
	})
	return &b.History[len(b.History)-1]
}

func bodyOf(source, id string) string { return fmt.Sprintf(`{"source":%q,"id":%q}`, source, id) }

// record appends to the topic.
func (b *builder) record(source, id string, partition int32) *Record {
	body := bodyOf(source, id)
	sum := sha256.Sum256([]byte(body))
	b.Records = append(b.Records, Record{
		Partition: partition, Offset: b.next[partition], Time: b.clock.next(), Key: []byte(id), Value: []byte(body),
		Headers: []Header{
			{"ce_id", id}, {"ce_source", "/webhooks/" + source}, {"hl_source", source},
			{"hl_body_sha256", hex.EncodeToString(sum[:])}, {"stripe-signature", "t=1,v1=00"},
		},
	})
	b.next[partition]++
	return &b.Records[len(b.Records)-1]
}

func (b *builder) process(r *Record, outcome string) *Event {
	sum := sha256.Sum256(r.Value)
	b.Tables.Events = append(b.Tables.Events, Event{
		Source: r.Header("hl_source"), EventID: string(r.Key), Outcome: outcome,
		Partition: r.Partition, Offset: r.Offset, ProcessedAt: b.clock.next(), BodySHA256: sum[:],
	})
	return &b.Tables.Events[len(b.Tables.Events)-1]
}

func (b *builder) enter(source, id, account string, amount int64, currency string) {
	b.Tables.Entries = append(b.Tables.Entries, Entry{
		EntryID: int64(len(b.Tables.Entries) + 1), MovementID: id, Source: source, EventID: id,
		AccountID: account, Currency: currency, Amount: amount, AppliedAt: b.clock.next(),
	})
}

// event takes an event all the way: delivered, stored, applied.
func (b *builder) event(source, id, account string, amount int64, currency string, partition int32) {
	d := b.deliver(source, id, account, amount, currency, OK)
	r := b.record(source, id, partition)
	d.T1 = b.clock.next()
	outcome := "ignored"
	if amount != 0 {
		outcome = "applied"
		b.enter(source, id, account, amount, currency)
	}
	b.process(r, outcome)
}

// pay asks for a payment three times: unheard, answered, and answered the same again.
func (b *builder) pay(key, from, to string, amount int64, code int) {
	id := "id-of-" + key
	t := Try{Key: key, From: from, To: to, Amount: amount, Currency: "EUR", Reference: "ref-" + key, T0: b.clock.next()}
	b.Tries = append(b.Tries, t)
	t.HTTP, t.Body = code, fmt.Sprintf(`{"payment_id":%q,"status":"succeeded"}`, id)
	if code != 201 {
		t.Body = `{"title":"not enough"}`
	}
	b.Tries = append(b.Tries, t, t)
	if code != 201 {
		return
	}
	b.Tables.Payments = append(b.Tables.Payments, Payment{id, from, to, amount, "EUR", t.Reference})
	b.enter("", "", from, -amount, "EUR")
	b.enter("", "", to, amount, "EUR")
	for i := range 2 {
		b.Tables.Entries[len(b.Tables.Entries)-1-i].MovementID = id
	}
}

// goodWorld has one of everything that is allowed to happen.
func goodWorld() World {
	b := &builder{next: map[int32]int64{0: 40, 1: 0}} // partition 0 has lost its oldest records to retention
	b.event("acme", "a1", "alice", 500, "EUR", 0)
	b.event("acme", "a2", "alice", -200, "EUR", 1)
	b.event("stripe", "a1", "bob", 700, "USD", 0) // the same ID from another source
	b.event("stripe", "s2", "bob", 0, "USD", 1)   // moves nothing
	b.event("stripe", "s3", "bob", 40, "EUR", 0)

	// Delivered again, and stored again.
	b.deliver("acme", "a1", "alice", 500, "EUR", OK).T1 = b.clock.next().Add(50 * time.Millisecond)
	b.record("acme", "a1", 0)

	// Nobody heard the answer: stored and applied in one case, not stored in the other.
	b.deliver("acme", "taken", "alice", 30, "EUR", Unknown).T1 = b.clock.next()
	r := b.record("acme", "taken", 1)
	b.enter("acme", "taken", "alice", 30, "EUR")
	b.process(r, "applied")
	b.deliver("acme", "quiet", "alice", 0, "EUR", Unknown).T1 = b.clock.next()
	b.process(b.record("acme", "quiet", 1), "ignored")
	b.deliver("acme", "gone", "alice", 1000, "EUR", Unknown).T1 = b.clock.next()

	// Refused; and refused first, then accepted.
	b.deliver("acme", "refused", "alice", 9000, "EUR", Reject).T1 = b.clock.next()
	b.deliver("acme", "later", "alice", 1, "EUR", Reject).T1 = b.clock.next()
	b.event("acme", "later", "alice", 1, "EUR", 1)

	// One movement told by two events.
	b.event("stripe", "m1", "bob", 11, "USD", 0)
	b.event("stripe", "m2", "bob", 11, "USD", 0)
	b.Tables.Entries = b.Tables.Entries[:len(b.Tables.Entries)-1]
	b.Tables.Events[len(b.Tables.Events)-1].Outcome = "same_effect"
	for i := range b.History {
		if id := b.History[i].EventID; id == "m1" || id == "m2" {
			b.History[i].Movement = "pi_1"
		}
	}

	// Made to be impossible.
	d := b.deliver("acme", "poison", "alice", 1, "EUR", OK)
	d.Expect = ExpectQuarantine
	r = b.record("acme", "poison", 1)
	d.T1 = b.clock.next()
	b.Tables.Quarantined = append(b.Tables.Quarantined, Held{Source: "acme", EventID: "poison", Partition: 1, Offset: r.Offset, Reason: "bad_amount"})

	// Signed with another secret: refused at each attempt, and once not answered.
	d = b.deliver("stripe", "forged", "bob", 1, "USD", Reject)
	d.Expect, d.T1 = ExpectRefused, b.clock.next()
	d = b.deliver("stripe", "forged", "bob", 1, "USD", Unknown)
	d.Expect, d.T1 = ExpectRefused, b.clock.next()

	// The later state came first.
	for i, s := range []State{{"order-1", "paid", 30, 1000}, {"order-1", "pending", 10, 999}} {
		id := fmt.Sprintf("state%d", i)
		b.event("acme", id, "", 0, "", 1)
		b.History[len(b.History)-1].State = s
	}
	b.Tables.States = []ObjectState{{"acme", "order-1", "paid", 30, time.Unix(1000, 0)}}

	b.pay("k1", "alice", "carol", 20, 201)
	b.pay("k2", "alice", "carol", 9_000_000, 402)

	b.Tables.Accounts = []Account{{"alice", "EUR", 311, 5}, {"bob", "EUR", 40, 1}, {"bob", "USD", 711, 2}, {"carol", "EUR", 20, 1}}
	b.Group = Group{Committed: map[int32]int64{0: b.next[0], 1: b.next[1]}, End: map[int32]int64{0: b.next[0], 1: b.next[1]}}
	b.Tables.Progress = []Progress{{"c", "t", 0, 40, b.next[0]}, {"c", "t", 1, 2, b.next[1]}}
	b.Samples = []Sample{
		{At: start, Committed: map[int32]int64{0: 40}, Progress: map[int32]Progress{0: {Next: 40, From: 40}}},
		{At: start.Add(time.Hour), Committed: map[int32]int64{0: 42, 1: 3}, Progress: map[int32]Progress{0: {Next: 43, From: 40}, 1: {Next: 3, From: 2}}},
		{At: start.Add(2 * time.Hour), Committed: map[int32]int64{0: 41, 1: 3}, Progress: map[int32]Progress{0: {Next: 43, From: 40}}}, // a crash between two commits
		{At: start.Add(3 * time.Hour), Committed: b.Group.Committed},
	}
	before := b.Tables
	b.Before = &before
	b.Texts = map[string]string{"ingest 1": "started\nready\n", "metrics": "hookledger_up 1\n"}
	b.Secrets = []string{"whsec_canary"}
	b.RequestLimit = 6 * time.Second
	return b.World
}
