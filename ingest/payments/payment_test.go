package payments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
)

func TestPost_PaysOnceAndReplays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	body := payment("shop:1", "x", 300)
	first := b.post("k1", body)
	if first.code != 201 || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatal(first)
	}
	for _, key := range []string{"k1", `"k1"`} {
		again := b.post(key, body)
		if again.code != 201 || !bytes.Equal(again.body, first.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("key %s: got %s, want the same bytes as %s", key, again, first)
		}
	}
	if b.balance("shop:1") != 700 || b.balance("x") != 300 {
		t.Errorf("balances: got %d and %d, want 700 and 300", b.balance("shop:1"), b.balance("x"))
	}
	var p Payment
	if err := json.Unmarshal(first.body, &p); err != nil || p.Status != "succeeded" || p.Amount != 300 || p.Currency != "EUR" {
		t.Errorf("payment: got %+v %v", p, err)
	}
	if got := b.get(first.header.Get("Location"), shopToken); got.code != 200 || !bytes.Equal(got.body, first.body) {
		t.Errorf("read again: got %s, want %s", got, first)
	}
	if n := counter(t, b.reg, "hookledger_payments_replays_total", "client", "shop"); n != 2 {
		t.Errorf("got %v replays, want 2", n)
	}
	b.lawful()
}

func TestPost_PoorIsFinal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 10)
	body := payment("shop:1", "x", 11)
	first := b.post("k", body)
	if first.code != 402 || first.problem() != "insufficient-funds" {
		t.Fatalf("got %s, want 402 insufficient-funds", first)
	}
	b.fund("shop:1", 1000)
	again := b.post("k", body)
	if again.code != 402 || !bytes.Equal(again.body, first.body) || again.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("with money meanwhile: got %s, want the first answer", again)
	}
	if r := b.post("nobody", payment("shop:nobody", "x", 1)); r.code != 402 {
		t.Errorf("an account that does not exist: got %s, want 402", r)
	}
	if b.payments() != 0 {
		t.Errorf("got %d payments, want none", b.payments())
	}
	b.lawful()
}

func TestPost_FullAccountIsRefusedForGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	b.exec(`insert into accounts (balance, entry_count, updated_at, account_id, currency) values (9223372036854775800, 1, now(), 'full', 'EUR')`)
	for range 2 {
		if r := b.post("k", payment("shop:1", "full", 100)); r.code != 422 || r.problem() != "balance-range" {
			t.Errorf("got %s, want 422 balance-range", r)
		}
	}
}

func TestPost_RefusesWhatIsNoPayment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	good := payment("shop:1", "x", 1)
	with := func(name, value string) string {
		var m map[string]json.RawMessage
		_ = json.Unmarshal([]byte(good), &m)
		if value == "" {
			delete(m, name)
		} else {
			m[name] = json.RawMessage(value)
		}
		out, _ := json.Marshal(m)
		return string(out)
	}
	bodies := map[string]string{
		"empty": "", "no JSON": "{", "an array": "[]", "a text": `"x"`, "two values": good + good,
		"unknown field": with("extra", "1"), "a field twice": strings.Replace(good, "{", `{"amount":1,`, 1),
		"a field in another case": with("Amount", "1"),
		"from = to":               payment("shop:1", "shop:1", 1),
		"amount 0":                with("amount", "0"), "amount negative": with("amount", "-1"), "amount with decimals": with("amount", "1.5"),
		"amount a text": with("amount", `"1"`), "amount null": with("amount", "null"), "amount huge": with("amount", "1e30"),
		"amount beyond the most": with("amount", "1000000000000001"),
		"currency unknown":       with("currency", `"XQX"`), "currency long": with("currency", `"EURO"`), "currency empty": with("currency", `""`),
		"currency a number": with("currency", "978"),
		"account empty":     with("to", `""`), "account long": with("to", fmt.Sprintf("%q", strings.Repeat("x", 256))),
		"account with a newline": with("to", `"a\nb"`), "account with NUL": with("to", `"\u0000"`), "account a number": with("to", "1"),
		"account of nobody": with("to", `"external:stripe"`), "spent by nobody": with("from", `"external:stripe"`),
		"lone surrogate": with("to", `"\ud800"`), "reference long": with("reference", fmt.Sprintf("%q", strings.Repeat("x", 256))),
		"reference null": with("reference", "null"),
	}
	for _, name := range orderFields {
		bodies["without "+name] = with(name, "")
	}
	for name, body := range bodies {
		if r := b.post("k", body); r.code != 400 || r.problem() != "bad-body" {
			t.Errorf("%s: got %s, want 400 bad-body", name, r)
		}
	}
	// None of them was remembered.
	if r := b.post("k", good); r.code != 201 {
		t.Errorf("then: got %s, want 201", r)
	}
}

