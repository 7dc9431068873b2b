package gameday

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/alerts"
)

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// stack is the product as it runs, and what its balances must be.
type stack struct {
	t     *testing.T
	kafka *testkit.KafkaCluster
	pg    *testkit.PostgresCluster // nil: shared with other tests, not to be stopped

	dir, config, database string
	topic, group, public  string
	secret                string
	acmeAccount           string // the mapping of source acme: where its account is
	ingest, worker        *testkit.KillableProcess
	ingestDown, pgDown    bool
	workerDown, kafkaDown bool
	prom                  *alerts.Prometheus

	histories int
	// due is what each account must hold: "account currency" to minor units.
	due map[string]int64
}

func newStack(t *testing.T, kafka *testkit.KafkaCluster, pg *testkit.PostgresCluster) *stack {
	t.Helper()
	s := &stack{
		t: t, kafka: kafka, pg: pg, dir: t.TempDir(), secret: "whsec_gameday_0123456789abcdef",
		topic: testkit.UniqueName("payments"), group: testkit.UniqueName("books"), acmeAccount: "user_id", due: map[string]int64{},
	}
	if pg != nil {
		s.database = pg.URL("postgres")
	} else {
		s.database = testkit.PostgresURL(t)
	}
	s.config = filepath.Join(s.dir, "hookledger.yaml")
	listen, ingest, consume := testkit.FreeAddr(t), testkit.FreeAddr(t), testkit.FreeAddr(t)
	s.public = "http://" + listen
	s.write("secret", s.secret)
	s.write("hookledger.base", fmt.Sprintf(`
kafka: { brokers: [%s], topic: %s, group: %s, partitions: 3, replication: 1, durability: single }
database: { url: %q }
ingest: { listen: %q, admin: %q, ack_timeout: 2s }
consume: { admin: %q, check_interval: 1s }
sources:
  - { name: stripe, provider: stripe, account: data.object.metadata.account_id, secrets: [{ id: main, file: %q }] }
  - name: acme
    provider: generic
    signature: { header: X-Acme-Signature, algorithm: hmac-sha256, encoding: hex }
    secrets: [{ file: %q }]
    event: { id: id, type: type }
    postings: [{ type: paid, amount: amount, unit: minor, currency: currency, direction: credit, movement: payment_id }]
`, strings.Join(kafka.Brokers(), ", "), s.topic, s.group, s.database, listen, ingest, consume, filepath.Join(s.dir, "secret"), filepath.Join(s.dir, "secret")))
	s.configure("user_id")
	if err := os.Mkdir(filepath.Join(s.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testkit.Binary(t), filepath.Join(s.dir, "bin", "hookledger")); err != nil {
		t.Fatal(err)
	}
	s.must("hookledger migrate up")
	s.must("hookledger topics apply")
	start := func(role, admin string) *testkit.KillableProcess {
		return testkit.StartHookledger(t, testkit.ProcessOptions{
			Args: []string{role, "--config", s.config}, Dir: s.dir, ReadyURL: "http://" + admin + "/readyz", ReadyWithin: patience,
		})
	}
	s.ingest, s.worker = start("ingest", ingest), start("consume", consume)
	s.prom = alerts.Start(t, filepath.Join("..", "..", "..", "deploy", "alerts.yaml"), ingest, consume)
	return s
}

// configure writes the configuration with this account path for source acme.
func (s *stack) configure(account string) {
	s.t.Helper()
	base, err := os.ReadFile(filepath.Join(s.dir, "hookledger.base"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("hookledger.yaml", string(base)+"    account: "+account+"\n")
}

func (s *stack) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// say tells the story.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// send has the program play Stripe, and takes what was acknowledged into what is due. An
// event that is sent again with its seed is due once.
func (s *stack) send(seed, count int) {
	s.t.Helper()
	s.histories++
	path := filepath.Join(s.dir, fmt.Sprintf("history-%d.jsonl", s.histories))
	out, code := s.shell(fmt.Sprintf("hookledger send --source stripe --count %d --seed %d --no-retry --history %s", count, seed, path))
	if code > 1 { // 1: some were refused, as the story wants it
		s.t.Fatalf("send: exit code %d: %s", code, out)
	}
	f, err := os.Open(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l struct {
			EventID  string `json:"event_id"`
			Account  string `json:"account"`
			Currency string `json:"currency"`
			Amount   int64  `json:"amount"`
			HTTP     int    `json:"http"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			s.t.Fatal(err)
		}
		if l.HTTP/100 == 2 {
			s.owe(l.EventID, l.Account, l.Currency, l.Amount)
		}
	}
}

// seenPrefix begins the names in due of events that were added already.
const seenPrefix = "event "

// owe adds an event's money to what is due, once.
func (s *stack) owe(event, account, currency string, amount int64) {
	if _, again := s.due[seenPrefix+event]; again {
		return
	}
	s.due[seenPrefix+event] = 0
	s.due[account+" "+currency] += amount
}

// stripeEvent is the body of a payment that succeeded.
func stripeEvent(id, account string, amount int64) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":"payment_intent.succeeded","created":%d,"livemode":false,"data":{"object":{"id":"pi_%s","object":"payment_intent","amount_received":%d,"currency":"eur","status":"succeeded","metadata":{"account_id":%q}}}}`,
		id, time.Now().Unix(), id, amount, account)
}

func acmeEvent(id, account string, amount int64) string {
	return fmt.Sprintf(`{"id":%q,"type":"paid","payment_id":"p_%s","amount":%d,"currency":"EUR","user_id":%q}`, id, id, amount, account)
}

// deliver posts one body, signed as the provider would, and wants 2xx.
func (s *stack) deliver(source, body string) {
	s.t.Helper()
	text, header, prefix := body, "X-Acme-Signature", ""
	if source == "stripe" {
		now := fmt.Sprint(time.Now().Unix())
		text, header, prefix = now+"."+body, "Stripe-Signature", "t="+now+",v1="
	}
	mac := hmac.New(sha256.New, []byte(s.secret))
	mac.Write([]byte(text))
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.public+"/webhooks/"+source, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header, prefix+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		s.t.Fatalf("deliver to %s: got %s", source, res.Status)
	}
}

// settle waits until nothing is behind.
func (s *stack) settle() {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		out, code := s.shell("hookledger lag --json")
		var lag struct {
			Behind *int64 `json:"records_behind"`
		}
		if err := json.Unmarshal([]byte(out), &lag); err != nil || lag.Behind == nil || *lag.Behind != 0 || code != 0 {
			return fmt.Errorf("lag: exit code %d: %s", code, out)
		}
		return nil
	})
}

// sums compares balances, and the sums of entries, with what is due.
func (s *stack) sums() {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	for what, sql := range map[string]string{
		"balances":        `select account_id || ' ' || currency, balance from accounts`,
		"sums of entries": `select account_id || ' ' || currency, sum(amount)::bigint from ledger_entries group by 1`,
	} {
		got := map[string]int64{}
		rows, err := pool.Query(s.t.Context(), sql)
		if err != nil {
			s.t.Fatal(err)
		}
		for rows.Next() {
			var name string
			var amount int64
			if err := rows.Scan(&name, &amount); err != nil {
				s.t.Fatal(err)
			}
			got[name] = amount
		}
		if err := rows.Err(); err != nil {
			s.t.Fatal(err)
		}
		want := maps.Clone(s.due)
		maps.DeleteFunc(want, func(name string, _ int64) bool { return strings.HasPrefix(name, seenPrefix) })
		if !maps.Equal(got, want) {
			s.t.Errorf("%s: got %v, want %v", what, got, want)
			continue
		}
		say("   the %s of %d accounts are exactly what was acknowledged, added up by hand", what, len(want))
	}
}

// column asks the database for numbers or names.
func (s *stack) column(sql string, args ...any) []string {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), s.database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.Query(s.t.Context(), sql, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, one)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return slices.Clip(out)
}

// openIncidents waits for incidents of a kind that nobody acknowledged.
func (s *stack) openIncidents(kind string) []string {
	s.t.Helper()
	var ids []string
	testkit.Eventually(s.t, patience, func() error {
		if ids = s.column(`select incident_id::text from incidents where kind = $1 and acknowledged_at is null order by incident_id`, kind); len(ids) == 0 {
			return fmt.Errorf("no incident of kind %s", kind)
		}
		return nil
	})
	return ids
}
