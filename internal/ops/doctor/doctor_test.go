package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/config"
	"hookledger/internal/ops/doctor"
	"hookledger/internal/testkit"
	"hookledger/internal/testkit/authority"
	"hookledger/migrations"
)

// patient is a stack with nothing wrong but what a test does to it.
type patient struct {
	t       *testing.T
	kafka   *kfake.Cluster
	admin   *kadm.Client
	url     string // of the database
	dir     string
	secrets string // of the one source, as YAML
	more    string // further configuration
	brokers []string
	// durability is empty for the default.
	durability string
	now        func() time.Time
}

const topic = "payments.events"

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{t: t, kafka: testkit.Kfake(t, kfake.NumBrokers(3)), url: testkit.LedgerURL(t), dir: t.TempDir()}
	p.brokers = p.kafka.ListenAddrs()
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	p.admin = kadm.NewClient(cl)
	p.secret("whsec_good_0123456789abcdef")
	return p
}

func (p *patient) secret(text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.secrets = fmt.Sprintf("{ id: main, file: %q }", path)
}

func (p *patient) config() *config.Loaded {
	p.t.Helper()
	l, err := config.Parse("c.yaml", fmt.Appendf(nil, `
kafka: { brokers: [%s], topic: %s, partitions: 3, retention: 48h, %s }
database: { url: %q }
dedupe: { keep: 168h }
sources: [{ name: stripe, provider: stripe, account: a, secrets: [%s] }]
%s`, strings.Join(p.brokers, ","), topic, p.durability, p.url, p.secrets, p.more), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// apply makes the topic as it should be.
func (p *patient) apply() {
	p.t.Helper()
	cfg := p.config()
	cl, err := broker.Open(cfg.Kafka, zerolog.Nop())
	if err != nil {
		p.t.Fatal(err)
	}
	defer cl.Close()
	if _, err := broker.ApplyTopic(p.t.Context(), cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes, false); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) examine() doctor.Report {
	p.t.Helper()
	cfg := p.config()
	d := doctor.Deps{Config: cfg, Now: p.now, Log: zerolog.Nop()}
	if d.Kafka, d.KafkaError = broker.Open(cfg.Kafka, d.Log); d.Kafka != nil {
		defer d.Kafka.Close()
	}
	pool, err := pgxpool.New(p.t.Context(), cfg.Database.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	defer pool.Close()
	d.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, cfg.Database.URL) }
	d.CheckSchema = func(ctx context.Context) error { return migrations.Check(ctx, pool) }
	r := doctor.Examine(p.t.Context(), d)
	for _, f := range r.Findings {
		if f.Check == "" || f.Found == "" || (f.Verdict != doctor.OK) != (f.Reason != "" && f.Repair != "") {
			p.t.Errorf("a finding lacks words: %+v", f)
		}
	}
	return r
}

// want wants a finding of a check with a verdict, and words in it.
func want(t *testing.T, r doctor.Report, check string, v doctor.Verdict, words string) {
	t.Helper()
	var have []string
	for _, f := range r.Findings {
		if f.Check == check && f.Verdict == v && strings.Contains(f.Found+f.Reason+f.Repair, words) {
			return
		}
		if f.Check == check {
			have = append(have, fmt.Sprintf("%s: %s (%s)", f.Verdict, f.Found, f.Repair))
		}
	}
	t.Errorf("%s: got %q, want %s with %q", check, have, v, words)
}

func (p *patient) sql(statements ...string) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := conn.Exec(p.t.Context(), s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (p *patient) alter(name, value string) {
	p.t.Helper()
	rs, err := p.admin.AlterTopicConfigs(p.t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
	if err == nil {
		_, err = rs.On(topic, nil)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestExamine_AHealthyTopicIsFine(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	r := p.examine()
	for _, check := range []string{
		"brokers", "topic_replication", "topic_min_insync", "topic_unclean_election", "topic_cleanup", "topic_record_bytes", "topic_retention", "dedupe_keep",
		"topic_partitions", "partitions_in_sync", "group_unread", "group_settings", "identity", "postgres_version", "postgres_primary",
		"postgres_synchronous_commit", "clock", "database_pooler", "schema", "secrets of stripe",
	} {
		want(t, r, check, doctor.OK, "")
	}
	// The cluster of tests is a throwaway one of a superuser, which doctor does not like.
	want(t, r, "postgres_disk", doctor.Problem, "fsync off")
	want(t, r, "postgres_standby", doctor.Warning, "synchronous_standby_names")
	want(t, r, "role_rights", doctor.Warning, "as a superuser")
	if r.OK || r.Problems != 1 || r.Warnings != 2 {
		t.Errorf("got %d problems and %d warnings, want 1 and 2", r.Problems, r.Warnings)
	}
	if !slices.IsSortedFunc(r.Findings, func(a, b doctor.Finding) int {
		order := "problem warning note ok"
		return strings.Index(order, string(a.Verdict)) - strings.Index(order, string(b.Verdict))
	}) {
		t.Error("the worst is not first")
	}
}

// With durability: single, what that gives up is a note, and nothing fails for it.
func TestExamine_SingleGivesUpByChoice(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.durability = "replication: 1, durability: single"
	p.apply()
	r := p.examine()
	if !r.OK {
		t.Errorf("got %+v, want notes alone", r.Findings)
	}
	for _, check := range []string{"topic_replication", "topic_min_insync", "postgres_disk", "postgres_standby", "role_rights"} {
		want(t, r, check, doctor.Note, "")
	}
	want(t, r, "topic_min_insync", doctor.Note, "set kafka.durability: replicated first")
}

func TestExamine_FindsWhatIsWrongWithTheTopic(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	want(t, p.examine(), "topic", doctor.Problem, "hookledger topics apply")
	p.apply()
	for name, value := range map[string]string{
		"min.insync.replicas": "1", "unclean.leader.election.enable": "true", "cleanup.policy": "compact", "max.message.bytes": "1000012",
		"retention.ms": "3600000", "retention.bytes": "1000000",
	} {
		p.alter(name, value)
	}
	if _, err := p.admin.UpdatePartitions(t.Context(), 5, topic); err != nil {
		t.Fatal(err)
	}
	r := p.examine()
	want(t, r, "topic_min_insync", doctor.Problem, "min.insync.replicas 1")
	want(t, r, "topic_unclean_election", doctor.Problem, "hookledger topics apply")
	want(t, r, "topic_cleanup", doctor.Problem, "compact")
	want(t, r, "topic_record_bytes", doctor.Problem, "1114112")
	want(t, r, "topic_retention", doctor.Warning, "1h0m0s")
	want(t, r, "topic_retention_bytes", doctor.Warning, "retention.bytes 1000000")
	want(t, r, "topic_partitions", doctor.Warning, "5 partitions, kafka.partitions is 3")

	p.alter("min.insync.replicas", "3")
	p.alter("retention.ms", "604800000")
	r = p.examine()
	want(t, r, "topic_min_insync", doctor.Warning, "the loss of one broker stops all webhooks")
	want(t, r, "dedupe_keep", doctor.Note, "192h")
}

func TestExamine_FindsBrokersAway(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	nobody := testkit.FreeAddr(t)
	p.brokers = []string{p.brokers[0], nobody}
	want(t, p.examine(), "brokers", doctor.Warning, nobody)
	p.brokers = p.brokers[:1]
	want(t, p.examine(), "broker_addresses", doctor.Warning, "names one address")
	p.brokers = []string{nobody}
	want(t, p.examine(), "brokers", doctor.Problem, nobody)
}

func TestExamine_FindsAGroupThatCannotWork(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	p.more = "consume: { session_timeout: 29m }"
	want(t, p.examine(), "group_settings", doctor.Problem, "29m0s")
	p.more = ""

	// Three records of 30 h ago, with a retention of 48 h; one of them is read.
	old := time.Now().Add(-30 * time.Hour)
	for range 3 {
		if err := p.client().ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: 1, Value: []byte("x"), Timestamp: old}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	p.commit(1, 1)
	want(t, p.examine(), "group_unread", doctor.Warning, "partitions 1")
	p.commit(1, 3)
	want(t, p.examine(), "group_unread", doctor.OK, "")
	var before kadm.Offsets
	before.AddOffset(topic, 1, 3, -1)
	if _, err := p.admin.DeleteRecords(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	p.commit(1, 1)
	want(t, p.examine(), "group_unread", doctor.Problem, "removed before they were read")
}

func (p *patient) client() *kgo.Client {
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(cl.Close)
	return cl
}

func (p *patient) commit(partition int32, at int64) {
	p.t.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, partition, at, -1)
	if err := p.admin.CommitAllOffsets(p.t.Context(), "hookledger", offsets); err != nil {
		p.t.Fatal(err)
	}
}

func TestExamine_FindsWhatIsWrongWithPostgres(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	whole := p.url

	p.url = whole + "&synchronous_commit=off"
	want(t, p.examine(), "postgres_synchronous_commit", doctor.Warning, "synchronous_commit off")
	p.url = whole
	p.now = func() time.Time { return time.Now().Add(10 * time.Second) }
	want(t, p.examine(), "clock", doctor.Warning, "NTP")
	p.now = nil

	p.sql(`insert into consumer_progress (cluster_id, topic, topic_id, partition, from_offset, next_offset, leader_epoch, updated_at)
		values ('another', '` + topic + `', gen_random_uuid(), 0, 0, 0, 0, now())`)
	want(t, p.examine(), "identity", doctor.Problem, "another Kafka cluster")
	id, err := p.admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	md, err := p.admin.Metadata(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	p.sql("update consumer_progress set cluster_id = '" + md.Cluster + "'")
	want(t, p.examine(), "identity", doctor.Problem, "deleted and made again")
	p.sql(fmt.Sprintf("update consumer_progress set topic_id = '%x'", [16]byte(id[topic].ID)))
	want(t, p.examine(), "identity", doctor.OK, "belongs to this topic")

	reader, worker := testkit.UniqueName("reader"), testkit.UniqueName("worker")
	p.sql("create role "+reader+" login password 'canary' in role hookledger_reader", "create role "+worker+" login password 'canary' in role hookledger_worker")
	defer func() {
		p.url = whole
		p.sql("drop role "+reader, "drop role "+worker)
	}()
	as := func(user string) {
		_, host, _ := strings.Cut(whole, "@")
		p.url = "postgres://" + user + ":canary@" + host
	}
	as(reader)
	want(t, p.examine(), "role_rights", doctor.Warning, "insert ledger_entries")
	as(worker)
	want(t, p.examine(), "role_rights", doctor.OK, "add entries and not change them")
	p.url = strings.Replace(p.url, "canary", "wrong", 1)
	r := p.examine()
	want(t, r, "database", doctor.Problem, "correct database.url")
	for _, f := range r.Findings {
		if strings.Contains(fmt.Sprint(f), "wrong@") || strings.Contains(fmt.Sprint(f), ":wrong") {
			t.Errorf("a finding shows a password: %+v", f)
		}
	}
	p.url = testkit.PostgresURL(t)
	want(t, p.examine(), "schema", doctor.Problem, "hookledger migrate up")
}

func TestExamine_FindsSecretsThatLookWrongOrEnd(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	const check = "secrets of stripe"
	p.secret(" whsec_canary_0123456789abcdef ")
	want(t, p.examine(), check, doctor.Warning, "white space")
	p.secret("canary_without_prefix_0123456789")
	want(t, p.examine(), check, doctor.Warning, "whsec_")
	p.secret("0123456789abcdef0123456789abcde")
	want(t, p.examine(), check, doctor.Warning, "odd number")
	p.secret("whsec_c")
	want(t, p.examine(), check, doctor.Warning, "could be guessed")
	p.secret("whsec_canary_0123456789abcdef")
	good := p.secrets
	end := func(at time.Time) string {
		return strings.Replace(good, " }", ", not_after: "+at.UTC().Format(time.RFC3339)+" }", 1)
	}
	p.secrets = end(time.Now().Add(7 * 24 * time.Hour))
	want(t, p.examine(), check, doctor.Warning, "the last one ends")
	p.secrets = end(time.Now().Add(-time.Hour))
	want(t, p.examine(), check, doctor.Problem, "none is valid now")
	p.secrets = "{ file: /nowhere/secret }"
	r := p.examine()
	want(t, r, check, doctor.Problem, "/nowhere/secret")
	if strings.Contains(fmt.Sprint(r), "canary") {
		t.Error("a finding shows a secret")
	}
}

func TestExamine_FindsTokensThatDoTooMuchOrNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	file := func(text string) string {
		path := filepath.Join(p.dir, testkit.UniqueName("token"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p.more = fmt.Sprintf(`payments:
  tokens:
    - { client: shop, file: %q, from: ["shop:*"] }
    - { client: till, file: %q }
    - { client: late, file: %q, from: ["l"], not_after: %s }
    - { client: gone, file: /nowhere/token, from: ["g"] }
`, file("canary-0123456789abcdef0123456789abcdef\n"), file(" canary-0123456789abcdef0123456789abcdef"), file("canary-abcdef0123456789abcdef0123456789"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	r := p.examine()
	want(t, r, "payments token 1 of shop", doctor.OK, "bound to its accounts")
	want(t, r, "payments token 2 of till", doctor.Note, "every account")
	want(t, r, "payments token 2 of till", doctor.Warning, "white space")
	want(t, r, "payments token 3 of late", doctor.Warning, "it ends")
	want(t, r, "payments token 4 of gone", doctor.Problem, "/nowhere/token")
	want(t, r, "payments_standby", doctor.Problem, "payments.durability: single")
	if strings.Contains(fmt.Sprint(r), "canary") {
		t.Error("a finding shows a token")
	}
}

func TestExamine_FindsCertificatesThatEnd(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	ca := authority.New(t)
	for _, c := range []struct {
		lasts time.Duration
		want  doctor.Verdict
	}{{90 * 24 * time.Hour, doctor.OK}, {24 * time.Hour, doctor.Warning}, {-time.Minute, doctor.Problem}} {
		cert := ca.Issue("public", c.lasts, "127.0.0.1")
		p.more = fmt.Sprintf("ingest: { tls: { cert_file: %q, key_file: %q } }", cert.CertFile, cert.KeyFile)
		want(t, p.examine(), "ingest.tls.cert_file", c.want, "ends")
	}
	p.more = `ingest: { tls: { cert_file: /nowhere.pem, key_file: /nowhere.key } }`
	want(t, p.examine(), "ingest.tls.cert_file", doctor.Problem, "/nowhere.pem")
}
