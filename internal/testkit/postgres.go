package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/devstack"
)

// startWithin bounds starting and stopping a server.
const startWithin = time.Minute

// downloadWithin bounds starting one that may have to be downloaded first.
const downloadWithin = 5 * time.Minute

// PostgresEnv names the major version of Postgres to test on, such as 18, downloaded if
// it is not installed. Without it the newest that is installed is used.
const PostgresEnv = "HOOKLEDGER_TEST_POSTGRES"

// postgresMajor is what PostgresEnv says, 0 if nothing.
func postgresMajor() (int, error) {
	want := os.Getenv(PostgresEnv)
	if want == "" {
		return 0, nil
	}
	major, err := strconv.Atoi(want)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: want a major version of Postgres, such as 18", PostgresEnv, want)
	}
	return major, nil
}

// sharedPostgres is the cluster of this test process. The janitor ends it.
var sharedPostgres = sync.OnceValues(func() (*devstack.Postgres, error) {
	dir, err := scratchDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), downloadWithin)
	defer cancel()
	return startThrowaway(ctx, dir, 0, nil)
})

func startThrowaway(ctx context.Context, dir string, port int, settings map[string]string) (*devstack.Postgres, error) {
	major, err := postgresMajor()
	if err != nil {
		return nil, err
	}
	p, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{
		Dir:       filepath.Join(dir, "postgres"),
		Port:      port,
		Major:     major,
		Throwaway: true,
		Settings:  settings,
	})
	if err != nil {
		return nil, err
	}
	// Elsewhere than asked when root's temporary folder is closed to others.
	return p, removeAtExit(p.Dir())
}

// Postgres returns a pool on an empty database of the test's own, in a cluster
// that the tests of this process share. Roles belong to the whole cluster.
func Postgres(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return openPool(tb, PostgresURL(tb))
}

// PoolOn returns a pool on a database of Postgres or of NewPostgres, closed after the
// test.
func PoolOn(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	return openPool(tb, url)
}

// PostgresURL is like Postgres, but returns the connection string (of a
// superuser).
func PostgresURL(tb testing.TB) string {
	tb.Helper()
	return createDatabase(tb, "template1")
}

// createDatabase copies a template in the shared cluster and drops the copy
// after the test.
func createDatabase(tb testing.TB, template string) string {
	tb.Helper()
	p, err := sharedPostgres()
	if err != nil {
		tb.Fatalf("start shared Postgres: %v", err)
	}
	name := uniqueName("t")
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := execute(ctx, p.URL("postgres"), `create database `+name+` template `+template); err != nil {
		tb.Fatalf("create database of the test: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if err := execute(ctx, p.URL("postgres"), `drop database `+name+` with (force)`); err != nil {
			tb.Errorf("drop database of the test: %v", err)
		}
	})
	connection, err := pooledURL(p, name)
	if err != nil {
		tb.Fatalf("start a pooler: %v", err)
	}
	return connection
}

func openPool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatalf("read connection string: %v", err)
	}
	cfg.MaxConns = 8
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Where nothing is prepared pgx has to know what is a uuid.
		conn.TypeMap().RegisterDefaultPgType([16]byte{}, "uuid")
		conn.TypeMap().RegisterDefaultPgType([][16]byte{}, "_uuid")
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		tb.Fatalf("open pool: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
