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
}

func scanEntry(row pgx.CollectableRow) (entry, error) {
	var e entry
	var occurred *time.Time
	var applied time.Time
	err := row.Scan(&e.EntryID, &e.AccountID, &e.Contra, &e.Amount, &e.Currency, &e.Source, &e.EventID,
		&e.PaymentID, &e.AmendmentID, &e.Rule, &e.MovementID, &occurred, &applied)
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
	t := console.NewTable("entry>", "account", "amount>", "contra", "because of", "rule", "applied").Indent("  ")
	for _, e := range entries {
		t.Row(fmt.Sprint(e.EntryID), e.AccountID, console.Amount(e.Amount, e.Currency), e.Contra, e.cause(), e.Rule, shortTime(e.AppliedAt))
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

// shortTime is a time of JSON as tables show it.
func shortTime(s *string) string {
	if s == nil {
		return "-"
	}
	t, err := time.Parse(time.RFC3339Nano, *s)
	if err != nil {
		return *s
	}
	return console.Time(t)
}