func TestPost_RefusesRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	b.fund("a:1", 1000)
	b.fund("b:1", 1000)
	good := payment("shop:1", "x", 1)
	send := func(change func(*http.Request)) reply {
		req, err := http.NewRequest(http.MethodPost, b.base+"/v1/payments", strings.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Authorization": {"Bearer " + shopToken}}
		change(req)
		r, err := do(req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	for _, c := range []struct {
		name    string
		change  func(*http.Request)
		code    int
		problem string
	}{
		{"no token", header("Authorization"), 401, "unauthorized"},
		{"another token", header("Authorization", "Bearer shop-token-0123456788"), 401, "unauthorized"},
		{"part of the token", header("Authorization", "Bearer "+shopToken[:len(shopToken)-1]), 401, "unauthorized"},
		{"another scheme", header("Authorization", "Basic "+shopToken), 401, "unauthorized"},
		{"two tokens", header("Authorization", "Bearer "+shopToken, "Bearer "+shopToken), 401, "unauthorized"},
		{"no key", header("Idempotency-Key"), 400, "bad-idempotency-key"},
		{"an empty key", header("Idempotency-Key", ""), 400, "bad-idempotency-key"},
		{"an empty quoted key", header("Idempotency-Key", `""`), 400, "bad-idempotency-key"},
		{"an open quote", header("Idempotency-Key", `"k`), 400, "bad-idempotency-key"},
		{"two keys", header("Idempotency-Key", "k", "k"), 400, "bad-idempotency-key"},
		{"a long key", header("Idempotency-Key", strings.Repeat("k", 256)), 400, "bad-idempotency-key"},
		{"a key that is not ASCII", header("Idempotency-Key", "kéy"), 400, "bad-idempotency-key"},
		{"no type", header("Content-Type"), 415, "unsupported-media-type"},
		{"another type", header("Content-Type", "text/plain"), 415, "unsupported-media-type"},
		{"another charset", header("Content-Type", "application/json; charset=latin1"), 415, "unsupported-media-type"},
		{"compressed", header("Content-Encoding", "gzip"), 415, "unsupported-media-type"},
		{"too large", func(r *http.Request) { setBody(r, strings.Repeat(" ", 16<<10)+good) }, 413, "body-too-large"},
		{"too large, in chunks", func(r *http.Request) { setBody(r, strings.Repeat(" ", 16<<10)+good); r.ContentLength = -1 }, 413, "body-too-large"},
		{"from another's account", func(r *http.Request) { setBody(r, payment("b:1", "x", 1)) }, 403, "forbidden"},
		{"another method", func(r *http.Request) { r.Method = http.MethodPut }, 405, "method-not-allowed"},
		{"another path", func(r *http.Request) { r.URL.Path = "/v1/payment" }, 404, "not-found"},
	} {
		r := send(c.change)
		if r.code != c.code || r.problem() != c.problem || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %s, want %d %s", c.name, r, c.code, c.problem)
		}
	}
	if n := query1[int](t, b.pool, `select count(*) from idempotency_keys`); n != 0 {
		t.Errorf("got %d keys, want none: refusals of the request itself are not remembered", n)
	}
	for _, c := range []func(*http.Request){
		header("Content-Type", "application/json; charset=UTF-8"),
		header("Idempotency-Key", strings.Repeat("k", 255)),
		header("Idempotency-Key", "a key with spaces"),
		header("Idempotency-Key", `"with \"quotes\" and \\"`),
		header("Authorization", "bearer   "+shopToken),
		func(r *http.Request) {
			setBody(r, payment("a:1", "x", 1))
			r.Header["Idempotency-Key"] = []string{"a"}
		},
		func(r *http.Request) {
			setBody(r, payment("b:1", "x", 1))
			r.Header["Authorization"] = []string{"Bearer " + otherToken}
		},
	} {
		if r := send(c); r.code != 201 {
			t.Errorf("got %s, want 201", r)
		}
	}
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	r.Body = struct {
		*strings.Reader
		closer
	}{strings.NewReader(body), closer{}}
	r.GetBody = nil
}

type closer struct{}

func (closer) Close() error { return nil }

func TestPost_KeyWithAnotherRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	if r := b.post("k", `{"from":"shop:1","to":"x","amount":10,"currency":"EUR","reference":"é"}`); r.code != 201 {
		t.Fatal(r)
	}
	// The same JSON, written otherwise.
	for _, same := range []string{
		"{ \"to\":\"x\",\n\"reference\":\"\\u00e9\", \"amount\":1e1, \"currency\":\"EUR\", \"from\":\"shop:1\" }",
		`{"from":"shop:1","to":"\u0078","amount":10.0,"currency":"EUR","reference":"é"}`,
	} {
		if r := b.post("k", same); r.code != 201 || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %s, want a replay", same, r)
		}
	}
	for _, other := range []string{
		`{"from":"shop:1","to":"x","amount":11,"currency":"EUR","reference":"é"}`,
		`{"from":"shop:1","to":"x","amount":10,"currency":"USD","reference":"é"}`,
		`{"from":"shop:1","to":"x","amount":10,"currency":"EUR","reference":"e"}`,
		`{"from":"shop:1","to":"y","amount":10,"currency":"EUR","reference":"é"}`,
	} {
		if r := b.post("k", other); r.code != 422 || r.problem() != "key-reused" {
			t.Errorf("%s: got %s, want 422 key-reused", other, r)
		}
	}
	// Keys belong to clients.
	if r, err := postTo(b.base, otherToken, "k", payment("shop:1", "x", 1)); err != nil || r.code != 201 {
		t.Errorf("another client: got %s %v, want 201", r, err)
	}
	if n := counter(t, b.reg, "hookledger_payments_fingerprint_conflicts_total", "client", "shop"); n != 4 {
		t.Errorf("got %v conflicts, want 4", n)
	}
}

