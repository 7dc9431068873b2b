package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/testkit"
)

// The users of ACLS.md. Their password is their name and this.
var users = []string{"hookledger-setup", "hookledger-ingest", "hookledger-consume", "hookledger-operator", "hookledger-payments", "analyst"}

const passwordSuffix = "-canary"

const (
	topic = "payments.events"
	group = "hookledger"
)

// secured is the product on a broker with TLS, SASL and ACLs and a Postgres with TLS.
type secured struct {
	t      *testing.T
	kafka  *testkit.SecureKafka
	pg     *testkit.PostgresCluster
	dir    string
	config string
	listen string
	// payments is the address of the door for payments.
	payments string
}

// TestRights_OfThePageAreEnoughAndNoMore runs the commands of ACLS.md as they stand
// there, then each command of the product as its user, then what no user may do.
func TestRights_OfThePageAreEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	page := read(t, "ACLS.md")
	for _, command := range commands(t, page, "kafka-acls.sh") {
		if _, err := s.kafka.Tool(t.Context(), testkit.ACLCommand, command...); err != nil {
			t.Fatal(err)
		}
	}
	blocks := fenced(page, "sql")
	if len(blocks) != 2 {
		t.Fatalf("ACLS.md has %d blocks of SQL, want before and after the migration", len(blocks))
	}
	s.sql("postgres", blocks[0])
	s.sql("postgres", `alter role "hookledger-setup" password 'hookledger-setup-canary'`)

	s.mustRun("hookledger-setup", "migrate", "up")
	s.sql("hookledger", blocks[1])
	for _, u := range users {
		if u != "hookledger-ingest" { // has no database
			s.sql("hookledger", fmt.Sprintf(`alter role %q password '%s'`, u, u+passwordSuffix))
		}
	}
	s.mustRun("hookledger-setup", "topics", "apply")
	ingest, consume := s.start("hookledger-ingest", "ingest"), s.start("hookledger-consume", "consume")
	s.mustRun("hookledger-ingest", "send", "--source", "stripe", "--count", "50", "--duplicates", "0.2", "--seed", "3")
	testkit.Eventually(t, time.Minute, func() error {
		if n := s.count("hookledger-operator", "select count(*) from ledger_entries"); n != 50 {
			return fmt.Errorf("got %d entries, want 50", n)
		}
		return nil
	})
	if n := s.count("hookledger-operator", "select count(*) from pg_stat_ssl s join pg_stat_activity a using (pid) where a.datname = 'hookledger' and not s.ssl"); n != 0 {
		t.Errorf("%d connections to Postgres are not encrypted", n)
	}
	s.operate()
	s.pay()
	if code := consume.Stop(time.Minute); code != 0 {
		t.Errorf("consume after SIGTERM: got exit code %d, want 0", code)
	}
	s.mustRun("hookledger-operator", "replay", "plan", "--out", "whole.plan")
	s.mustRun("hookledger-operator", "replay", "run", "whole.plan", "--reason", "test of rights")
	s.mustRun("hookledger-operator", "replay", "reset", "--to-earliest", "--reason", "test of rights")
	consume.Restart()
	consume.Stop(time.Minute)
	if code := ingest.Stop(time.Minute); code != 0 {
		t.Errorf("ingest after SIGTERM: got exit code %d, want 0", code)
	}
	for _, out := range []string{ingest.Output(), consume.Output()} {
		if strings.Contains(out, passwordSuffix) {
			t.Errorf("a password is in the log:\n%s", out)
		}
	}
	s.wantKafkaRights()
	s.wantPostgresRights()
}

