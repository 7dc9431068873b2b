package cli

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/schema"
	"hookledger/schema/provider"
)

// shop is a ledger with one source, acme, of which records are applied by the core.
type shop struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
	next int64
	// records are all that was applied.
	records []ledger.Record
}

var shopPosition = ledger.Position{ClusterID: "c", Topic: "payments.events", TopicID: [16]byte{9}}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, url: testkit.LedgerURL(t)}
	pool, err := pgxpool.New(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.pool = pool
	if err := ledger.New(pool, nil, ledger.Options{}).WritePosition(t.Context(), ledger.PositionWrite{Position: shopPosition}); err != nil {
		t.Fatal(err)
	}
	return s
}

// acme is the configuration of acme whose account is at path.
func acme(path string) string {
	return `HOOKLEDGER_SOURCES=[{name: acme, provider: generic, signature: {header: X-S, algorithm: hmac-sha256, encoding: hex}, ` +
		`secrets: [{value: whsec_0123456789}], event: {id: id, type: type}, ` +
		`postings: [{type: paid, account: ` + path + `, amount: amount, unit: minor, currency: currency, direction: credit, movement: payment}]}]`
}

// env is the environment of commands with the rights of role and the account at path.
func (s *shop) env(role, path string) []string {
	return append(envAs(s.url, role), "HOOKLEDGER_KAFKA_DURABILITY=single", acme(path))
}

// apply applies bodies as the next records, by id, with the account at path.
func (s *shop) apply(path string, bodies ...string) {
	s.t.Helper()
	cfg, err := config.Parse("c.yaml", nil, []string{"HOOKLEDGER_KAFKA_DURABILITY=single", acme(path)})
	if err != nil {
		s.t.Fatal(err)
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		s.t.Fatal(err)
	}
	batch := ledger.Batch{Position: shopPosition, Start: s.next}
	for _, body := range bodies {
		id, _, _ := strings.Cut(strings.TrimPrefix(body, `{"id":"`), `"`)
		e := schema.Event{Source: "acme", ID: id, Type: "paid", ReceivedAt: time.Now(), Scheme: "hmac", KeyID: "k", ContentType: "application/json",
			Body: []byte(body), BodySHA256: sha256.Sum256([]byte(body))}
		batch.Records = append(batch.Records, ledger.Record{Offset: s.next, Timestamp: e.ReceivedAt, Key: e.RecordKey(), Value: e.Body, Headers: e.Headers()})
		s.next++
	}
	s.records = append(s.records, batch.Records...)
	if _, err := ledger.New(s.pool, set.Map, ledger.Options{}).Apply(s.t.Context(), batch); err != nil {
		s.t.Fatal(err)
	}
}

func payment(id, user string, amount int) string {
	return fmt.Sprintf(`{"id":"%s","type":"paid","user_id":"%s","amount":%d,"currency":"EUR","payment":"p_%s"}`, id, user, amount, id)
}

