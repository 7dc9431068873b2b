package payments

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

// rounds keys are sent by crowd requests each, at once.
const rounds, crowd = 100, 50

func TestPay_FiftyAtOnceAHundredTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1_000_000)
	b.fiftyAtOnce([]string{b.base})
	if most := b.server.door.db.pool.Stat().TotalConns(); most > defaultConnections {
		t.Errorf("got %d connections, want at most %d", most, defaultConnections)
	}
}

func TestPay_FiftyAtOnceByTwoProcesses(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 1_000_000)
	o := childOptions{URL: url, MaxConns: 8}
	b.fiftyAtOnce([]string{startChild(t, o).base, startChild(t, o).base})
}

// fiftyAtOnce sends each key to the servers in turn: one payment each, and nothing but
// that and 409.
func (b *bundle) fiftyAtOnce(bases []string) {
	b.tb.Helper()
	for round := range rounds {
		key, body := fmt.Sprint("k", round), payment("shop:1", "x", 1)
		replies := make([]reply, crowd)
		each(len(replies), func(i int) {
			var err error
			if replies[i], err = postTo(bases[i%len(bases)], shopToken, key, body); err != nil {
				b.tb.Error(err)
			}
		})
		if n, err := oneOutcome(replies); err != nil || n < 1 {
			b.tb.Fatalf("round %d: %d answered 201: %v", round, n, err)
		}
	}
	if got := b.payments(); got != rounds || b.balance("x") != rounds {
		b.tb.Errorf("got %d payments and %d for x, want %d of each", got, b.balance("x"), rounds)
	}
	b.lawful()
}

func TestPay_ProcessKilledAtRandom(t *testing.T) {
	t.Parallel()
	killAtRandom(t, 1)
}

func TestPay_TwoProcessesKilledAtRandom(t *testing.T) {
	t.Parallel()
	killAtRandom(t, 2)
}

