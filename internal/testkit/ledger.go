package testkit

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/migrations"
)

// ledgerTemplate is the database that LedgerURL copies: migrating once per
// test process and copying takes a tenth of migrating for every test.
var ledgerTemplate = sync.OnceValues(func() (string, error) {
	p, err := sharedPostgres()
	if err != nil {
		return "", err
	}
	name := uniqueName("ledger_template")
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := execute(ctx, p.URL("postgres"), `create database `+name); err != nil {
		return "", err
	}
	if err := migrations.Up(ctx, p.URL(name)); err != nil {
		return "", fmt.Errorf("migrate template: %w", err)
	}
	return name, nil
})

// LedgerDB returns a pool on a migrated, empty ledger of the test's own, as
// the cluster's superuser.
func LedgerDB(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return openPool(tb, LedgerURL(tb))
}

// LedgerURL is like LedgerDB, but returns the connection string.
func LedgerURL(tb testing.TB) string {
	tb.Helper()
	template, err := ledgerTemplate()
	if err != nil {
		tb.Fatalf("prepare a migrated database: %v", err)
	}
	return createDatabase(tb, template)
}