func (s *shop) balance(account string) int64 {
	s.t.Helper()
	return scanSQL[int64](s.t, s.url, `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account)
}

func TestQuarantine_FromTheListToTheLastTrace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const wrong, right = "user", "user_id"
	operator, reader := s.env("hookledger_operator", right), s.env("hookledger_reader", right)
	if r := hookledger(reader, "quarantine", "list"); r.code != app.ExitOK || r.stdout != "nothing waits for a decision\n" {
		t.Errorf("empty: got %+v", r)
	}
	s.apply(wrong, payment("e1", "alice", 100), payment("e2", "alice", 200), payment("e3", "bob", 300), payment("e4", "bob", 400))
	s.apply(right, payment("e5", "bob", 5), payment("e5", "bob", 6), `{"id":"e6","type":"paid","user_id":"\u001b]0;owned\u0007","amount":"x`+"\x1b\x07\xff"+`"}`)

	list := jsonOf(t, hookledger(reader, "quarantine", "list", "--json"), "quarantine-list")
	if r := hookledger(reader, "events", "list"); !strings.Contains(r.stdout, "waiting for a person: 5 in quarantine, 1 conflict:") {
		t.Errorf("events list does not tell what waits: %s", r.stdout)
	}
	held := list["quarantined"].([]any)
	first := held[0].(map[string]any)
	if len(held) != 5 || len(list["conflicts"].([]any)) != 1 || first["id"] != 1.0 || first["source"] != "acme" || first["event_id"] != "e1" ||
		first["partition"] != 0.0 || first["offset"] != 0.0 || first["reason"] != "missing_account" || first["quarantined_at"] == nil {
		t.Fatalf("got %v", list)
	}
	for _, args := range [][]string{{"list"}, {"show", "5"}, {"show", "c1"}, {"show", "1"}} {
		r := hookledger(reader, append([]string{"quarantine"}, args...)...)
		r.want(t, app.ExitOK)
		if strings.ContainsAny(r.stdout, "\x1b\x07") || !utf8.ValidString(r.stdout) {
			t.Errorf("%v steers the terminal: %q", args, r.stdout)
		}
	}
	show := jsonOf(t, hookledger(reader, "quarantine", "show", "1", "--json"), "quarantine-show")
	if show["body_text"] != payment("e1", "alice", 100) || len(show["headers"].([]any)) < 8 {
		t.Errorf("show: got %v", show)
	}
	hookledger(reader, "quarantine", "show", "99").want(t, app.ExitFailed, "quarantine list --all")
	hookledger(reader, "quarantine", "retry", "1").want(t, app.ExitFailed, "hookledger_operator")
	hookledger(operator, "quarantine", "retry").want(t, app.ExitUsage, "say which")
	hookledger(operator, "quarantine", "retry", "1", "--all").want(t, app.ExitUsage, "not both")
	hookledger(operator, "quarantine", "retry", "x").want(t, app.ExitUsage, "no number")
	hookledger(operator, "quarantine", "discard", "4").want(t, app.ExitUsage, "--reason is needed")

	// Before the fix all stay; a dry run after it shows the money and moves none.
	r := hookledger(s.env("hookledger_operator", wrong), "quarantine", "retry", "--with-reason", "missing_account", "--json")
	if v := jsonOf(t, r, "quarantine-retry"); r.code != app.ExitFailed || v["stay"] != 4.0 || v["resolved"] != 0.0 {
		t.Errorf("before the fix: got %v", v)
	}
	dry := jsonOf(t, hookledger(operator, "quarantine", "retry", "--source", "acme", "--reason", "missing_account", "--dry-run", "--json"), "quarantine-retry")
	if dry["resolved"] != 4.0 || fmt.Sprint(dry["moves"]) != "[map[amount:1000 currency:EUR]]" || s.balance("alice") != 0 {
		t.Errorf("dry run: got %v, balance %d", dry, s.balance("alice"))
	}
	hookledger(operator, "quarantine", "discard", "4", "--reason", "test payment", "--by", "carol").want(t, app.ExitOK)
	one := hookledger(operator, "quarantine", "retry", "1", "--by", "carol", "--note", "path mended")
	one.want(t, app.ExitOK)
	if !strings.Contains(one.stdout, "alice 1.00 EUR") {
		t.Errorf("got %q", one.stdout)
	}
	hookledger(operator, "quarantine", "retry", "--with-reason", "missing_account").want(t, app.ExitOK)
	again := jsonOf(t, hookledger(operator, "quarantine", "retry", "1", "2", "--json"), "quarantine-retry")
	if again["resolved_before"] != 2.0 || again["resolved"] != 0.0 {
		t.Errorf("again: got %v", again)
	}
	hookledger(operator, "quarantine", "discard", "c1", "--reason", "the first amount is right").want(t, app.ExitOK)
	if a, b := s.balance("alice"), s.balance("bob"); a != 300 || b != 305 {
		t.Errorf("balances: got %d and %d, want 300 and 305", a, b)
	}

	// Everything came with its trace, and a replay changes nothing.
	trace := `select string_agg(concat_ws(' ', id, resolution, coalesce(resolved_by, '-'), resolved_reason), '; ' order by id) from quarantined_events`
	got := scanSQL[string](t, s.url, trace)
	if want := "1 retried carol path mended; 2 retried " + app.Operator() + "; 3 retried " + app.Operator() + "; 4 discarded carol test payment; 5 -"; got != want {
		t.Errorf("trace: got %q, want %q", got, want)
	}
	execSQL(t, s.url, `update consumer_progress set next_offset = 0, from_offset = 0`)
	s.next = 0
	s.apply(right, payment("e1", "alice", 100), payment("e2", "alice", 200), payment("e3", "bob", 300), payment("e4", "bob", 400))
	if a, b := s.balance("alice"), s.balance("bob"); a != 300 || b != 305 {
		t.Errorf("balances after a replay: got %d and %d, want 300 and 305", a, b)
	}
	if now := scanSQL[string](t, s.url, trace); now != got {
		t.Errorf("trace after a replay: got %q, want %q", now, got)
	}
	all := jsonOf(t, hookledger(reader, "quarantine", "list", "--all", "--json"), "quarantine-list")
	if len(all["quarantined"].([]any)) != 5 || len(all["reasons"].([]any)) != 1 {
		t.Errorf("got %v", all)
	}
}

func TestQuarantineRetry_InBulk(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const n = 1201 // more than two pages
	var bodies []string
	for i := range n {
		bodies = append(bodies, payment(fmt.Sprintf("e%04d", i), "alice", 1))
	}
	s.apply("user", bodies...)
	operator := s.env("hookledger_operator", "user_id")
	for _, args := range [][]string{{"--dry-run"}, nil} {
		v := jsonOf(t, hookledger(operator, append([]string{"quarantine", "retry", "--all", "--json"}, args...)...), "quarantine-retry")
		if v["resolved"] != float64(n) || v["stay"] != 0.0 || len(v["results"].([]any)) != n {
			t.Fatalf("%v: got %v resolved, %v stay", args, v["resolved"], v["stay"])
		}
	}
	if got := s.balance("alice"); got != n {
		t.Errorf("balance: got %d, want %d", got, n)
	}
	if r := hookledger(operator, "quarantine", "discard", "--all", "--reason", "x"); r.stdout != "nothing is held that this selects\n" {
		t.Errorf("got %q", r.stdout)
	}
}