// killAtRandom has processes take the requests, each of which is killed at random and
// started again. Every key is sent until its answer is known.
func killAtRandom(t *testing.T, processes int) {
	t.Helper()
	url := testkit.LedgerURL(t)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 4)}
	b.fund("shop:1", 1_000_000)
	var children []*child
	for range processes {
		children = append(children, startChild(t, childOptions{URL: url, ClaimTTL: shortTTL, MaxConns: 8}))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	stop := make(chan struct{})
	var killer sync.WaitGroup
	var kills atomic.Int64
	killer.Go(func() { // ends with stop
		r := rand.New(rand.NewPCG(seed, 1))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+r.IntN(600)) * time.Millisecond):
			}
			c := children[r.IntN(len(children))]
			c.Kill()
			c.Restart()
			kills.Add(1)
		}
	})
	for round := range rounds {
		key, body := fmt.Sprint("k", round), payment("shop:1", "x", 1)
		replies := make([]reply, crowd)
		each(crowd, func(i int) {
			r, err := postTo(children[i%processes].base, shopToken, key, body)
			if err != nil || r.code == http.StatusServiceUnavailable {
				r = reply{code: http.StatusConflict, header: http.Header{"Retry-After": {"1"}}} // as good as
			}
			replies[i] = r
		})
		if _, err := oneOutcome(replies); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%10 == 0 { // let some claims become stale, not all
			late := untilPaid(t, children[round/10%processes].base, key, body)
			if _, err := oneOutcome(slices.Concat(replies, []reply{late})); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	close(stop)
	killer.Wait()
	for round := range rounds {
		untilPaid(t, children[0].base, fmt.Sprint("k", round), payment("shop:1", "x", 1))
	}
	if got := b.payments(); got != rounds || b.balance("x") != rounds {
		t.Errorf("got %d payments and %d for x, want %d of each (%d kills)", got, b.balance("x"), rounds, kills.Load())
	}
	t.Logf("%d kills", kills.Load())
	b.lawful()
}

func untilPaid(tb testing.TB, base, key, body string) reply {
	tb.Helper()
	var r reply
	testkit.Eventually(tb, time.Minute, func() error {
		var err error
		if r, err = postTo(base, shopToken, key, body); err != nil {
			return err
		}
		if r.code != http.StatusCreated {
			return fmt.Errorf("answered %s", r)
		}
		return nil
	})
	return r
}

// postPatiently sends a payment again while it is answered 503: on a machine that others
// use too, even the lock for a new page of a table can take long. 409 for a key that nobody
// else uses is wrong, unless a claim of an earlier try could not be given back.
func postPatiently(base, key, body string) (reply, error) {
	tried := false
	for range 50 {
		r, err := postTo(base, shopToken, key, body)
		again := r.code == http.StatusServiceUnavailable || tried && r.code == http.StatusConflict
		if err != nil || !again {
			return r, err
		}
		tried = true
	}
	return reply{}, errors.New("the key stayed busy")
}

// Five accounts spend from each other at random, more than they have. No interleaving
// takes one below zero, at any moment that anybody can see.
func TestPay_OwnSpendsNeverGoBelowZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const accounts, money = 5, 100
	for i := range accounts {
		b.fund(fmt.Sprint("a:", i), money)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var spent, poor atomic.Int64
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { // ends with done
		for {
			select {
			case <-done:
				return
			default:
			}
			if n := query1[int64](t, b.pool, `select min(balance) from accounts where account_id like 'a:%'`); n < 0 {
				t.Errorf("an account stood at %d", n)
				return
			}
		}
	})
	each(16, func(i int) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for n := range 60 {
			from := r.IntN(accounts)
			to := (from + 1 + r.IntN(accounts-1)) % accounts
			got, err := postPatiently(b.base, fmt.Sprint(i, "-", n), payment(fmt.Sprint("a:", from), fmt.Sprint("a:", to), 1+r.Int64N(120)))
			switch {
			case err == nil && got.code == 201:
				spent.Add(1)
			case err == nil && got.code == 402:
				poor.Add(1)
			default:
				t.Errorf("got %s %v, want 201 or 402", got, err)
			}
		}
	})
	close(done)
	watcher.Wait()
	if spent.Load() == 0 || poor.Load() == 0 {
		t.Errorf("got %d payments and %d refusals, want some of both", spent.Load(), poor.Load())
	}
	if sum := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); sum != accounts*money {
		t.Errorf("the sum of all balances: got %d, want %d", sum, accounts*money)
	}
	b.lawful()
}

// Opposite transfers and batches of webhooks over the same few accounts: all locks are
// taken in one order, so nobody sees a deadlock and nothing is lost. The webhooks take
// accounts below zero, which spends may not.
func TestPay_StormBesideWebhooksHasNoDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const accounts, money = 4, 1_000_000
	for i := range accounts {
		b.fund(fmt.Sprint("a:", i), money)
	}
	b.fund("a:debtor", 1)
	deadlocks := query1[int64](t, b.pool, `select deadlocks from pg_stat_database where datname = current_database()`)
	var webhooks, paid atomic.Int64
	var batches sync.WaitGroup
	for partition := range int32(2) {
		batches.Go(func() { applyBatches(t, b, partition, accounts, &webhooks) })
	}
	each(12, func(i int) {
		for n := range 40 {
			from, to := i%accounts, (i+1+n%3)%accounts
			if n%2 == 1 {
				from, to = to, from
			}
			if from == to {
				to = (to + 1) % accounts
			}
			r, err := postPatiently(b.base, fmt.Sprint("s", i, "-", n), payment(fmt.Sprint("a:", from), fmt.Sprint("a:", to), 1))
			if err != nil || r.code != 201 {
				t.Errorf("got %s %v, want 201", r, err)
				return
			}
			paid.Add(1)
		}
	})
	batches.Wait()
	if got := b.payments(); got != paid.Load() {
		t.Errorf("got %d payments, want %d", got, paid.Load())
	}
	want := int64(accounts*money+1) + webhooks.Load()
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); got != want {
		t.Errorf("the sum of all balances: got %d, want %d", got, want)
	}
	if got := b.balance("a:debtor"); got >= 0 {
		t.Errorf("the account that webhooks debit stands at %d, want below zero", got)
	}
	if r := b.post("debtor", payment("a:debtor", "a:0", 1)); r.code != 402 {
		t.Errorf("got %s, want 402", r)
	}
	if r := b.post("to-debtor", payment("a:0", "a:debtor", 1)); r.code != 201 {
		t.Errorf("money for an account below zero: got %s, want 201", r)
	}
	b.exec(`select pg_stat_force_next_flush()`)
	if got := query1[int64](t, b.pool, `select deadlocks from pg_stat_database where datname = current_database()`); got != deadlocks {
		t.Errorf("Postgres counted %d deadlocks", got-deadlocks)
	}
	b.lawful()
}