func TestPost_InProgressIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := payment("shop:1", "x", 1)
	abandon(t, b, "k", body, "1 second")
	if r := b.post("k", body); r.code != 409 || r.problem() != "in-progress" || r.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want 409 with Retry-After", r)
	}
}

// An INSERT waits behind one that has not committed, so it has a timeout.
func TestPost_InsertBehindAnUncommittedOneGivesUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at)
		values ('shop', 'k', '\x00', 'processing', now(), now() + interval '1 day')`); err != nil {
		t.Fatal(err)
	}
	if r := b.post("k", payment("shop:1", "x", 1)); r.code != 409 {
		t.Errorf("got %s, want 409", r)
	}
}

// An account that somebody holds locked for long costs its payments a 503, which is not
// remembered, and the claim is given back.
func TestPost_BusyAccountReleasesTheClaim(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.ClaimTTL = 3 * time.Second })
	b.fund("shop:1", 100)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `select 1 from accounts where account_id = 'shop:1' for update`); err != nil {
		t.Fatal(err)
	}
	body := payment("shop:1", "x", 1)
	if r := b.post("k", body); r.code != 503 || r.problem() != "overloaded" || r.header.Get("Retry-After") == "" {
		t.Fatalf("got %s, want 503 overloaded", r)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := b.post("k", payment("shop:1", "x", 2)); r.code != 422 {
		t.Errorf("another request: got %s, want 422: the key stays bound", r)
	}
	if r := b.post("k", body); r.code != 201 {
		t.Errorf("got %s, want 201 at once", r)
	}
	if n := counter(t, b.reg, "hookledger_payments_takeovers_total", "cause", "released"); n != 1 {
		t.Errorf("got %v takeovers of released keys, want 1", n)
	}
	b.lawful()
}

func TestPost_ExpiredKeyIsNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	first := b.post("k", payment("shop:1", "x", 1))
	b.exec(`update idempotency_keys set expires_at = now()`)
	second := b.post("k", payment("shop:1", "x", 2))
	if second.code != 201 || bytes.Equal(first.body, second.body) || b.payments() != 2 {
		t.Errorf("got %s and %d payments, want another payment", second, b.payments())
	}
}

func TestRead_BelongsToTheClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	b.fund("b:1", 5)
	location := b.post("k", payment("shop:1", "x", 1)).header.Get("Location")
	for _, c := range []struct {
		path, token string
		code        int
	}{
		{location, shopToken, 200}, {location, otherToken, 404}, {location, "", 401},
		{"/v1/payments/01a228b0-bd5f-77f0-8a4a-2bccb93fdf08", shopToken, 404}, {"/v1/payments/x", shopToken, 404},
		{"/v1/accounts/shop:1", shopToken, 200}, {"/v1/accounts/shop%3A1", shopToken, 200}, {"/v1/accounts/b:1", shopToken, 403},
		{"/v1/accounts/b:1", otherToken, 200}, {"/v1/accounts/none", otherToken, 404}, {"/v1/accounts/%00", otherToken, 404}, {"/v1/accounts/%ff", otherToken, 404}, {"/v1/accounts/b:1", "", 401},
	} {
		if r := b.get(c.path, c.token); r.code != c.code {
			t.Errorf("%s: got %s, want %d", c.path, r, c.code)
		}
	}
	b.fund("shop:a/b c", 7)
	var a Account
	if r := b.get("/v1/accounts/shop:a%2Fb%20c", shopToken); r.code != 200 || json.Unmarshal(r.body, &a) != nil || a.AccountID != "shop:a/b c" || a.Balances[0].Balance != 7 {
		t.Errorf("got %s, want the account", r)
	}
}

func TestRate_IsPerClient(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Rate = Rate{PerSecond: 0.1, Burst: 3} })
	for i := range 5 {
		r := b.get("/v1/payments/x", shopToken)
		if want := map[bool]int{true: 404, false: 429}[i < 3]; r.code != want {
			t.Errorf("request %d: got %s, want %d", i, r, want)
		}
		if r.code == 429 && (r.problem() != "rate-limited" || r.header.Get("Retry-After") != "10") {
			t.Errorf("got %s after %s, want rate-limited after 10", r, r.header.Get("Retry-After"))
		}
	}
	if r := b.get("/v1/payments/x", otherToken); r.code != 404 {
		t.Errorf("another client: got %s, want 404", r)
	}
}

func TestLog_HoldsNoSecretAndNoPayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	var log bytes.Buffer
	lines := zerolog.SyncWriter(&log)
	s, err := NewServer(Deps{Config: testConfig(), Pool: openPool(t, b.url, 2), Registerer: prometheus.NewRegistry(), Log: zerolog.New(lines)})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.watch.state.Store(new(error))
	h := s.routes()
	secretBody := `{"from":"shop:1","to":"hush-account","amount":4711,"currency":"EUR","reference":"hush-reference"}`
	for _, c := range []struct{ token, key, body string }{
		{shopToken, "hush-key", secretBody}, {shopToken, "hush-key", secretBody}, {"hush-unknown-token", "hush-key", secretBody},
		{shopToken, "hush-key", `{"hush":1}`}, {shopToken, `"hush`, secretBody}, {shopToken, "k", strings.Replace(secretBody, "4711", "47", 1)},
	} {
		req, _ := http.NewRequest(http.MethodPost, "/v1/payments", strings.NewReader(c.body))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {c.key}, "Authorization": {"Bearer " + c.token}}
		h.ServeHTTP(&discard{header: http.Header{}}, req)
	}
	for _, secret := range []string{shopToken, otherToken, "hush", "4711"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, log.String())
		}
	}
	if !strings.Contains(log.String(), "request refused") {
		t.Errorf("the log says nothing of refusals:\n%s", log.String())
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestMetrics_AreWellFormed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	b.post("k", payment("shop:1", "x", 1))
	b.post("k", payment("shop:1", "x", 2))
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	there := map[string]bool{}
	for _, f := range families {
		there[f.GetName()] = true
	}
	for _, name := range []string{
		"responses_total", "abandoned_claims", "takeovers_total", "replays_total", "fingerprint_conflicts_total", "duplicates_total",
		"claim_to_done_seconds", "unknown_outcomes_total",
	} {
		if !there["hookledger_payments_"+name] {
			t.Errorf("hookledger_payments_%s is not there", name)
		}
	}
}

