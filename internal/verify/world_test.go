package verify_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/internal/verify"
	"hookledger/migrations"
	"hookledger/schema"
)

const group = "hookledger"

// world is a topic and its tables, written by hand: verify is tested against what
// the tables must say, not against what today's worker writes.
type world struct {
	tb      testing.TB
	topic   string
	brokers string
	opts    []kgo.Opt
	cl      *kgo.Client
	cluster string
	topicID [16]byte
	url     string
	pool    *pgxpool.Pool
	now     time.Time
	next    map[int32]int64
}

// setup makes an empty world with a topic of some partitions.
func setup(tb testing.TB, partitions int32) *world {
	tb.Helper()
	k := testkit.Kfake(tb)
	w := &world{
		tb: tb, topic: testkit.UniqueName("events"), url: testkit.PostgresURL(tb),
		opts: []kgo.Opt{kgo.SeedBrokers(k.ListenAddrs()...)}, brokers: strings.Join(k.ListenAddrs(), ","),
		now: time.Now().UTC().Truncate(time.Microsecond), next: map[int32]int64{},
	}
	must(tb, migrations.Up(tb.Context(), testkit.DirectURL(tb, w.url)))
	w.pool = pool(tb, w.url)
	cl, err := kgo.NewClient(append(slices.Clone(w.opts), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(tb, err)
	tb.Cleanup(cl.Close)
	w.cl = cl
	adm := kadm.NewClient(cl)
	if partitions > 0 {
		_, err = adm.CreateTopic(tb.Context(), partitions, 1, nil, w.topic)
		must(tb, err)
	}
	meta, err := adm.Metadata(tb.Context(), w.topic)
	must(tb, err)
	w.cluster, w.topicID = meta.Cluster, meta.Topics[w.topic].ID
	return w
}

func pool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	return testkit.PoolOn(tb, url)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.tb.Helper()
	if _, err := w.pool.Exec(w.tb.Context(), sql, args...); err != nil {
		w.tb.Fatalf("%s: %v", sql, err)
	}
}

// fact is an event in its record.
type fact struct {
	schema.Event
	partition int32
	offset    int64
}

func (w *world) event(id, body string) schema.Event {
	return schema.Event{
		Source: "stripe", ID: id, Type: "payment_intent.succeeded", ReceivedAt: w.now, Scheme: "stripe", KeyID: "k1",
		DeliveryID: "d1", ContentType: "application/json", Body: []byte(body), BodySHA256: sha256.Sum256([]byte(body)),
	}
}

// produce writes records and returns where they came to lie.
func (w *world) produce(partition int32, events ...schema.Event) []fact {
	w.tb.Helper()
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		records[i] = &kgo.Record{Topic: w.topic, Partition: partition, Key: e.RecordKey(), Value: e.Body, Timestamp: e.ReceivedAt}
		for _, h := range e.Headers() {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader(h))
		}
	}
	must(w.tb, w.cl.ProduceSync(w.tb.Context(), records...).FirstErr())
	facts := make([]fact, len(events))
	for i, e := range events {
		facts[i] = fact{e, partition, records[i].Offset}
		w.next[partition] = records[i].Offset + 1
	}
	return facts
}

const (
	sqlProcess = `
		insert into processed_events (event_key, generation, source, event_id, type, outcome, meaning, topic, partition, "offset",
			received_at, processed_at, body_sha256)
		values ($1, (select open_generation from event_ring), $2, $3, $4, $5, $1, $6, $7, $8, $9, $9, $10)`
	sqlEnter = `
		insert into ledger_entries (amount, applied_at, effect_key, event_key, line, currency, account_id, source, event_id, contra, rule, movement_id)
		values ($1, $2, $7, $3, 0, 'EUR', $4, $5, $6, 'external:stripe', 'paid', $6)`
	sqlAccount = `
		insert into accounts (account_id, currency, balance, entry_count, updated_at) values ($1, 'EUR', $2, 1, now())
		on conflict (account_id, currency) do update set balance = accounts.balance + excluded.balance, entry_count = accounts.entry_count + 1`
	sqlAdvance = `
		insert into consumer_progress (cluster_id, topic, topic_id, partition, from_offset, next_offset, leader_epoch, updated_at)
		values ($1, $2, $3, $4, 0, $5, 0, now())
		on conflict (cluster_id, topic_id, partition) do update set next_offset = excluded.next_offset`
)

