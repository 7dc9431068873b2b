package transfer_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/transfer"
	"hookledger/internal/testkit"
)

func run(pool *pgxpool.Pool, t transfer.Transfer) error {
	var b pgx.Batch
	t.Queue(&b)
	return pool.SendBatch(context.Background(), &b).Close()
}

func balance(tb testing.TB, pool *pgxpool.Pool, account string) int64 {
	tb.Helper()
	var n int64
	if err := pool.QueryRow(context.Background(), `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func set(tb testing.TB, pool *pgxpool.Pool, account string, amount int64) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), `insert into accounts (balance, entry_count, updated_at, account_id, currency)
		values ($2, 1, now(), $1, 'EUR') on conflict (account_id, currency) do update set balance = excluded.balance`, account, amount); err != nil {
		tb.Fatal(err)
	}
}

func TestTransfer_MovesMoneyOnceAndNeverBelowZero(t *testing.T) {
	t.Parallel()
	pool := testkit.LedgerDB(t)
	set(t, pool, "b", 100)
	move := transfer.Transfer{PaymentID: [16]byte{1}, From: "b", To: "a", Amount: 60, Currency: "EUR", OccurredAt: time.Now()}
	if err := run(pool, move); err != nil {
		t.Fatal(err)
	}
	if err := run(pool, move); err == nil || transfer.IsInsufficientFunds(err) {
		t.Errorf("the same payment again: got %v, want a broken wall", err)
	}
	for _, from := range []string{"b", "c"} {
		more := transfer.Transfer{PaymentID: [16]byte{2}, From: from, To: "a", Amount: 41, Currency: "EUR", OccurredAt: time.Now()}
		if err := run(pool, more); !transfer.IsInsufficientFunds(err) {
			t.Errorf("from %s: got %v, want insufficient funds", from, err)
		}
	}
	// Money may go where less than nothing is, and from there nothing comes.
	set(t, pool, "debtor", -50)
	if err := run(pool, transfer.Transfer{PaymentID: [16]byte{3}, From: "b", To: "debtor", Amount: 10, Currency: "EUR", OccurredAt: time.Now()}); err != nil {
		t.Error(err)
	}
	set(t, pool, "full", math.MaxInt64-1)
	if err := run(pool, transfer.Transfer{PaymentID: [16]byte{4}, From: "b", To: "full", Amount: 10, Currency: "EUR", OccurredAt: time.Now()}); !transfer.IsBalanceRange(err) {
		t.Errorf("got %v, want a balance out of range", err)
	}
	for account, want := range map[string]int64{"a": 60, "b": 30, "c": 0, "debtor": -40} {
		if got := balance(t, pool, account); got != want {
			t.Errorf("%s: got %d, want %d", account, got, want)
		}
	}
	var n, sum int64
	var movement string
	if err := pool.QueryRow(t.Context(), `select count(*), sum(amount)::bigint, min(movement_id) from ledger_entries where payment_id = '01000000-0000-0000-0000-000000000000'`).Scan(&n, &sum, &movement); err != nil ||
		n != 2 || sum != 0 || movement != "01000000-0000-0000-0000-000000000000" {
		t.Errorf("got %d entries with the sum %d of movement %s %v, want 2 and 0", n, sum, movement, err)
	}
}