func TestMetrics_CountAbandonedClaimsAndDuplicates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 100)
	abandon(t, b, "gone", payment("shop:1", "x", 1), "1 hour")
	abandon(t, b, "fresh", payment("shop:1", "x", 1), "1 second")
	abandon(t, b, "released", payment("shop:1", "x", 1), "1 hour")
	b.exec(`update idempotency_keys set claimed_at = '-infinity' where key = 'released'`)
	b.post("k1", payment("shop:1", "x", 5))
	b.post("k2", payment("shop:1", "x", 6))
	b.post("k3", payment("shop:1", "x", 5))
	b.post("k4", payment("shop:1", "x", 5))
	b.post("k4", payment("shop:1", "x", 5))
	if err := b.server.watch.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := counter(t, b.reg, "hookledger_payments_abandoned_claims", "", ""); n != 1 {
		t.Errorf("got %v abandoned claims, want 1", n)
	}
	if n := counter(t, b.reg, "hookledger_payments_duplicates_total", "client", "shop"); n != 2 {
		t.Errorf("got %v duplicates, want 2", n)
	}
	list, err := Duplicates(t.Context(), b.pool, time.Now().Add(-time.Hour), 10*time.Minute, 10)
	if err != nil || len(list) != 2 || list[0].Key != "k3" || list[0].OfKey != "k1" || list[1].Key != "k4" || list[1].OfKey != "k3" || list[0].Amount != 5 {
		t.Errorf("got %+v %v, want k3 of k1 and k4 of k3", list, err)
	}
}

