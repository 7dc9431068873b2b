package consumer

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

// pair is a primary and a standby that follows it asynchronously.
type pair struct {
	tb      testing.TB
	primary *testkit.PostgresCluster
	standby *testkit.PostgresCluster
	// line is the standby's way to the primary.
	line *testkit.Proxy
}

// newPair makes a migrated primary, and a standby out of a copy of its files.
func newPair(tb testing.TB) *pair {
	tb.Helper()
	settings := []string{"wal_level=replica", "max_wal_senders=4"}
	p := &pair{tb: tb, primary: testkit.NewPostgres(tb, settings...), standby: testkit.NewPostgres(tb, settings...)}
	if err := migrations.Up(tb.Context(), p.primary.URL("postgres")); err != nil {
		tb.Fatal(err)
	}
	from, to := home(tb, p.primary), home(tb, p.standby)
	p.primary.Stop()
	p.standby.Stop()
	p.line = testkit.NewProxy(tb, fmt.Sprintf("127.0.0.1:%d", p.primary.Port()))
	through, err := url.Parse(p.primary.URL("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	through.Host = p.line.Addr()
	for _, command := range [][]string{
		{"rm", "-rf", filepath.Join(to, "data")},
		{"cp", "-a", filepath.Join(from, "data"), to},
		{"cp", "-a", filepath.Join(from, "password"), to},
		// As the owner of the files next to them.
		{"cp", "-a", filepath.Join(to, "data", "PG_VERSION"), filepath.Join(to, "data", "standby.signal")},
		{"sh", "-c", `printf "primary_conninfo = '%s'\n" "$0" >> "$1"`, through.String(), filepath.Join(to, "data", "postgresql.auto.conf")},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	p.primary.Start()
	p.standby.Start()
	return p
}

// home is the folder of a cluster, which holds its data and its password.
func home(tb testing.TB, c *testkit.PostgresCluster) string {
	tb.Helper()
	return filepath.Dir(query1[string](tb, c.Pool("postgres"), `show data_directory`))
}

// caughtUp waits until the standby has all that the primary has.
func (p *pair) caughtUp() {
	p.tb.Helper()
	at := query1[string](p.tb, p.primary.Pool("postgres"), `select pg_current_wal_lsn()::text`)
	testkit.Eventually(p.tb, time.Minute, func() error {
		if !query1[bool](p.tb, p.standby.Pool("postgres"), `select coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)`, at) {
			return fmt.Errorf("the standby has not reached %s", at)
		}
		return nil
	})
}

// cutOff lets the standby fall behind from now on.
func (p *pair) cutOff() {
	p.line.Reset()
	testkit.Eventually(p.tb, time.Minute, func() error {
		if n := query1[int](p.tb, p.primary.Pool("postgres"), `select count(*) from pg_stat_replication`); n != 0 {
			return fmt.Errorf("%d standbys follow", n)
		}
		return nil
	})
}

// failOver kills the primary and makes the standby the primary.
func (p *pair) failOver() {
	p.tb.Helper()
	p.primary.Kill()
	if !query1[bool](p.tb, p.standby.Pool("postgres"), `select pg_promote(true, 60)`) {
		p.tb.Fatal("the standby was not promoted within 60 s")
	}
}

// A failover to an asynchronous standby loses commits whose offsets Kafka holds. With
// connections that break, as with a failover by DNS or several hosts, and with ones that
// do not, as behind a pooler that is paused meanwhile: the workers find out, without a
// record that arrives and without a person, and the topic brings back what was lost.
func TestPosition_StandbyPromotedAfterLosingCommits(t *testing.T) {
	t.Parallel()
	t.Run("with a reconnect", func(t *testing.T) {
		t.Parallel()
		p := newPair(t)
		var port atomic.Uint32
		port.Store(uint32(p.primary.Port()))
		cfg, err := pgxpool.ParseConfig(p.primary.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.Port = uint16(port.Load())
			return nil
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		healsAfter(t, p, pool, func() {
			p.failOver()
			port.Store(uint32(p.standby.Port()))
		})
	})
	t.Run("without one", func(t *testing.T) {
		t.Parallel()
		p := newPair(t)
		pooler := testkit.PgBouncer(t, p.primary.URL("postgres"), "transaction")
		cfg, err := pgxpool.ParseConfig(pooler.URL)
		if err != nil {
			t.Fatal(err)
		}
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		made := pool.Stat().NewConnsCount()
		healsAfter(t, p, pool, func() {
			pooler.Command(t, "PAUSE")
			p.failOver()
			pooler.PointTo(t, p.standby.Port())
			pooler.Command(t, "RELOAD")
			made = pool.Stat().NewConnsCount()
			pooler.Command(t, "RESUME")
		})
		if more := pool.Stat().NewConnsCount() - made; more != 0 {
			t.Errorf("the worker made %d connections after the failover, beside %d before it: the test needs none", more, made)
		}
	})
}

// healsAfter applies 3 events that the standby gets and 5 that it does not, fails over
// and wants all 8 back.
func healsAfter(t *testing.T, p *pair, pool *pgxpool.Pool, failOver func()) {
	t.Helper()
	b := setupOn(t, 1, p.primary.Pool("postgres"))
	b.cfg.SessionTimeout = time.Minute // longer than a failover holds up a statement
	b.start(func(d *Deps) {
		d.Pool = pool
		d.Schema = func(ctx context.Context) error { return migrations.Check(ctx, pool) }
	})
	b.pay(0, "anna", 3)
	b.isCommitted(0, 3)
	p.caughtUp()
	p.cutOff()
	b.pay(0, "anna", 5)
	b.hasBalance("anna", 8)
	b.isCommitted(0, 8)
	failOver()
	b.pool = p.standby.Pool("postgres")
	b.hasIncidents(0, "progress_behind/warning/3/8")
	b.hasBalance("anna", 8)
	b.isCommitted(0, 8)
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 9)
	b.lawful()
}
