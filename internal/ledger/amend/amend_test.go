package amend_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger"
	"hookledger/internal/ledger/amend"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

var position = ledger.Position{ClusterID: "c", Topic: "t", TopicID: [16]byte{3}}

// books is a ledger whose mapping can be changed between batches.
type books struct {
	t        *testing.T
	pool     *pgxpool.Pool
	operator *pgxpool.Pool
	mapping  func(*schema.Event) schema.Meaning
	next     int64
}

func setup(t *testing.T) *books {
	t.Helper()
	url := testkit.LedgerURL(t)
	b := &books{t: t, pool: open(t, url), mapping: plain}
	b.operator = open(t, testkit.RoleURL(t, url, "hookledger_operator"))
	if err := ledger.New(b.pool, nil, ledger.Options{}).WritePosition(t.Context(), ledger.PositionWrite{Position: position}); err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func pays(account string, amount int64, movement string) schema.Posting {
	return schema.Posting{Account: account, Contra: "external:acme", Amount: amount, Currency: "EUR", Rule: "paid", Movement: movement}
}

func meaning(postings ...schema.Posting) *schema.Meaning { return &schema.Meaning{Postings: postings} }

// plain pays alice 100; the event is the movement.
func plain(e *schema.Event) schema.Meaning { return *meaning(pays("alice", 100, e.ID)) }

// apply applies events by id, as the next records, and returns the outcomes.
func (b *books) apply(ids ...string) ledger.Committed {
	b.t.Helper()
	batch := ledger.Batch{Position: position, Start: b.next}
	for _, id := range ids {
		body := []byte(id)
		e := schema.Event{Source: "acme", ID: id, Type: "paid", ReceivedAt: time.Now(), Scheme: "s", KeyID: "k", ContentType: "text/plain", Body: body, BodySHA256: sha256.Sum256(body)}
		batch.Records = append(batch.Records, ledger.Record{Offset: b.next, Timestamp: e.ReceivedAt, Key: e.RecordKey(), Value: body, Headers: e.Headers()})
		b.next++
	}
	core := ledger.New(b.pool, func(e *schema.Event) (schema.Meaning, error) { return b.mapping(e), nil }, ledger.Options{})
	done, err := core.Apply(b.t.Context(), batch)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

func (b *books) rewind() {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), `update consumer_progress set next_offset = 0, from_offset = 0`); err != nil {
		b.t.Fatal(err)
	}
	b.next = 0
}

func request(id string, m *schema.Meaning) amend.Request {
	return amend.Request{Source: "acme", EventID: id, Meaning: m, Record: amend.Place{Topic: "t"}, By: "alice", Reason: "test"}
}

