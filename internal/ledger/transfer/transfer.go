package transfer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"hookledger/schema"
)

// Transfer is money moved between two accounts of ours: two entries with one movement
// and the sum 0, and what they do to the two balances. Its effect keys are made of the
// payment ID and the leg, so that a payment moves money once.
type Transfer struct {
	PaymentID [16]byte
	From, To  string
	// Amount is in minor units of Currency, from 1 to schema.MaxAmount.
	Amount   int64
	Currency string
	// OccurredAt is when the payment was accepted.
	OccurredAt time.Time
}

// source stands for a source in the effect keys of transfers. No source can
// have this key.
const source = "_payments"

// rule is the rule of the entries of transfers.
const rule = "payment"

// Statement is what Queue adds. It inserts the two entries, sorted by effect key, and then adds to the two
// balances, sorted by account: the order of locks that every program keeps. It is one
// statement because a statement costs about 30 µs beside what it does (Postgres 15), and
// the balances read from the entries so that they come second.
//
// An effect key that is there already is an error: a payment ID is never used twice. The
// division is a guard: it fails with 22012 unless both balances were written and the
// account that is spent from ($15) does not end below zero. The receiving account may be
// below zero: facts of providers may take it there, and money coming in is no reason to
// refuse.
// Indexes: ledger_entries_effect_once, accounts_pkey.
const Statement = `
with entries as (
	insert into ledger_entries
	       (applied_at, effect_key, payment_id, line,
	        account_id, contra, currency, amount, rule, movement_id, occurred_at)
	values (now(), $1, $3, $4, $6, $7, $8,  $9::bigint, $10, $11, $12),
	       (now(), $2, $3, $5, $7, $6, $8, -$9::bigint, $10, $11, $12)
	returning 1
), written as (
	insert into accounts as a (updated_at, account_id, currency, balance, entry_count)
	select now(), s.account_id, $8, s.amount, 1
	  from (select count(*) as n from entries) e,
	       (values ($13::text, $14::bigint), ($16::text, -$14::bigint)) as s (account_id, amount)
	 where e.n = 2
	    on conflict on constraint accounts_pkey do update
	   set balance = a.balance + excluded.balance,
	       entry_count = a.entry_count + 1,
	       updated_at = excluded.updated_at
	returning account_id, balance
)
select 1 / (count(*) = 2 and bool_and(balance >= 0 or account_id <> $15))::int from written`

// Check returns a *schema.MappingError for a transfer that no ledger may hold.
func (t *Transfer) Check() error {
	m := t.meaning()
	return m.Check()
}

func (t *Transfer) movement() string {
	var b [36]byte
	h := hex.AppendEncode(make([]byte, 0, 32), t.PaymentID[:])
	copy(b[0:8], h[0:8])
	copy(b[9:13], h[8:12])
	copy(b[14:18], h[12:16])
	copy(b[19:23], h[16:20])
	copy(b[24:36], h[20:32])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// meaning says the transfer as two postings: the leg that is spent from, and the other.
func (t *Transfer) meaning() schema.Meaning {
	movement := t.movement()
	return schema.Meaning{Postings: []schema.Posting{
		{Account: t.From, Contra: t.To, Amount: -t.Amount, Currency: t.Currency, Rule: rule, Movement: movement},
		{Account: t.To, Contra: t.From, Amount: t.Amount, Currency: t.Currency, Rule: rule, Movement: movement},
	}}
}

// Queue adds the statement of the transfer to b, one result of the batch. It belongs into
// one transaction with whatever decides that the transfer may happen, behind it. It fails
// if it would take From below zero: ask IsInsufficientFunds.
func (t *Transfer) Queue(b *pgx.Batch) {
	m := t.meaning()
	keys := m.EffectKeys(source)
	// first is the leg with the smaller effect key.
	first, second := 0, 1
	if bytes.Compare(keys[0][:], keys[1][:]) > 0 {
		first, second = 1, 0
	}
	p := m.Postings[first]
	low, high, amount := t.From, t.To, -t.Amount
	if strings.Compare(low, high) > 0 {
		low, high, amount = t.To, t.From, t.Amount
	}
	b.Queue(Statement, pgUUID(keys[first]), pgUUID(keys[second]), pgUUID(t.PaymentID), int32(first), int32(second),
		p.Account, p.Contra, p.Currency, p.Amount, p.Rule, p.Movement, t.OccurredAt, low, amount, t.From, high)
}

const (
	codeGuard = "22012" // division_by_zero: only the guard divides
	codeRange = "22003" // numeric_value_out_of_range
)

func pgUUID[T ~[16]byte](b T) pgtype.UUID { return pgtype.UUID{Bytes: b, Valid: true} }

// IsInsufficientFunds tells whether err, of the statement of a transfer, says
// that From would have ended below zero.
func IsInsufficientFunds(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeGuard
}

// IsBalanceRange tells whether err, of the statement of a transfer, says that a
// balance would not fit 64 bits.
func IsBalanceRange(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeRange
}
