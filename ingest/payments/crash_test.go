package payments

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// crashing is a child behind a gate, and a healthy server on the same database.
type crashing struct {
	*bundle
	gate  *gate
	child *child
}

const shortTTL = time.Second

func setupCrashing(t *testing.T, o childOptions) *crashing {
	t.Helper()
	if o.ClaimTTL == 0 {
		o.ClaimTTL = shortTTL
	}
	url := testkit.LedgerURL(t)
	g := newGate(t, target(t, url))
	o.URL, o.MaxConns, o.Quiet = through(t, url, g), 4, true
	b := setupOn(t, url, func(c *Config) {
		c.ClaimTTL = o.ClaimTTL
		if o.KeyTTL != 0 {
			c.KeyTTL = o.KeyTTL
		}
	})
	b.fund("shop:1", 1_000_000)
	c := &crashing{bundle: b, gate: g, child: startChild(t, o)}
	// Its connections have every statement prepared, so that what follows is the work alone.
	for i := range 2 {
		if r, err := postTo(c.child.base, shopToken, fmt.Sprint("warm", i), payment("shop:1", "x", 1)); err != nil || r.code != 201 {
			t.Fatal(r, err)
		}
	}
	return c
}

// settled posts until the key has an answer that is not 409, nor 422 while it belongs to
// another request, and returns it.
func (c *crashing) settled(key, body string) reply {
	c.tb.Helper()
	var r reply
	testkit.Eventually(c.tb, time.Minute, func() error {
		r = c.post(key, body)
		if r.code == http.StatusConflict || r.code == http.StatusUnprocessableEntity {
			return fmt.Errorf("still %s", r)
		}
		return nil
	})
	return r
}

// A request takes two transactions: settings, claim; begin, settings, answer and payment,
// entries and accounts, commit. The process is killed before
// each of these statements, and after the last.
func TestCrash_KilledBeforeEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 7
	c := setupCrashing(t, childOptions{})
	for n := 1; n <= statements; n++ {
		key, body := fmt.Sprint("k", n), payment("shop:1", "x", int64(100+n))
		before := c.payments()
		s := c.gate.holdAt(t, nth(n))
		answer := postAsync(c.child.base, key, body)
		await(t, s.reached, fmt.Sprintf("statement %d", n))
		c.child.Kill()
		s.release()
		if r := await(t, answer, "the end of the request"); r.err == nil {
			t.Errorf("statement %d: answered %s by a process that was killed", n, r)
		}
		c.gate.on(nil)
		lawful(t, c.pool)
		r := c.settled(key, body)
		if r.code != 201 {
			t.Errorf("statement %d: then answered %s, want 201", n, r)
		}
		if got := c.payments() - before; got != 1 {
			t.Errorf("statement %d: got %d payments, want 1", n, got)
		}
		c.child.Restart()
	}
	c.lawful()
}

func TestCrash_KilledAfterCommit(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t, childOptions{})
	before := c.payments()
	body := payment("shop:1", "x", 7)
	c.gate.cutAt(is(queryCommit, 1))
	answer := postAsync(c.child.base, "k", body)
	testkit.Eventually(t, time.Minute, func() error {
		if got := c.payments() - before; got != 1 {
			return fmt.Errorf("%d payments", got)
		}
		return nil
	})
	c.child.Kill()
	await(t, answer, "the end of the request")
	if r := untilPaid(t, c.base, "k", body); r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want a replay of 201", r)
	}
	c.lawful()
}

func TestCrash_CommitAnswerLostIsResolvedByTheNextRequest(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t, childOptions{ClaimTTL: 2 * patience})
	body := payment("shop:1", "x", 7)
	c.gate.cutAt(is(queryCommit, 1))
	r := await(t, postAsync(c.child.base, "k", body), "an answer")
	if r.err != nil || r.code != 503 || r.problem() != "unknown-outcome" {
		t.Fatalf("got %s %v, want 503 unknown-outcome", r, r.err)
	}
	// The server may still be at it; long before the claim is stale it is done.
	if again := untilPaid(t, c.child.base, "k", body); again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want the payment that was committed", again)
	}
	c.lawful()
}