// applyBatches applies batches of webhooks as a worker does. sum gets what they add up to.
func applyBatches(t *testing.T, b *bundle, partition int32, accounts int, sum *atomic.Int64) {
	l := ledger.New(b.pool, func(e *schema.Event) (schema.Meaning, error) {
		var m schema.Meaning
		return m, json.Unmarshal(e.Body, &m.Postings)
	}, ledger.Options{})
	at := ledger.Position{ClusterID: "c", Topic: "t", TopicID: [16]byte{1}, Partition: partition}
	if err := l.WritePosition(t.Context(), ledger.PositionWrite{Position: at}); err != nil {
		t.Error(err)
		return
	}
	r := rand.New(rand.NewPCG(uint64(partition), 7))
	next := int64(0)
	for range 40 {
		batch := ledger.Batch{Position: at, Start: next}
		for i := range 20 {
			id := fmt.Sprint(partition, "-", next+int64(i))
			amount := 1 + r.Int64N(5)
			postings := []schema.Posting{
				{Account: fmt.Sprint("a:", r.IntN(accounts)), Contra: "external:x", Amount: amount, Currency: "EUR", Rule: "in", Movement: id},
				{Account: "a:debtor", Contra: "external:x", Amount: -amount - 1, Currency: "EUR", Rule: "out", Movement: id},
			}
			body, err := json.Marshal(postings)
			if err != nil {
				t.Error(err)
				return
			}
			e := schema.Event{Source: "s", ID: id, Type: "t", ReceivedAt: time.Now(), Scheme: "hmac", KeyID: "k",
				ContentType: "application/json", Body: body, BodySHA256: sha256.Sum256(body)}
			batch.Records = append(batch.Records, ledger.Record{Partition: partition, Offset: next + int64(i), Timestamp: e.ReceivedAt,
				Key: e.RecordKey(), Value: body, Headers: e.Headers()})
			sum.Add(-1)
		}
		c, err := l.Apply(t.Context(), batch)
		if err != nil {
			t.Errorf("apply: %v", err)
			return
		}
		if got := c.Count(ledger.Applied); got != 20 {
			t.Errorf("got %d applied, want 20", got)
		}
		next = c.Next()
	}
}

// TestModel_KeyStates plays random requests, crashes and passing time against the door
// and against a model of what a key may be, one at a time.
func TestModel_KeyStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		run := runs.Add(1)
		m := &model{b: b, rt: rt, prefix: fmt.Sprintf("m%d-", run), keys: map[string]*modelKey{}, balance: 50}
		m.account = "shop:" + m.prefix
		b.fund(m.account, m.balance)
		rt.Repeat(map[string]func(*rapid.T){
			"post":    m.post,
			"abandon": m.abandon,
			"release": m.release,
			"wait":    m.wait,
			"clean":   m.clean,
			"":        m.check,
		})
	})
	lawfulLedger(t, b.pool)
}

type model struct {
	b       *bundle
	rt      *rapid.T
	prefix  string
	account string
	balance int64
	paid    int64
	keys    map[string]*modelKey
	// now is how much time was made to pass, in seconds.
	now int
}

// modelKey is what the model holds a key to be. A key that is not there is new.
type modelKey struct {
	amount   int64 // which request it belongs to
	done     bool
	code     int
	body     string
	claimed  int
	released bool
	expires  int
}

const (
	modelClaimTTL = 30
	modelKeyTTL   = 24 * 3600
)

