package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// tables describes every table, column, constraint, index and right of the schema.
func tables(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select concat('column ', table_name, ' ', column_name, ' ', data_type, ' ', is_nullable, ' ', collation_name, ' ', column_default)
		  from information_schema.columns where table_schema = 'public' and table_name <> 'hookledger_schema'
		union all
		select concat('constraint ', conrelid::regclass, ' ', conname, ' ', pg_get_constraintdef(oid)) from pg_constraint
		 where connamespace = 'public'::regnamespace and conrelid <> 'hookledger_schema'::regclass
		union all
		select concat('index ', indexdef) from pg_indexes where schemaname = 'public' and tablename <> 'hookledger_schema'
		union all
		select concat('right ', oid::regclass, ' ', relacl) from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
		 and relname <> 'hookledger_schema'
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := testkit.PostgresURL(t)
	pool := open(t, url)
	if err := migrations.Check(ctx, pool); !errors.Is(err, migrations.ErrSchemaOlder) || !strings.Contains(err.Error(), "hookledger migrate up") {
		t.Errorf("empty database: got %v, want ErrSchemaOlder with the command", err)
	}
	if err := migrations.Up(ctx, url); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(ctx, pool); err != nil {
		t.Errorf("after up: %v", err)
	}
	first := tables(t, pool)
	list, err := migrations.Status(ctx, url)
	if err != nil || len(list) == 0 || list[0].Version != 1 || list[0].Name != "00001_ledger.sql" || list[0].AppliedAt.IsZero() {
		t.Fatalf("status: got %+v %v", list, err)
	}
	for range list {
		if err := migrations.Down(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if got := tables(t, pool); got != "" {
		t.Errorf("after down: left\n%s", got)
	}
	if err := migrations.Down(ctx, url); err != nil {
		t.Errorf("down with nothing applied: %v", err)
	}
	if err := migrations.Check(ctx, pool); !errors.Is(err, migrations.ErrSchemaOlder) {
		t.Errorf("after down: got %v, want ErrSchemaOlder", err)
	}
	for range 2 {
		if err := migrations.Up(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if got := tables(t, pool); got != first {
		t.Errorf("after up, down, up: got\n%s\nwant\n%s", got, first)
	}
}

func TestUp_ConcurrentlyInSeveralDatabases(t *testing.T) {
	t.Parallel()
	// A cluster of its own has no roles yet, so that their creation races too.
	cluster := testkit.NewPostgres(t)
	admin := cluster.Pool("postgres")
	const databases, each = 2, 6
	var wg sync.WaitGroup
	errs := make([]error, databases*each)
	for d := range databases {
		name := fmt.Sprintf("d%d", d)
		if _, err := admin.Exec(t.Context(), "create database "+name); err != nil {
			t.Fatal(err)
		}
		for i := range each {
			wg.Go(func() { errs[d*each+i] = migrations.Up(t.Context(), cluster.URL(name)) })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for d := range databases {
		if err := migrations.Check(t.Context(), cluster.Pool(fmt.Sprintf("d%d", d))); err != nil {
			t.Error(err)
		}
	}
	// Roles in use by one database are no obstacle for taking the other one back.
	if err := migrations.Down(t.Context(), cluster.URL("d0")); err != nil {
		t.Error(err)
	}
	if err := migrations.Check(t.Context(), cluster.Pool("d1")); err != nil {
		t.Error(err)
	}
}

func TestUp_WithoutTheRightToCreateRoles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := testkit.NewPostgres(t)
	admin := cluster.Pool("postgres")
	for _, sql := range []string{`create role plain login password 'plain'`, `create database app owner plain`} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	config := open(t, cluster.URL("app")).Config().ConnConfig
	url := fmt.Sprintf("postgres://plain:plain@%s:%d/app?sslmode=disable", config.Host, config.Port)

	err := migrations.Up(ctx, url)
	if err == nil || !strings.Contains(err.Error(), "create role hookledger_worker nologin") {
		t.Fatalf("got %v, want an error that says what to run", err)
	}
	for _, role := range []string{"worker", "operator", "reader", "payments"} {
		if _, err := admin.Exec(ctx, "create role hookledger_"+role+" nologin"); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Up(ctx, url); err != nil {
		t.Fatal(err)
	}
}

func TestCheck_RefusesANewerSchema(t *testing.T) {
	t.Parallel()
	pool := testkit.LedgerDB(t)
	if _, err := pool.Exec(t.Context(), `insert into hookledger_schema (version_id, is_applied) values (99999, true)`); err != nil {
		t.Fatal(err)
	}
	url := pool.Config().ConnString()
	for name, err := range map[string]error{
		"check": migrations.Check(t.Context(), pool),
		"up":    migrations.Up(t.Context(), url),
		"down":  migrations.Down(t.Context(), url),
		"status": func() error {
			_, err := migrations.Status(t.Context(), url)
			return err
		}(),
	} {
		if !errors.Is(err, migrations.ErrSchemaNewer) {
			t.Errorf("%s: got %v, want ErrSchemaNewer", name, err)
		}
	}
}

func TestEveryConstraintIsNamed(t *testing.T) {
	t.Parallel()
	pool := testkit.LedgerDB(t)
	var unnamed string
	err := pool.QueryRow(t.Context(), `
		select coalesce(string_agg(conrelid::regclass || ' ' || conname, ', '), '')
		  from pg_constraint
		 where connamespace = 'public'::regnamespace and conrelid <> 'hookledger_schema'::regclass
		   and contype = 'c' and conname ~ '_check[0-9]*$'`).Scan(&unnamed)
	if err != nil || unnamed != "" {
		t.Errorf("got %q %v, want every check named by us", unnamed, err)
	}
}