// The claim's COMMIT is lost: nobody works on the key until the claim is stale.
func TestCrash_ClaimAnswerLost(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t, childOptions{})
	before := c.payments()
	body := payment("shop:1", "x", 7)
	c.gate.cutAt(is(queryClaim, 1))
	r := await(t, postAsync(c.child.base, "k", body), "an answer")
	if r.err != nil || r.code != 503 {
		t.Fatalf("got %s %v, want 503", r, r.err)
	}
	if r := c.settled("k", body); r.code != 201 || c.payments()-before != 1 {
		t.Errorf("got %s and %d payments, want 201 and 1", r, c.payments()-before)
	}
	c.lawful()
}

func TestFence_PausedWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]struct {
		child childOptions
		other string // what the key is used for meanwhile
	}{
		"taken over": {childOptions{}, payment("shop:1", "x", 7)},
		"expired and claimed anew with another body": {childOptions{KeyTTL: shortTTL}, payment("shop:1", "y", 8)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setupCrashing(t, o.child)
			first := payment("shop:1", "x", 7)
			before := c.payments()
			// The work begins: the claim is made.
			s := c.gate.holdAt(t, is(queryBegin, 1))
			answer := postAsync(c.child.base, "k", first)
			await(t, s.reached, "the work")
			c.child.Signal(syscall.SIGSTOP)
			taken := c.settled("k", o.other)
			if taken.code != 201 {
				t.Fatalf("got %s, want 201", taken)
			}
			c.child.Signal(syscall.SIGCONT)
			s.release()
			r := await(t, answer, "the answer of the first worker")
			if r.err != nil || r.code != 409 {
				t.Errorf("the first worker answered %s %v, want 409", r, r.err)
			}
			if got := c.payments() - before; got != 1 {
				t.Errorf("got %d payments, want 1", got)
			}
			if again := c.post("k", o.other); again.code != 201 && o.child.KeyTTL == 0 {
				t.Errorf("got %s, want a replay", again)
			}
			c.lawful()
		})
	}
}

// The row was removed, and made anew by another request: the number of the claim tells.
func TestFence_KeyRemovedAndClaimedAnew(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t, childOptions{ClaimTTL: 2 * patience})
	before := c.payments()
	s := c.gate.holdAt(t, is(queryBegin, 1))
	answer := postAsync(c.child.base, "k", payment("shop:1", "x", 7))
	await(t, s.reached, "the work")
	c.exec(`delete from idempotency_keys where key = 'k'`)
	if r := c.post("k", payment("shop:1", "y", 8)); r.code != 201 {
		t.Fatal(r)
	}
	s.release()
	if r := await(t, answer, "an answer"); r.code != 409 {
		t.Errorf("got %s %v, want 409", r, r.err)
	}
	if got := c.payments() - before; got != 1 || c.balance("y") != 8 {
		t.Errorf("got %d payments and %d for y, want 1 and 8", got, c.balance("y"))
	}
	c.lawful()
}

// A worker paused in the middle of its work holds the locks of key and accounts. Twenty
// takers come when its claim is stale: none waits, and others pay meanwhile. Postgres 17
// and newer end its transaction once the claim is stale, so that there one of them pays.
func TestCrash_PausedInsideTheWork(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t, childOptions{})
	c.fund("shop:2", 1000)
	before := c.payments()
	body := payment("shop:1", "x", 7)
	s := c.gate.holdAt(t, is(queryCommit, 1)) // all is written
	answer := postAsync(c.child.base, "k", body)
	await(t, s.reached, "the end of the work")
	c.child.Signal(syscall.SIGSTOP)
	testkit.Eventually(t, time.Minute, func() error {
		if !query1[bool](t, c.pool, `select bool_and(claimed_at < now() - interval '1 s') from idempotency_keys where key = 'k'`) {
			return fmt.Errorf("the claim is not stale yet")
		}
		return nil
	})
	ends := query1[int](t, c.pool, `select current_setting('server_version_num')::int`) >= 170000
	waited := watchLockWaits(t, c.bundle)
	var mu sync.Mutex
	var longest time.Duration
	each(25, func(i int) {
		if i >= 20 {
			untilPaid(t, c.base, fmt.Sprint("other", i), payment("shop:2", "z", 1))
			return
		}
		began := time.Now()
		r, err := postTo(c.base, shopToken, "k", body)
		mu.Lock()
		defer mu.Unlock()
		longest = max(longest, time.Since(began))
		if err != nil || r.code != 409 && !(ends && r.code == 201) {
			t.Errorf("got %s %v, want 409", r, err)
		}
	})
	if w := waited(); w > 0 {
		t.Errorf("%d looks saw a taker wait for a lock, want none", w)
	}
	// Most of it is this machine's; a wait for the lock would have no end.
	if longest > patience/2 {
		t.Errorf("the slowest of the takers took %s", longest)
	}
	c.child.Signal(syscall.SIGCONT)
	s.release()
	if r := await(t, answer, "the first worker"); r.err != nil || r.code != 201 && !(ends && r.code == 503) {
		t.Errorf("the first worker answered %s %v, want 201: its claim was never taken", r, r.err)
	}
	if r := c.post("k", body); r.code != 201 || c.payments()-before != 6 {
		t.Errorf("got %s and %d payments, want a replay and 6", r, c.payments()-before)
	}
	c.lawful()
}