func TestClean_RemovesWhatExpired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at)
		select 'shop', g::text, '\x00', 'processing', now(), now() + (g - 1200) * interval '1 second' from generate_series(1, 1500) g`)
	c := &cleaner{door: b.server.door}
	removed := 0
	for {
		n, err := c.batch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		removed += n
		if n == 0 {
			break
		}
	}
	// The server's own cleaning takes part.
	if left := query1[int](t, b.pool, `select count(*) from idempotency_keys`); left < 299 || left > 300 || removed > 1201 {
		t.Errorf("got %d left and %d removed, want the 300 that are good", left, removed)
	}
}

func TestPool_WorksWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := &bundle{tb: t, url: url, pool: openPool(t, url, 2)}
	cfg, err := pgxpool.ParseConfig(url + "&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), PoolConfig(cfg, 4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.startWith(testConfig(), pool)
	b.fund("shop:1", 10)
	for _, c := range []struct {
		key    string
		amount int64
		code   int
	}{{"k", 7, 201}, {"k", 7, 201}, {"k", 8, 422}, {"k2", 8, 402}} {
		if r := b.post(c.key, payment("shop:1", "x", c.amount)); r.code != c.code {
			t.Errorf("got %s, want %d", r, c.code)
		}
	}
	abandon(t, b, "old", payment("shop:1", "x", 1), "1 hour")
	if r := b.post("old", payment("shop:1", "x", 1)); r.code != 201 {
		t.Errorf("takeover: got %s, want 201", r)
	}
	if err := b.server.watch.count(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := (&cleaner{door: b.server.door}).batch(t.Context()); err != nil {
		t.Error(err)
	}
	b.lawful()
}
