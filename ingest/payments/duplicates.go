package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Duplicate is a payment that means the same as an earlier one of its client, under
// another key: the same accounts, amount, currency and reference, within the window.
// Either the client meant two, or it makes a new key for each retry and has paid twice.
type Duplicate struct {
	PaymentID   string    `json:"payment_id"`
	Key         string    `json:"idempotency_key"`
	Client      string    `json:"client"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Amount      int64     `json:"amount"`
	Currency    string    `json:"currency"`
	Reference   string    `json:"reference"`
	CreatedAt   time.Time `json:"created_at"`
	OfPaymentID string    `json:"of_payment_id"`
	OfKey       string    `json:"of_idempotency_key"`
	OfCreatedAt time.Time `json:"of_created_at"`
}

// Duplicates lists, oldest first, up to limit payments made since a time that repeat
// the one before them within window. q is a pool, a connection or a transaction.
func Duplicates(ctx context.Context, q interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, since time.Time, window time.Duration, limit int) ([]Duplicate, error) {
	rows, err := q.Query(ctx, queryDuplicates, pgx.QueryExecModeExec, since, window, limit)
	if err != nil {
		return nil, fmt.Errorf("list duplicates: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Duplicate, error) {
		var d Duplicate
		var id, of pgtype.UUID
		err := row.Scan(&id, &d.Client, &d.From, &d.To, &d.Amount, &d.Currency, &d.Reference, &d.CreatedAt, &d.Key,
			&of, &d.OfCreatedAt, &d.OfKey)
		d.PaymentID, d.OfPaymentID = id.String(), of.String()
		d.CreatedAt, d.OfCreatedAt = d.CreatedAt.UTC(), d.OfCreatedAt.UTC()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("list duplicates: %w", err)
	}
	return list, nil
}
