package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

// shared are the parts that all groups use.
type shared struct {
	tb   testing.TB
	tiny bool
	once sync.Once
	pg   *testkit.PostgresCluster
	main int // process ID of Postgres
}

// postgres waits for its disk, as it must in production: what is measured elsewhere is
// the cost of a commit too. Room for the log keeps checkpoints out of short runs.
func (s *shared) postgres() *testkit.PostgresCluster {
	s.once.Do(func() {
		settings := []string{"shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=30min", "max_connections=200"}
		if !s.tiny {
			settings = append(settings, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
		}
		s.pg = testkit.NewPostgres(s.tb, settings...)
		exec1(s.tb, s.pg.URL("postgres"), `create database ledger`)
		if err := migrations.Up(s.tb.Context(), s.pg.URL("ledger")); err != nil {
			s.tb.Fatal(err)
		}
		exec1(s.tb, s.pg.URL("postgres"), `create database bare`)
		exec1(s.tb, s.pg.URL("bare"), bareTables)
		conn := connect(s.tb, s.pg.URL("postgres"))
		defer func() { _ = conn.Close(context.Background()) }()
		var text string
		if err := conn.QueryRow(s.tb.Context(), `select split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&text); err != nil {
			s.tb.Fatal(err)
		}
		s.main, _ = strconv.Atoi(text)
	})
	return s.pg
}

// database returns the URL of a copy of a template, ledger or bare, which lives as long
// as the group. Checkpoints come between runs, not within.
func (b *bench) database(template string) string {
	b.tb.Helper()
	pg := b.shared.postgres()
	name := testkit.UniqueName(template)
	exec1(b.tb, pg.URL("postgres"), `create database `+name+` template `+template)
	b.tb.Cleanup(func() { exec1(b.shared.tb, pg.URL("postgres"), `drop database if exists `+name+` with (force)`) })
	return pg.URL(name)
}

// drop drops a database before its group ends, so that its pages leave the cache.
func (b *bench) drop(url string) {
	b.tb.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		b.tb.Fatal(err)
	}
	exec1(b.tb, b.shared.pg.URL("postgres"), `drop database if exists `+cfg.Database+` with (force)`)
}

func (b *bench) checkpoint() {
	b.tb.Helper()
	if !b.tiny() {
		exec1(b.tb, b.shared.postgres().URL("postgres"), `checkpoint`)
	}
}

func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}

func exec1(tb testing.TB, url, sql string) {
	tb.Helper()
	conn := connect(tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		tb.Fatalf("%.200s: %v", sql, err)
	}
}

func openPool(tb testing.TB, url string, conns int32) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

const stripeSecret = "whsec_bench_0123456789abcdef0123456789abcdef"

// system is the product with one configuration file.
type system struct {
	b                    *bench
	kafka                *testkit.KafkaCluster
	dir, config          string
	topic, consumerGroup string
	database             string
}

// newSystem writes a configuration. Topic and database are there already; a role that
// has no use for one is not asked.
func (b *bench) newSystem(kafka *testkit.KafkaCluster, topic, database string) *system {
	b.tb.Helper()
	s := &system{b: b, kafka: kafka, dir: b.tb.TempDir(), topic: topic, consumerGroup: testkit.UniqueName("books"), database: database}
	s.config = filepath.Join(s.dir, "hookledger.yaml")
	text := fmt.Sprintf(`
kafka: { brokers: [%s], topic: %s, group: %s, partitions: %d, replication: 1, durability: single }
database: { url: %q }
payments: { durability: single, rate: { per_second: 1000000, burst: 1000000 }, tokens: [{ client: shop, value: %q }] }
sources:
  - name: stripe
    provider: stripe
    secrets: [{ id: main, value: %q }]
    account: data.object.metadata.account_id
`, strings.Join(kafka.Brokers(), ", "), topic, s.consumerGroup, partitions, database, shopToken, stripeSecret)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		b.tb.Fatal(err)
	}
	return s
}

// partitions of every topic here.
const partitions = 12

// newTopic creates a topic as `topics apply` does.
func (b *bench) newTopic(kafka *testkit.KafkaCluster) string {
	b.tb.Helper()
	name := testkit.UniqueName("bench")
	replication := min(3, len(kafka.Brokers()))
	yes := "2097152"
	r, err := kadm.NewClient(kafka.Client()).CreateTopic(b.tb.Context(), partitions, int16(replication), map[string]*string{"max.message.bytes": &yes}, name)
	if err = errors.Join(err, r.Err); err != nil {
		b.tb.Fatalf("create topic: %v", err)
	}
	return name
}

// start starts a role with an environment of its own and waits until it is ready.
func (s *system) start(role string, env ...string) *testkit.KillableProcess {
	s.b.tb.Helper()
	return s.begin(role, true, env)
}

// launch starts a role and does not wait.
func (s *system) launch(role string, env ...string) *testkit.KillableProcess {
	s.b.tb.Helper()
	return s.begin(role, false, env)
}

func (s *system) begin(role string, wait bool, env []string) *testkit.KillableProcess {
	s.b.tb.Helper()
	admin := testkit.FreeAddr(s.b.tb)
	opts := testkit.ProcessOptions{Args: []string{role, "--config", s.config}, Dir: s.dir,
		Env: append(env, "HOOKLEDGER_"+strings.ToUpper(role)+"_ADMIN="+admin)}
	if wait {
		opts.ReadyURL, opts.ReadyWithin = "http://"+admin+"/readyz", time.Minute
	}
	p := testkit.StartHookledger(s.b.tb, opts)
	s.b.profileRole(role, admin)
	return p
}

// startIngest returns the process and the address it listens on.
func (s *system) startIngest() (*testkit.KillableProcess, string) {
	s.b.tb.Helper()
	addr := testkit.FreeAddr(s.b.tb)
	return s.start("ingest", "HOOKLEDGER_INGEST_LISTEN="+addr), addr
}

// finished is what a command did that ran to its end.
type finished struct {
	stdout  []byte
	seconds float64
	// cpu is what the process worked, peakMiB the most memory that it had.
	cpu     time.Duration
	peakMiB float64
}

// run runs a command of the product.
func (s *system) run(args ...string) finished {
	s.b.tb.Helper()
	return s.b.command(testkit.Binary(s.b.tb), s.dir, nil, append(args, "--config", s.config)...)
}

func (b *bench) command(program, dir string, env []string, args ...string) finished {
	b.tb.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.tb.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, out.String(), complaints.String())
	}
	f := finished{stdout: out.Bytes(), seconds: time.Since(began).Seconds(), cpu: cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()}
	f.peakMiB = peakOf(cmd.ProcessState)
	return f
}

// client is a client of the group.
func (b *bench) client(kafka *testkit.KafkaCluster, opts ...kgo.Opt) *kgo.Client {
	b.tb.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(kafka.Brokers()...)}, opts...)...)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(cl.Close)
	return cl
}

// decode reads the JSON of a command.
func decode[T any](tb testing.TB, text []byte) T {
	tb.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		tb.Fatalf("%v in %.300s", err, text)
	}
	return v
}
