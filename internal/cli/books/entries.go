package books

import (
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/cli/console"
)

// entry is a row of ledger_entries in JSON; amount is in minor units of currency.
type entry struct {
	EntryID     int64   `json:"entry_id"`
	AccountID   string  `json:"account_id"`
	Contra      string  `json:"contra"`
	Amount      int64   `json:"amount"`
	Currency    string  `json:"currency"`
	Source      *string `json:"source"`
	EventID     *string `json:"event_id"`
	PaymentID   *string `json:"payment_id"`
	AmendmentID *string `json:"amendment_id"`
	Rule        string  `json:"rule"`
	MovementID  string  `json:"movement_id"`
	OccurredAt  *string `json:"occurred_at"`
	AppliedAt   *string `json:"applied_at"`
	// Balance is what the account came to with this entry, in lists of one account.
	Balance *int64 `json:"balance,omitempty"`
}

// scanAccountEntry reads an entry with its running balance.
func scanAccountEntry(row pgx.CollectableRow) (entry, error) {
	var balance int64
	e, err := scanEntryAnd(row, &balance)
	e.Balance = &balance
	return e, err
}

func scanEntry(row pgx.CollectableRow) (entry, error) { return scanEntryAnd(row) }

func scanEntryAnd(row pgx.CollectableRow, rest ...any) (entry, error) {
	var e entry
	var occurred *time.Time
	var applied time.Time
	err := row.Scan(append([]any{&e.EntryID, &e.AccountID, &e.Contra, &e.Amount, &e.Currency, &e.Source, &e.EventID,
		&e.PaymentID, &e.AmendmentID, &e.Rule, &e.MovementID, &occurred, &applied}, rest...)...)
	if occurred != nil {
		e.OccurredAt = console.JSONTime(*occurred)
	}
	e.AppliedAt = console.JSONTime(applied)
	return e, err
}

func printEntries(w io.Writer, entries []entry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "  none")
		return err
	}
	running := entries[0].Balance != nil
	columns := []string{"entry>", "account", "amount>", "contra", "because of", "rule", "applied"}
	if running {
		columns = append(columns, "balance>")
	}
	t := console.NewTable(columns...).Indent("  ")
	for _, e := range entries {
		row := []string{fmt.Sprint(e.EntryID), e.AccountID, console.Amount(e.Amount, e.Currency), e.Contra, e.cause(), e.Rule, console.ShortTime(e.AppliedAt)}
		if running {
			row = append(row, console.Amount(*e.Balance, e.Currency))
		}
		t.Row(row...)
	}
	return t.Write(w)
}

// cause names what is behind the entry.
func (e entry) cause() string {
	switch {
	case e.EventID != nil && e.Source != nil:
		return "event " + *e.Source + " " + *e.EventID
	case e.PaymentID != nil:
		return "payment " + *e.PaymentID
	case e.AmendmentID != nil:
		return "amendment " + *e.AmendmentID
	}
	return "-"
}