func (b *books) amend(r amend.Request) amend.Amendment {
	b.t.Helper()
	a, err := amend.Amend(b.t.Context(), b.operator, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// is checks balances, given as account and balance, and the laws.
func (b *books) is(want map[string]int64) {
	b.t.Helper()
	for account, balance := range want {
		if got := query1[int64](b, `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account); got != balance {
			b.t.Errorf("%s: got %d, want %d", account, got, balance)
		}
	}
	for law, sql := range map[string]string{
		"balance is the sum of the entries": `select count(*) from accounts a full join
			(select account_id, currency, sum(amount) s, count(*) n from ledger_entries group by 1, 2) e using (account_id, currency)
			where a.balance is distinct from e.s or a.entry_count is distinct from e.n`,
		"applied has an entry":     `select count(*) from processed_events p where (outcome = 'applied') <> exists (select from ledger_entries e where e.event_key = p.event_key)`,
		"an amendment has entries": `select count(*) from amendments a where not exists (select from ledger_entries e where e.amendment_id = a.amendment_id)`,
		"an entry has an amendment": `select count(*) from ledger_entries e where amendment_id is not null
			and not exists (select from amendments a where e.amendment_id = a.amendment_id)`,
	} {
		if n := query1[int64](b, sql); n != 0 {
			b.t.Errorf("law broken: %s: %d", law, n)
		}
	}
}

func query1[T any](b *books, sql string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestAmend_TakesBackAndSaysTodaysMeaning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("evt")
	right := meaning(pays("bob", 40, "evt"), pays("fees", -2, "evt"))
	r := request("evt", right)
	r.DryRun = true
	dry := b.amend(r)
	if fmt.Sprint(dry.Moves) != "[{alice EUR -100 0} {bob EUR 40 40} {fees EUR -2 -2}]" || dry.ID != "" || len(dry.Entries) != 3 {
		t.Errorf("dry run: got %+v", dry)
	}
	b.is(map[string]int64{"alice": 100, "bob": 0})
	if a := b.amend(request("evt", right)); a.ID == "" || fmt.Sprint(a.Moves) != fmt.Sprint(dry.Moves) {
		t.Errorf("got %+v", a)
	}
	b.is(map[string]int64{"alice": 0, "bob": 40, "fees": -2})
	// Again there is nothing to mend; a replay, under either mapping, moves nothing.
	if a := b.amend(request("evt", right)); a.ID != "" || len(a.Entries) != 0 {
		t.Errorf("again: got %+v", a)
	}
	for _, m := range []*schema.Meaning{meaning(pays("alice", 100, "evt")), right} {
		b.mapping = func(*schema.Event) schema.Meaning { return *m }
		b.rewind()
		if done := b.apply("evt"); done.Count(ledger.Duplicate) != 1 {
			t.Errorf("replay: got %d duplicates, want 1", done.Count(ledger.Duplicate))
		}
	}
	b.is(map[string]int64{"alice": 0, "bob": 40, "fees": -2})
	if got := query1[string](b, `select kind || ' ' || amended_by || ' ' || reason || ' ' || event_id from amendments`); got != "amend alice test evt" {
		t.Errorf("trace: got %q", got)
	}

	// A mapping that was wrong again, and then the money taken back altogether.
	b.amend(request("evt", meaning(pays("carol", 41, "evt"))))
	b.is(map[string]int64{"alice": 0, "bob": 0, "fees": 0, "carol": 41})
	b.amend(request("evt", nil))
	b.is(map[string]int64{"alice": 0, "bob": 0, "fees": 0, "carol": 0})
	if a := b.amend(request("evt", nil)); a.ID != "" {
		t.Errorf("nothing stands: got %+v", a)
	}
	b.amend(request("evt", right))
	b.is(map[string]int64{"alice": 0, "bob": 40, "fees": -2, "carol": 0})
}

func TestAmend_RefusesWhatAReplayWouldPayAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mapping = func(e *schema.Event) schema.Meaning {
		if e.ID == "note" {
			return schema.Meaning{}
		}
		return *meaning(pays("alice", 100, "m"))
	}
	b.apply("note", "one", "two")
	for id, want := range map[string]error{"note": amend.ErrMoneyless, "two": amend.ErrSameEffect, "never": amend.ErrUnknown} {
		if _, err := amend.Amend(t.Context(), b.operator, request(id, meaning(pays("bob", 1, id)))); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", id, err, want)
		}
	}
	b.is(map[string]int64{"alice": 100, "bob": 0})
}

// The mapping's movement was the event; it is the payment, of which two events tell.
func TestAmend_NobodyIsPaidTwiceForTheNewMovement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("first")
	right := meaning(pays("alice", 100, "payment"))
	b.mapping = func(*schema.Event) schema.Meaning { return *right }

	// The other event comes after the amendment.
	b.amend(request("first", right))
	if done := b.apply("second"); done.Count(ledger.SameEffect) != 1 {
		t.Errorf("got %d of the same effect, want 1", done.Count(ledger.SameEffect))
	}
	b.is(map[string]int64{"alice": 100})

	// Or before it: then its entry is the one that stays.
	b = setup(t)
	b.apply("first")
	b.mapping = func(*schema.Event) schema.Meaning { return *right }
	b.apply("second")
	b.is(map[string]int64{"alice": 200})
	if a := b.amend(request("first", right)); a.SameEffect != 1 || len(a.Entries) != 1 {
		t.Errorf("got %+v", a)
	}
	b.is(map[string]int64{"alice": 100})

	// With other money nobody knows which is right.
	b.apply("third")
	_, err := amend.Amend(t.Context(), b.operator, request("second", meaning(pays("alice", 7, "payment"))))
	if err != nil {
		t.Errorf("its own movement: got %v", err)
	}
	if _, err := amend.Amend(t.Context(), b.operator, request("first", meaning(pays("alice", 8, "payment")))); !errors.Is(err, amend.ErrMismatch) {
		t.Errorf("another's movement: got %v, want ErrMismatch", err)
	}
	b.is(map[string]int64{"alice": 7})
}

// Forgotten rows change nothing: the entries remember.
func TestAmend_OfAForgottenEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("evt")
	b.amend(request("evt", meaning(pays("bob", 40, "other"))))
	if _, err := b.pool.Exec(t.Context(), `delete from processed_events; update event_ring set forgotten_count = 1`); err != nil {
		t.Fatal(err)
	}
	b.rewind()
	b.mapping = func(*schema.Event) schema.Meaning { return *meaning(pays("bob", 40, "other")) }
	if done := b.apply("evt"); done.Count(ledger.Duplicate) != 1 {
		t.Errorf("replay: got %d duplicates, want 1", done.Count(ledger.Duplicate))
	}
	b.amend(request("evt", nil))
	b.is(map[string]int64{"alice": 0, "bob": 0})
}

func TestAmend_ByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("evt", "other")
	right := meaning(pays("bob", 40, "evt"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := request("evt", right)
			if i%2 == 1 {
				r = request("other", nil)
			}
			if _, err := amend.Amend(context.Background(), b.operator, r); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 5 {
		b.apply(fmt.Sprintf("busy_%d", i)) // workers go on
	}
	all.Wait()
	b.is(map[string]int64{"alice": 500, "bob": 40})
	if n := query1[int64](b, `select count(*) from amendments`); n != 2 {
		t.Errorf("%d amendments, want 2", n)
	}
}