func (w *world) processArgs(f fact, outcome string) []any {
	return []any{[16]byte(f.Key()), f.Source, f.ID, f.Type, outcome, w.topic, f.partition, f.offset, f.ReceivedAt, f.BodySHA256[:]}
}

func (w *world) enterArgs(f fact, account string, amount int64) []any {
	return []any{amount, w.now, [16]byte(f.Key()), account, f.Source, f.ID, effectKey(f.Source, "paid", f.ID, 0)}
}

// effectKey is the key of the nth posting of a movement.
func effectKey(source, rule, movement string, nth int) [16]byte {
	m := schema.Meaning{Postings: slices.Repeat([]schema.Posting{{Rule: rule, Movement: movement}}, nth+1)}
	return m.EffectKeys(source)[nth]
}

// process writes an event's row.
func (w *world) process(f fact, outcome string) {
	w.tb.Helper()
	w.exec(sqlProcess, w.processArgs(f, outcome)...)
}

// enter writes an entry and its account.
func (w *world) enter(f fact, account string, amount int64) {
	w.tb.Helper()
	w.exec(sqlEnter, w.enterArgs(f, account, amount)...)
	w.exec(sqlAccount, account, amount)
}

// apply is a fact with row and entry.
func (w *world) apply(f fact, account string, amount int64) {
	w.tb.Helper()
	w.process(f, "applied")
	w.enter(f, account, amount)
	w.exec(`update processed_events set meaning = $2 where event_key = $1`, [16]byte(f.Key()), [16]byte(meaning(f.ID, account, amount)))
}

// meaning is the hash of an event with one posting, as enter writes it.
func meaning(id, account string, amount int64) schema.MeaningHash {
	m := schema.Meaning{Postings: []schema.Posting{{Account: account, Contra: "external:stripe", Amount: amount, Currency: "EUR", Rule: "paid", Movement: id}}}
	return m.Hash()
}

// commit writes progress and committed offsets of all that was produced.
func (w *world) commit() {
	w.tb.Helper()
	for p, next := range w.next {
		w.exec(sqlAdvance, w.cluster, w.topic, w.topicID, p, next)
		w.commitOffset(p, next)
	}
}

func (w *world) commitOffset(partition int32, next int64) {
	w.tb.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(w.topic, partition, next, -1)
	must(w.tb, kadm.NewClient(w.cl).CommitAllOffsets(w.tb.Context(), group, offsets))
}

// quarantine sets a record aside.
func (w *world) quarantine(f fact, reason string) {
	w.tb.Helper()
	w.exec(`insert into quarantined_events ("offset", record_time, quarantined_at, topic_id, partition, source, event_id, topic, reason, detail, headers, body)
		values ($1, now(), now(), $2, $3, $4, $5, $6, $7, '', '[]', $8)`,
		f.offset, w.topicID, f.partition, f.Source, f.ID, w.topic, reason, f.Body)
}

// conflict keeps other bytes of a known event.
func (w *world) conflict(f fact) {
	w.tb.Helper()
	w.exec(`insert into event_conflicts ("offset", first_offset, seen_at, received_at, event_key, meaning, first_meaning, topic_id, partition, first_partition,
		body_sha256, first_body_sha256, source, event_id, type, topic, headers, body)
		values ($1, 0, now(), now(), $2, $2, $2, $3, $4, 0, $5, $5, $6, $7, $8, $9, '[]', $10)`,
		f.offset, [16]byte(f.Key()), w.topicID, f.partition, f.BodySHA256[:], f.Source, f.ID, f.Type, w.topic, f.Body)
}

