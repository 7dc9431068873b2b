package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// system is the product as its users run it: one configuration file, and processes.
type system struct {
	tb    testing.TB
	kafka *testkit.KafkaCluster
	opts  options

	dir     string
	config  string
	topic   string
	group   string
	secrets map[string]string // by source

	ingest  []*role
	consume []*role

	history *history
	sampler *sampler
	started time.Time
}

// options are what differs between tests; zero values have defaults.
type options struct {
	// database is a connection URL, by default of an empty database.
	database string
	// brokers are what the configuration names, by default the cluster's.
	brokers     []string
	partitions  int
	replication int
	durability  string
	ackTimeout  time.Duration
	// sessionTimeout is how long the partitions of a killed worker stay idle.
	sessionTimeout time.Duration
	// logLevel is info by default. Debug says most, so most could slip out.
	logLevel string
	// unprepared leaves out `migrate up` and `topics apply`.
	unprepared bool
}

// role is a running process of the product.
type role struct {
	*testkit.KillableProcess
	name   string
	public string // http://… of the webhooks; empty for consume
	admin  string // http://… of health and metrics
}

// newSystem writes the configuration, and prepares schema and topic with the
// product's own commands.
func newSystem(tb testing.TB, kafka *testkit.KafkaCluster, opts options) *system {
	tb.Helper()
	if opts.database == "" {
		opts.database = testkit.PostgresURL(tb)
	}
	if opts.brokers == nil {
		opts.brokers = kafka.Brokers()
	}
	if opts.partitions == 0 {
		opts.partitions = 6
	}
	opts.replication = max(opts.replication, 1)
	if opts.durability == "" {
		opts.durability = "single"
	}
	if opts.logLevel == "" {
		opts.logLevel = "info"
	}
	if opts.ackTimeout == 0 {
		opts.ackTimeout = 5 * time.Second
	}
	if opts.sessionTimeout == 0 {
		opts.sessionTimeout = 5 * time.Second
	}
	s := &system{
		tb: tb, kafka: kafka, opts: opts, dir: tb.TempDir(), started: time.Now(),
		topic: testkit.UniqueName("payments"), group: testkit.UniqueName("hookledger"),
		secrets: map[string]string{
			// Canaries: they must be seen nowhere.
			sourceStripe: "whsec_" + testkit.UniqueName("stripe_canary"),
			sourceAcme:   testkit.UniqueName("acme_canary"),
		},
		history: &history{},
	}
	s.config = filepath.Join(s.dir, "hookledger.yaml")
	s.write(s.config, s.configuration())
	s.write(filepath.Join(s.dir, "acme.secret"), s.secrets[sourceAcme]+"\n")
	if !opts.unprepared {
		s.mustRun("migrate", "up")
		s.mustRun("topics", "apply")
	}
	return s
}

func (s *system) write(path, content string) {
	s.tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *system) configuration() string {
	return fmt.Sprintf(`
kafka:
  brokers: [%s]
  topic: %s
  group: %s
  partitions: %d
  replication: %d
  durability: %s
  retention: 24h
database: { url: %q }
ingest: { ack_timeout: %s }
consume: { session_timeout: %s, check_interval: 1s }
log: { level: %s, format: json }
sources:
  - name: stripe
    provider: stripe
    secrets: [{ env: STRIPE_WEBHOOK_SECRET }]
    account: data.object.metadata.account_id
  - name: acme
    provider: generic
    signature: { header: X-Acme-Signature, algorithm: hmac-sha256, encoding: hex, prefix: "sha256=" }
    secrets: [{ file: %q }]
    account: user_id
    event: { id: id, type: type, time: created_at }
    postings:
      - { type: payment.succeeded, amount: amount, unit: minor, currency: currency, direction: credit, movement: payment_id }
      - { type: payout.paid, amount: amount, unit: major, currency: currency, direction: debit, movement: payout_id }
`, strings.Join(s.opts.brokers, ", "), s.topic, s.group, s.opts.partitions, s.opts.replication, s.opts.durability,
		s.opts.database, s.opts.ackTimeout, s.opts.sessionTimeout, s.opts.logLevel, filepath.Join(s.dir, "acme.secret"))
}

func (s *system) env(more ...string) []string {
	return append([]string{"STRIPE_WEBHOOK_SECRET=" + s.secrets[sourceStripe]}, more...)
}