func (m *model) post(t *rapid.T) {
	key := m.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	amount := int64(rapid.SampledFrom([]int{1, 2, 30}).Draw(t, "amount"))
	got := m.b.post(key, payment(m.account, "sink:"+m.prefix, amount))
	k := m.keys[key]
	if k != nil && k.expires <= m.now {
		k = nil
	}
	// Some time of the clock passes too, so a claim as old as the TTL is older than it.
	stale := k != nil && !k.done && (k.released || m.now-k.claimed >= modelClaimTTL)
	switch {
	case k != nil && k.amount != amount:
		m.want(t, got, 422, "key-reused")
	case k != nil && k.done:
		if got.code != k.code || string(got.body) != k.body || got.header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("got %s, want a replay of %d %s", got, k.code, k.body)
		}
	case k != nil && !stale:
		m.want(t, got, 409, "in-progress")
	default:
		want := 201
		if m.balance < amount {
			want = 402
		} else {
			m.balance -= amount
			m.paid++
		}
		if got.code != want || got.header.Get("Idempotent-Replayed") != "" {
			t.Fatalf("got %s, want %d anew", got, want)
		}
		m.keys[key] = &modelKey{amount: amount, done: true, code: want, body: string(got.body), expires: m.now + modelKeyTTL}
	}
}

func (m *model) want(t *rapid.T, got reply, code int, problem string) {
	if got.code != code || got.problem() != problem {
		t.Fatalf("got %s, want %d %s", got, code, problem)
	}
}

// abandon makes a key that is being processed by nobody.
func (m *model) abandon(t *rapid.T) {
	key := m.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	if m.keys[key] != nil {
		return // it is in use
	}
	amount := int64(rapid.SampledFrom([]int{1, 2, 30}).Draw(t, "amount"))
	abandon(m.b.tb, m.b, key, payment(m.account, "sink:"+m.prefix, amount), "0 s")
	m.keys[key] = &modelKey{amount: amount, claimed: m.now, expires: m.now + modelKeyTTL}
}

// release gives an abandoned key back, as a worker whose work was rolled back does.
func (m *model) release(t *rapid.T) {
	for key, k := range m.keys {
		if !k.done {
			m.b.exec(`update idempotency_keys set claimed_at = '-infinity' where client = 'shop' and key = $1`, key)
			k.released = true
		}
	}
}

// wait lets time pass for the keys of this run.
func (m *model) wait(t *rapid.T) {
	seconds := rapid.SampledFrom([]int{10, modelClaimTTL + 5, modelKeyTTL / 2, modelKeyTTL + 5}).Draw(t, "seconds")
	m.now += seconds
	m.b.exec(`update idempotency_keys set claimed_at = claimed_at - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2)
	           where starts_with(key, $1)`, m.prefix, seconds)
}

func (m *model) clean(t *rapid.T) {
	testkit.Eventually(m.b.tb, time.Minute, func() error { // the server cleans too, and only one may
		if _, err := (&cleaner{door: m.b.server.door}).batch(m.b.tb.Context()); err != nil {
			return err
		}
		if n := query1[int](m.b.tb, m.b.pool, `select count(*) from idempotency_keys where starts_with(key, $1) and expires_at <= now()`, m.prefix); n > 0 {
			return fmt.Errorf("%d expired keys are there", n)
		}
		return nil
	})
	for key, k := range m.keys {
		if k.expires <= m.now {
			delete(m.keys, key)
		}
	}
}

func (m *model) check(t *rapid.T) {
	if got := m.b.balance(m.account); got != m.balance {
		t.Fatalf("balance: got %d, want %d", got, m.balance)
	}
	if got := query1[int64](m.b.tb, m.b.pool, `select count(*) from payments where from_account = $1`, m.account); got != m.paid {
		t.Fatalf("payments: got %d, want %d", got, m.paid)
	}
	good := 0 // what expired may be there or not: the server cleans whenever it likes
	for _, k := range m.keys {
		if k.expires > m.now {
			good++
		}
	}
	if got := query1[int](m.b.tb, m.b.pool, `select count(*) from idempotency_keys where starts_with(key, $1) and expires_at > now()`, m.prefix); got != good {
		t.Fatalf("keys: got %d rows that are good, want %d", got, good)
	}
}