// populate makes a world in which everything that may happen has happened and is
// well: applied, ignored, duplicate, conflict, same meaning in other bytes,
// quarantine, a rewind, and records above the committed offset.
func (w *world) populate() []fact {
	w.tb.Helper()
	f := w.produce(0, w.event("evt_1", `{"n":1}`), w.event("evt_2", `{"n":2}`), w.event("evt_1", `{"n":1}`), w.event("evt_3", `{"n":3}`))
	w.apply(f[0], "user_1", 100)
	w.apply(f[1], "user_2", -40)
	w.apply(f[3], "user_1", 7)
	g := w.produce(1, w.event("evt_4", `{"n":4}`), w.event("evt_2", `{"n":"other"}`), w.event("evt_3", `{"n":3,"attempt":2}`), w.event("evt_5", `{`))
	w.process(g[0], "ignored")
	w.conflict(g[1])
	w.quarantine(g[3], "body_unreadable")
	w.commit()
	w.produce(1, w.event("evt_6", `{"n":6}`))
	return append(f, g...)
}

// populateOne makes a world of one ignored event.
func (w *world) populateOne() {
	w.tb.Helper()
	w.process(w.produce(0, w.event("evt_1", `1`))[0], "ignored")
	w.commit()
}

func (w *world) run() verify.Report {
	w.tb.Helper()
	return w.runAs(w.pool)
}

func (w *world) runAs(p *pgxpool.Pool) verify.Report {
	w.tb.Helper()
	rep, err := verify.Run(w.tb.Context(), verify.Options{Pool: p, KafkaOpts: w.opts, Topic: w.topic, Group: group})
	must(w.tb, err)
	return rep
}

// broken returns the names of the checks that are not OK.
func broken(rep verify.Report) []string {
	out := []string{}
	for _, c := range rep.Checks {
		if !c.OK {
			out = append(out, c.Name)
		}
	}
	return out
}

func check(rep verify.Report, name string) verify.Check {
	for _, c := range rep.Checks {
		if c.Name == name {
			return c
		}
	}
	return verify.Check{}
}

func note(rep verify.Report, name string) string {
	for _, n := range rep.Notes {
		if n.Name == name {
			return n.Found
		}
	}
	return ""
}

func show(rep verify.Report) string {
	b, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// asReader returns a pool whose sessions are a role that may only SELECT.
func (w *world) asReader() *pgxpool.Pool {
	w.tb.Helper()
	return testkit.PoolOn(w.tb, testkit.RoleURL(w.tb, w.url, "hookledger_reader"))
}

// insertPayment adds the row of a payment from alice to bob, without its entries.
func (w *world) insertPayment(amount int64) string {
	w.tb.Helper()
	var id string
	must(w.tb, w.pool.QueryRow(w.tb.Context(), `
		insert into payments (payment_id, meaning, amount, created_at, client, from_account, to_account, currency, reference, status, idempotency_key)
		values (gen_random_uuid(), gen_random_uuid(), $1, now(), 'shop', 'alice', 'bob', 'EUR', '', 'succeeded', gen_random_uuid()::text)
		returning payment_id::text`, amount).Scan(&id))
	return id
}

// pay adds a payment from alice to bob with all that belongs to it.
func (w *world) pay(amount int64) {
	w.tb.Helper()
	id := w.insertPayment(amount)
	w.exec(`insert into ledger_entries (effect_key, payment_id, line, amount, applied_at, currency, account_id, contra, rule, movement_id)
		values ($4, $1, 0, -$2::bigint, now(), 'EUR', 'alice', 'bob', 'payment', $3),
		       ($5, $1, 1, $2::bigint, now(), 'EUR', 'bob', 'alice', 'payment', $3)`, id, amount, id,
		effectKey("_payments", "payment", id, 0), effectKey("_payments", "payment", id, 1))
	w.exec(`insert into accounts (account_id, currency, balance, entry_count, updated_at)
		values ('alice', 'EUR', -$1::bigint, 1, now()), ('bob', 'EUR', $1::bigint, 1, now())`, amount)
}

// insertAmendment adds the row of an amendment, without its entries.
func (w *world) insertAmendment() string {
	w.tb.Helper()
	var id string
	must(w.tb, w.pool.QueryRow(w.tb.Context(), `
		insert into amendments (amendment_id, amended_at, event_key, kind, source, event_id, amended_by, reason)
		values (gen_random_uuid(), now(), gen_random_uuid(), 'reverse', 'stripe', 'evt_gone', 'me', 'test')
		returning amendment_id::text`).Scan(&id))
	return id
}
