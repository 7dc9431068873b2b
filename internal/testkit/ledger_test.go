package testkit_test

import (
	"testing"
	"time"

	"hookledger/internal/testkit"
)

func TestLedgerDB_IsMigrated(t *testing.T) {
	t.Parallel()
	for range 2 {
		began := time.Now()
		pool := testkit.LedgerDB(t)
		t.Logf("ready after %s", time.Since(began))
		var n int
		if err := pool.QueryRow(t.Context(), `select count(*) from ledger_entries`).Scan(&n); err != nil || n != 0 {
			t.Fatalf("entries: got %d %v, want none", n, err)
		}
	}
}
