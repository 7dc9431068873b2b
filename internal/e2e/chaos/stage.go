package chaos

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

// Stage is what runs have in common: brokers, a Postgres cluster, a proxy on every link
// and the ports of the processes. Runs on it come one after another, each with a topic, a
// group and a database of its own.
type Stage struct {
	tb       testing.TB
	target   string
	binary   string
	python   string
	brokers  brokers
	postgres *testkit.PostgresCluster
	links    map[string][]*testkit.Proxy
	ports    map[string]ports
}

// ports of a process. public is 0 for workers.
type ports struct{ public, admin int }

// template is the migrated database that each run copies.
const template = "chaos_template"

// patience bounds whatever should take seconds, on a machine that is busy with others.
const patience = 90 * time.Second

// NewStage starts brokers and Postgres, and builds the program with crash points unless
// binary names one. All of it ends with the test. Run must be called on the test's own
// goroutine.
func NewStage(tb testing.TB, target, binary string) *Stage {
	tb.Helper()
	s := &Stage{tb: tb, target: target, binary: binary, python: testkit.Python(tb), links: map[string][]*testkit.Proxy{}, ports: map[string]ports{}}
	if s.binary == "" {
		s.binary = testkit.BuildProgram(tb, ".", "chaos")
	}
	switch target {
	case TargetKafka:
		s.brokers = newRealBrokers(tb, s.links)
	case TargetKfake:
		s.brokers = newFakeBroker(tb, s.links)
	default:
		tb.Fatalf("chaos target is %q: use %s or %s", target, TargetKafka, TargetKfake)
	}
	// Nothing may wait for a disk that other tests use; what Postgres alone loses is the
	// same. A deadlock is to be found before a lock timeout ends it.
	s.postgres = testkit.NewPostgres(tb, "deadlock_timeout=100ms")
	pg := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.postgres.Port()))
	s.links[linkWorkerPostgres] = []*testkit.Proxy{testkit.NewProxy(tb, pg)}
	s.links[linkPaymentsPostgres] = []*testkit.Proxy{testkit.NewProxy(tb, pg)}
	for _, name := range append([]string{roleExtra}, allRoles...) {
		s.ports[name] = ports{testkit.FreePort(tb), testkit.FreePort(tb)}
	}
	for _, name := range ingestRoles {
		s.links[linkClientIngest] = append(s.links[linkClientIngest], testkit.NewProxy(tb, addr(s.ports[name].public)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.execute(ctx, "postgres", `create database `+template); err != nil {
		tb.Fatal(err)
	}
	if err := migrations.Up(ctx, s.postgres.URL(template)); err != nil {
		tb.Fatal(err)
	}
	if err := s.execute(ctx, template, slowEvents); err != nil {
		tb.Fatal(err)
	}
	return s
}

// slowEvents makes Postgres take its time for each new event while chaos_slow says so: else
// transactions of a few milliseconds rarely meet in a run of seconds.
const slowEvents = `
create table chaos_slow (seconds double precision not null);
insert into chaos_slow values (0);
create function chaos_slow() returns trigger language plpgsql security definer as
	$$ begin perform pg_sleep(seconds) from chaos_slow where seconds > 0; return new; end $$;
create trigger chaos_slow before insert on processed_events for each row execute function chaos_slow()`

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// execute runs a statement on a connection of its own, also while the cluster is read-only.
func (s *Stage) execute(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, s.postgres.URL(database)+"&default_transaction_read_only=off")
	if err != nil {
		return fmt.Errorf("connect to %s: %w", database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// through is the address of a database behind the proxy of a link.
func (s *Stage) through(link, database string) string {
	u, err := url.Parse(s.postgres.URL(database))
	if err != nil {
		panic(err) // we made it
	}
	u.Host = s.links[link][0].Addr()
	return u.String()
}

// pass heals every link.
func (s *Stage) pass() {
	for _, proxies := range s.links {
		for _, p := range proxies {
			p.Disarm()
			p.Pass()
		}
	}
}