// watchLockWaits looks until the returned function is called, which tells how often a
// statement about keys was waiting for a lock.
func watchLockWaits(t *testing.T, b *bundle) func() int {
	t.Helper()
	stop, done, n := make(chan struct{}), make(chan struct{}), 0
	go func() { // ends with the returned function
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n += query1[int](t, b.pool, `
				select count(*) from pg_stat_activity
				 where datname = current_database() and wait_event_type = 'Lock' and query like '%idempotency_keys%'`)
		}
	}()
	return func() int { close(stop); <-done; return n }
}

func TestTakeover_OneOfTwentyWins(t *testing.T) {
	t.Parallel()
	// So long that nobody is answered 503 for a slow machine.
	b := setup(t, func(c *Config) { c.ClaimTTL, c.AnswerTimeout = time.Minute, time.Minute })
	b.fund("shop:1", 1000)
	for round := range 20 {
		key, body := fmt.Sprint("k", round), payment("shop:1", "x", 1)
		abandon(t, b, key, body, "2 minutes")
		replies := make([]reply, 20)
		each(len(replies), func(i int) { replies[i], _ = postTo(b.base, shopToken, key, body) })
		n, err := oneOutcome(replies)
		if err != nil || n < 1 {
			t.Fatalf("round %d: %d answered 201: %v", round, n, err)
		}
		if attempts := query1[int](t, b.pool, `select count(*) from payments where idempotency_key = $1`, key); attempts != 1 {
			t.Errorf("round %d: got %d payments, want 1", round, attempts)
		}
	}
	if n := counter(t, b.reg, "hookledger_payments_takeovers_total", "cause", "abandoned"); n != 20 {
		t.Errorf("got %v takeovers, want 20", n)
	}
	b.lawful()
}

// abandon leaves a claim that nobody works on, so old.
func abandon(tb testing.TB, b *bundle, key, body, age string) {
	tb.Helper()
	mark, err := fingerprint(http.MethodPost, "/v1/payments", []byte(body))
	if err != nil {
		tb.Fatal(err)
	}
	b.exec(`insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at)
	        values ('shop', $1, $2, 'processing', now() - $3::text::interval, now() + interval '1 day')`, key, mark[:], age)
}

// The cleaning removes a row between the look of a taker and its takeover: the key is new.
func TestTakeover_RowRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	g := newGate(t, target(t, url))
	b := setupOn(t, url)
	b.fund("shop:1", 1000)
	b.startWith(func() Config { c := testConfig(); return c }(), openPool(t, through(t, url, g), 4))
	body := payment("shop:1", "x", 1)
	abandon(t, b, "k", body, "2 minutes")
	s := g.holdAt(t, is(queryTakeOver, 1))
	answer := postAsync(b.base, "k", body)
	await(t, s.reached, "the takeover")
	b.exec(`delete from idempotency_keys where key = 'k'`)
	s.release()
	if r := await(t, answer, "an answer"); r.code != 201 || b.payments() != 1 {
		t.Errorf("got %s %v and %d payments, want 201 and 1", r, r.err, b.payments())
	}
	b.lawful()
}