// operate does an operator's work, reading and writing.
func (s *secured) operate() {
	s.t.Helper()
	const operator = "hookledger-operator"
	for _, args := range [][]string{
		{"verify"}, {"lag"}, {"accounts", "list"}, {"accounts", "duplicates"}, {"events", "list"}, {"incidents", "list"}, {"quarantine", "list"}, {"replay", "list"},
		{"doctor", "generations"},
	} {
		s.mustRun(operator, args...)
	}
	conn := s.connect("", "hookledger")
	defer func() { _ = conn.Close(context.Background()) }()
	var event string
	if err := conn.QueryRow(s.t.Context(), "select event_id from processed_events order by event_id limit 1").Scan(&event); err != nil {
		s.t.Fatal(err)
	}
	s.mustRun(operator, "events", "show", event)
	s.mustRun(operator, "events", "get", event, "--body")
	s.mustRun(operator, "events", "amend", event, "--reverse", "--reason", "test of rights")
	// What waits for a person, as a worker writes it.
	s.sql("hookledger", `insert into incidents (raised_at, severity, kind) values (now(), 'info', 'test')`)
	s.mustRun(operator, "incidents", "ack", fmt.Sprint(s.count(operator, "select max(incident_id) from incidents")), "--reason", "test of rights")
	plan, events := filepath.Join(s.dir, "all.plan"), filepath.Join(s.dir, "events.jsonl")
	s.mustRun(operator, "replay", "plan", "--out", plan)
	s.mustRun(operator, "replay", "run", plan, "--reason", "test of rights")
	if err := os.WriteFile(events, []byte(`{"id":"evt_import","type":"plan.created","created":1764410400,"livemode":true}`), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.mustRun(operator, "events", "import", events, "--source", "stripe", "--dry-run")
	s.mustRun("hookledger-ingest", "events", "import", events, "--source", "stripe", "--reason", "test of rights")
	s.mustRun(operator, "verify")
}

// pay has the door for payments work, and answer.
func (s *secured) pay() {
	s.t.Helper()
	door := s.start("hookledger-payments", "payments")
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.payments+"/v1/payments",
		strings.NewReader(`{"from":"nobody","to":"user_1","amount":1,"currency":"EUR","reference":"r"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Authorization": {"Bearer " + shopToken}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusPaymentRequired {
		s.t.Errorf("a payment from an empty account: got %d, want 402", res.StatusCode)
	}
	if code := door.Stop(time.Minute); code != 0 {
		s.t.Errorf("payments after SIGTERM: got exit code %d, want 0", code)
	}
}

// wantKafkaRights tries everything as everyone.
func (s *secured) wantKafkaRights() {
	s.t.Helper()
	const setup, ingest, consume, operator, analyst = "hookledger-setup", "hookledger-ingest", "hookledger-consume", "hookledger-operator", "analyst"
	for _, act := range []struct {
		name    string
		do      func(context.Context, *kgo.Client) error
		allowed string
	}{
		{"write a record", func(ctx context.Context, cl *kgo.Client) error {
			return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("{}")}).FirstErr()
		}, ingest},
		{"read a record", func(ctx context.Context, cl *kgo.Client) error {
			cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}})
			fetches := cl.PollFetches(ctx)
			return fetches.Err0()
		}, consume + operator + analyst},
		{"commit for the group", func(ctx context.Context, cl *kgo.Client) error { return commit(ctx, cl, group) }, consume + operator},
		{"commit for a group of analysts", func(ctx context.Context, cl *kgo.Client) error { return commit(ctx, cl, "analytics-1") }, analyst},
		{"alter the topic", func(ctx context.Context, cl *kgo.Client) error {
			return respond(kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("86400000")}}, topic))
		}, setup},
		{"add partitions", func(ctx context.Context, cl *kgo.Client) error {
			rs, err := kadm.NewClient(cl).ValidateUpdatePartitions(ctx, 9, topic)
			if err != nil {
				return err
			}
			return rs.Error()
		}, setup},
		{"delete the topic", func(ctx context.Context, cl *kgo.Client) error {
			_, err := kadm.NewClient(cl).DeleteTopic(ctx, topic)
			return err
		}, ""},
		{"delete records", func(ctx context.Context, cl *kgo.Client) error {
			var offsets kadm.Offsets
			offsets.AddOffset(topic, 0, 1, -1)
			rs, err := kadm.NewClient(cl).DeleteRecords(ctx, offsets)
			if err != nil {
				return err
			}
			return rs.Error()
		}, ""},
		{"delete the group", func(ctx context.Context, cl *kgo.Client) error {
			_, err := kadm.NewClient(cl).DeleteGroup(ctx, group)
			return err
		}, ""},
		{"make another topic", func(ctx context.Context, cl *kgo.Client) error {
			_, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "other")
			return err
		}, ""},
		{"give rights", func(ctx context.Context, cl *kgo.Client) error {
			b := kadm.NewACLs().Allow("User:analyst").AllowHosts("*").Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite)
			rs, err := kadm.NewClient(cl).CreateACLs(ctx, b)
			if err != nil {
				return err
			}
			for _, r := range rs {
				err = errors.Join(err, r.Err)
			}
			return err
		}, ""},
	} {
		for _, user := range users {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
			cl := s.client(user)
			err := act.do(ctx, cl)
			cl.Close()
			cancel()
			switch allowed := strings.Contains(act.allowed, user); {
			case allowed && err != nil:
				s.t.Errorf("%s may not %s: %v", user, act.name, err)
			case !allowed && !refusedByACL(err):
				s.t.Errorf("%s tries to %s: got %v, want a refusal", user, act.name, err)
			}
		}
	}
}

// refusedByACL tells a refusal from other errors. Who has no right at all on the topic is
// told that there is none.
func refusedByACL(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

func commit(ctx context.Context, cl *kgo.Client, group string) error {
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, 0, 1, -1)
	rs, err := kadm.NewClient(cl).CommitOffsets(ctx, group, offsets)
	if err != nil {
		return err
	}
	return rs.Error()
}

func respond(rs kadm.AlterConfigsResponses, err error) error {
	if err != nil {
		return err
	}
	r, err := rs.On(topic, nil)
	if err != nil {
		return err
	}
	return r.Err
}

// wantPostgresRights: entries are added and never changed, by anyone.
func (s *secured) wantPostgresRights() {
	s.t.Helper()
	for _, user := range []string{"hookledger-consume", "hookledger-operator", "hookledger-payments", "analyst"} {
		for _, sql := range []string{
			"update ledger_entries set amount = 1", "delete from ledger_entries", "truncate ledger_entries",
			"drop table ledger_entries", "alter table ledger_entries disable trigger all", "create table mine (x int)",
		} {
			conn := s.connect(user, "hookledger")
			_, err := conn.Exec(s.t.Context(), sql)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) || answer.Code != "42501" {
				s.t.Errorf("%s: %s: got %v, want a refusal", user, sql, err)
			}
			_ = conn.Close(s.t.Context())
		}
	}
	conn := s.connect("analyst", "hookledger")
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(s.t.Context(), "insert into incidents (raised_at, severity, kind) values (now(), 'info', 'x')"); err == nil {
		s.t.Error("an analyst wrote an incident")
	}
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{t: t, kafka: testkit.NewSecureKafka(t), pg: testkit.NewPostgres(t), dir: t.TempDir()}
	ca := s.kafka.Authority
	s.pg.EnableTLS(ca, "127.0.0.1")
	for _, u := range users {
		s.kafka.AddUser(u, u+passwordSuffix)
		s.write(u, u+passwordSuffix+"\n")
	}
	public := ca.Issue("public", time.Hour, "127.0.0.1")
	s.listen, s.payments = testkit.FreeAddr(t), testkit.FreeAddr(t)
	s.config = filepath.Join(s.dir, "hookledger.yaml")
	s.write("hookledger.yaml", fmt.Sprintf(`
kafka:
  brokers: [%q]
  tls: { enabled: true, ca_file: %q }
  sasl: { mechanism: SCRAM-SHA-512 }
  topic: %s
  group: %s
  partitions: 3
  replication: 1
  durability: single
ingest: { listen: %q, tls: { cert_file: %q, key_file: %q } }
payments: { listen: %q, durability: single, tokens: [{ client: shop, value: %s, from: [nobody] }] }
sources:
  - { name: stripe, provider: stripe, account: data.object.metadata.account_id, secrets: [{ value: whsec_rights_0123456789 }] }
`, s.kafka.SASL, ca.File, topic, group, s.listen, public.CertFile, public.KeyFile, s.payments, shopToken))
	return s
}

func (s *secured) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// env is what differs between users.
func (s *secured) env(user string) []string {
	env := []string{
		"SSL_CERT_FILE=" + s.kafka.Authority.File, // for send, the one client of the public address
		"HOOKLEDGER_KAFKA_SASL_USERNAME=" + user,
		"HOOKLEDGER_KAFKA_SASL_PASSWORD_FILE=" + filepath.Join(s.dir, user),
	}
	if user != "hookledger-ingest" {
		env = append(env, "HOOKLEDGER_DATABASE_URL="+s.url(user, "hookledger"))
	}
	return env
}

func (s *secured) url(user, database string) string {
	u, err := url.Parse(s.pg.TLSURL(s.kafka.Authority, "127.0.0.1", "verify-full", database))
	if err != nil {
		s.t.Fatal(err)
	}
	if user != "" {
		u.User = url.UserPassword(user, user+passwordSuffix)
	}
	return u.String()
}

func (s *secured) mustRun(user string, args ...string) {
	s.t.Helper()
	program := testkit.Binary(s.t) // which takes its time to build
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--config", s.config}, args...)...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env(user)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: hookledger %s: %v\n%s", user, strings.Join(args, " "), err, out.String())
	}
}

func (s *secured) start(user, role string) *testkit.KillableProcess {
	s.t.Helper()
	admin := testkit.FreeAddr(s.t)
	return testkit.StartHookledger(s.t, testkit.ProcessOptions{
		Args: []string{"--config", s.config, role}, Dir: s.dir, ReadyURL: "http://" + admin + "/readyz",
		Env: append(s.env(user), "HOOKLEDGER_"+strings.ToUpper(role)+"_ADMIN="+admin),
	})
}

// client connects to Kafka as user, with the options of our roles.
func (s *secured) client(user string) *kgo.Client {
	s.t.Helper()
	cfg := broker.DefaultConfig()
	cfg.Brokers = []string{s.kafka.SASL}
	cfg.TLS = broker.TLS{Enabled: true, CAFile: s.kafka.Authority.File}
	cfg.SASL = broker.SASL{Mechanism: broker.ScramSHA256, Username: user, Password: broker.Credential{File: filepath.Join(s.dir, user)}}
	cl, err := kgo.NewClient(append(broker.Options(cfg, zerolog.Nop()), kgo.RecordRetries(3))...)
	if err != nil {
		s.t.Fatal(err)
	}
	return cl
}

func (s *secured) connect(user, database string) *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.url(user, database))
	if err != nil {
		s.t.Fatalf("connect to Postgres as %q: %v", user, err)
	}
	return conn
}

// sql runs statements one by one as an administrator.
func (s *secured) sql(database, text string) {
	s.t.Helper()
	conn := s.connect("", database)
	defer func() { _ = conn.Close(context.Background()) }()
	for statement := range strings.SplitSeq(text, ";") {
		if _, err := conn.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s *secured) count(user, sql string) (n int) {
	s.t.Helper()
	conn := s.connect(user, "hookledger")
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Fatalf("%s: %s: %v", user, sql, err)
	}
	return n
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fenced returns the blocks of a language in a page.
func fenced(page, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// commands returns the arguments of each call of a tool in a page, without those that
// say where the cluster is.
func commands(t *testing.T, page, tool string) [][]string {
	t.Helper()
	var all [][]string
	for _, block := range fenced(page, "sh") {
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != tool {
				continue
			}
			var args []string
			for i := 1; i < len(words); i++ {
				if words[i] == "--bootstrap-server" || words[i] == "--command-config" {
					i++
					continue
				}
				args = append(args, words[i])
			}
			all = append(all, args)
		}
	}
	if len(all) == 0 {
		t.Fatalf("the page has no call of %s", tool)
	}
	return all
}
