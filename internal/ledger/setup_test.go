package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

var testPosition = Position{ClusterID: "cluster-1", Topic: "payments.events", TopicID: [16]byte{7}}

var testNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// body is what the events of these tests say; the mapper below reads it.
type body struct {
	Postings   []schema.Posting `json:",omitempty"`
	Status     *schema.Status   `json:",omitempty"`
	LatestWins bool             `json:",omitempty"`
	// Bad makes the mapping fail with this reason.
	Bad string `json:",omitempty"`
	// Envelope changes the bytes and not the meaning.
	Envelope string `json:",omitempty"`
}

func mapBody(e *schema.Event) (schema.Meaning, error) {
	if e.Source == "elsewhere" {
		return schema.Meaning{}, fmt.Errorf("map: %w", schema.ErrUnknownSource)
	}
	var b body
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable, Detail: "not JSON"}
	}
	if b.Bad != "" {
		return schema.Meaning{}, &schema.MappingError{Reason: b.Bad, Detail: "as the test wants"}
	}
	return schema.Meaning{Postings: b.Postings, Status: b.Status, LatestWins: b.LatestWins}, nil
}

// pays is a posting whose movement is its own.
func pays(account string, amount int64, movement string) schema.Posting {
	return schema.Posting{Account: account, Contra: "external:acme", Amount: amount, Currency: "EUR", Rule: "payment", Movement: movement}
}

// event is an event with ID id of source acme that says b.
func event(tb testing.TB, id string, b body) schema.Event {
	tb.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		tb.Fatal(err)
	}
	return schema.Event{
		Source: "acme", ID: id, Type: "payment.succeeded", OccurredAt: testNow.Add(-time.Minute),
		ReceivedAt: testNow, Scheme: "hmac", KeyID: "k1", ContentType: "application/json",
		Body: text, BodySHA256: sha256.Sum256(text),
	}
}

func paid(tb testing.TB, id, account string, amount int64) schema.Event {
	tb.Helper()
	return event(tb, id, body{Postings: []schema.Posting{pays(account, amount, id)}})
}

func record(offset int64, e schema.Event) Record {
	return Record{Offset: offset, Timestamp: e.ReceivedAt, Key: e.RecordKey(), Value: e.Body, Headers: e.Headers()}
}

// patient waits for locks that a test holds on a busy machine.
var patient = Options{StatementTimeout: time.Minute, LockTimeout: time.Minute, IdleTimeout: time.Minute}

// bundle is a ledger on a database of its own.
type bundle struct {
	tb     testing.TB
	pool   *pgxpool.Pool
	ledger *Ledger
	// next is the position per partition.
	next map[int32]int64
}

func setup(tb testing.TB) *bundle {
	tb.Helper()
	return setupOn(tb, testkit.LedgerDB(tb))
}

func setupOn(tb testing.TB, pool *pgxpool.Pool) *bundle {
	tb.Helper()
	return &bundle{tb: tb, pool: pool, ledger: New(pool, mapBody, patient), next: map[int32]int64{}}
}

// start gives a partition its progress row.
func (b *bundle) start(partition int32) {
	b.tb.Helper()
	if _, ok := b.next[partition]; ok {
		return
	}
	w := PositionWrite{Position: testPosition}
	w.Partition = partition
	if err := b.ledger.WritePosition(b.tb.Context(), w); err != nil {
		b.tb.Fatal(err)
	}
	b.next[partition] = 0
}

// batch makes a batch of partition 0 at its position.
func (b *bundle) batch(partition int32, events ...schema.Event) Batch {
	b.tb.Helper()
	b.start(partition)
	batch := Batch{Position: testPosition, Start: b.next[partition]}
	batch.Partition = partition
	for i, e := range events {
		r := record(batch.Start+int64(i), e)
		r.Partition = partition
		batch.Records = append(batch.Records, r)
	}
	return batch
}

// apply applies events as the next records of partition 0 and expects no error.
func (b *bundle) apply(events ...schema.Event) Committed {
	b.tb.Helper()
	return b.applyBatch(b.batch(0, events...))
}

func (b *bundle) applyBatch(batch Batch) Committed {
	b.tb.Helper()
	c, err := b.ledger.Apply(b.tb.Context(), batch)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.next[batch.Partition] = c.Next()
	return c
}

// rewind sets the position of partition 0 back to 0, as an operator's reset does.
func (b *bundle) rewind() {
	b.tb.Helper()
	if _, err := b.pool.Exec(b.tb.Context(), `update consumer_progress set next_offset = 0, from_offset = 0`); err != nil {
		b.tb.Fatal(err)
	}
	for p := range b.next {
		b.next[p] = 0
	}
}

// outcomes checks the counts of c, given as outcome, count, outcome, count, …
func (b *bundle) outcomes(c Committed, want map[Outcome]int64) {
	b.tb.Helper()
	for _, o := range Outcomes() {
		if c.Count(o) != want[o] {
			b.tb.Errorf("%s: got %d records, want %d", o, c.Count(o), want[o])
		}
	}
}

// query returns the first column of the first row as T.
func query1[T any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (b *bundle) balance(account string) int64 {
	b.tb.Helper()
	return query1[int64](b.tb, b.pool, `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account)
}

func (b *bundle) outcome(id string) string {
	b.tb.Helper()
	return query1[string](b.tb, b.pool, `select coalesce(string_agg(outcome, ','), 'none') from processed_events where event_id = $1`, id)
}

func (b *bundle) count(table string) int64 {
	b.tb.Helper()
	return query1[int64](b.tb, b.pool, `select count(*) from `+table)
}

// lawful checks the laws that hold after every transaction.
func (b *bundle) lawful() {
	b.tb.Helper()
	for name, sql := range map[string]string{
		"balance is the sum of the entries": `
			select count(*) from accounts a full join
			  (select account_id, currency, sum(amount) s, count(*) n from ledger_entries group by 1, 2) e using (account_id, currency)
			 where a.balance is distinct from e.s or a.entry_count is distinct from e.n`,
		"applied has an entry": `
			select count(*) from processed_events p
			 where (outcome = 'applied') <> exists (select from ledger_entries e where e.event_key = p.event_key)`,
		"an effect happens once": `
			select count(*) from (select 1 from ledger_entries group by effect_key having count(*) > 1) x`,
	} {
		if n := query1[int64](b.tb, b.pool, sql); n != 0 {
			b.tb.Errorf("law broken: %s: %d violations", name, n)
		}
	}
}