// run runs a command of the product to its end.
func (s *system) run(args ...string) (stdout, stderr string, code int) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testkit.Binary(s.tb), append([]string{"--config", s.config}, args...)...)
	cmd.Dir = s.dir
	// A role that should have refused must not take a port of someone else.
	cmd.Env = append(os.Environ(), s.env("HOOKLEDGER_INGEST_LISTEN=127.0.0.1:0", "HOOKLEDGER_INGEST_ADMIN=127.0.0.1:0", "HOOKLEDGER_CONSUME_ADMIN=127.0.0.1:0")...)
	if args[0] == "migrate" { // never through a pooler
		cmd.Env = append(cmd.Env, "HOOKLEDGER_DATABASE_URL="+testkit.DirectURL(s.tb, s.opts.database))
	}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.tb.Fatalf("run hookledger %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// mustRun runs a command that has to succeed.
func (s *system) mustRun(args ...string) string {
	s.tb.Helper()
	stdout, stderr, code := s.run(args...)
	if code != 0 {
		s.tb.Fatalf("hookledger %s: got exit code %d, want 0; it wrote:\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// startIngest starts one more receiver and waits until it is ready.
func (s *system) startIngest(env ...string) *role {
	s.tb.Helper()
	public, admin := testkit.FreeAddr(s.tb), testkit.FreeAddr(s.tb)
	r := s.start(fmt.Sprintf("ingest %d", len(s.ingest)+1), "ingest", admin,
		append(env, "HOOKLEDGER_INGEST_LISTEN="+public, "HOOKLEDGER_INGEST_ADMIN="+admin)...)
	r.public = "http://" + public
	s.ingest = append(s.ingest, r)
	return r
}

// startConsume starts one more worker and waits until it is ready.
func (s *system) startConsume(env ...string) *role {
	s.tb.Helper()
	admin := testkit.FreeAddr(s.tb)
	r := s.start(fmt.Sprintf("consume %d", len(s.consume)+1), "consume", admin, append(env, "HOOKLEDGER_CONSUME_ADMIN="+admin)...)
	s.consume = append(s.consume, r)
	return r
}

func (s *system) start(name, command, admin string, env ...string) *role {
	s.tb.Helper()
	config := s.config // as it is now
	return &role{
		name:  name,
		admin: "http://" + admin,
		KillableProcess: testkit.StartHookledger(s.tb, testkit.ProcessOptions{
			Args: []string{"--config", config, command}, Env: s.env(env...), Dir: s.dir, ReadyURL: "http://" + admin + "/readyz",
		}),
	}
}

// targets are the receivers that callers post to.
func (s *system) targets() []string {
	var all []string
	for _, r := range s.ingest {
		all = append(all, r.public)
	}
	return all
}

// stopConsume ends every worker in good order.
func (s *system) stopConsume() {
	s.tb.Helper()
	for _, r := range s.consume {
		r.mustStop(s.tb)
	}
}

// mustStop ends the process by SIGTERM, and wants exit code 0 soon.
func (r *role) mustStop(tb testing.TB) {
	tb.Helper()
	began := time.Now()
	if code := r.Stop(time.Minute); code != 0 {
		tb.Errorf("%s after SIGTERM: got exit code %d, want 0", r.name, code)
	}
	tb.Logf("%s ended %s after SIGTERM", r.name, time.Since(began).Round(time.Millisecond))
}

// get asks the process's admin listener.
func (r *role) get(path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.admin+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// wantStatus is for Eventually: the status of a path of the admin listener.
func (r *role) wantStatus(path string, want int) func() error {
	return func() error {
		got, body, err := r.get(path)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s of %s: got %d, want %d: %s", path, r.name, got, want, body)
		}
		return nil
	}
}

// metric sums the samples of a metric whose labels contain all of the given texts.
func (r *role) metric(tb testing.TB, name string, labels ...string) float64 {
	tb.Helper()
	_, body, err := r.get("/metrics")
	if err != nil {
		tb.Fatalf("read metrics of %s: %v", r.name, err)
	}
	var sum float64
	found := false
	for line := range strings.Lines(body) {
		head, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		metric, rest, _ := strings.Cut(head, "{")
		if !ok || metric != name {
			continue
		}
		found = true
		matches := true
		for _, l := range labels {
			matches = matches && strings.Contains(rest, l)
		}
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil && matches {
			sum += v
		}
	}
	if !found {
		tb.Errorf("metrics of %s: %s is missing", r.name, name)
	}
	return sum
}

// verify runs `hookledger verify --json` and wants all its checks to hold.
func (s *system) verify() {
	s.tb.Helper()
	stdout, stderr, code := s.run("verify", "--json")
	var report struct {
		OK          *bool `json:"ok"`
		Unaccounted *int  `json:"unaccounted_events"`
		Checks      []struct {
			Name  string          `json:"name"`
			OK    bool            `json:"ok"`
			Found json.RawMessage `json:"found"`
		} `json:"checks"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.OK == nil || report.Unaccounted == nil || len(report.Checks) == 0 {
		s.tb.Errorf("verify --json: got exit code %d and unreadable %s%s (%v)", code, stdout, stderr, err)
		return
	}
	if code != 0 || !*report.OK || *report.Unaccounted != 0 {
		s.tb.Errorf("verify --json: got exit code %d, want 0 and ok; it wrote:\n%s%s", code, stdout, stderr)
	}
}
