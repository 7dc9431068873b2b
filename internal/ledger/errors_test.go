package ledger

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	const data, race, retry = "data", "race", "retry"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"overflow":                  {&pgconn.PgError{Code: "22003"}, data},
		"NUL in text":               {&pgconn.PgError{Code: "22021"}, data},
		"NUL in jsonb":              {&pgconn.PgError{Code: "22P05"}, data},
		"amount constraint":         {&pgconn.PgError{Code: "23514", TableName: "ledger_entries", ConstraintName: "ledger_entries_amount_range"}, data},
		"account constraint":        {&pgconn.PgError{Code: "23514", TableName: "accounts", ConstraintName: "accounts_entry_count_positive"}, data},
		"null in an entry":          {&pgconn.PgError{Code: "23502", TableName: "ledger_entries", ColumnName: "amount"}, data},
		"missing partition":         {&pgconn.PgError{Code: "23514", TableName: "processed_events"}, retry},
		"missing entries partition": {&pgconn.PgError{Code: "23514", TableName: "ledger_entries"}, retry},
		"constraint of progress":    {&pgconn.PgError{Code: "23514", TableName: "consumer_progress", ConstraintName: "consumer_progress_offsets_ordered"}, retry},
		"null elsewhere":            {&pgconn.PgError{Code: "23502", TableName: "incidents", ColumnName: "kind"}, retry},
		"guard":                     {&pgconn.PgError{Code: "22012"}, race},
		"deadlock":                  {&pgconn.PgError{Code: "40P01"}, retry},
		"serialization":             {&pgconn.PgError{Code: "40001"}, retry},
		"disk full":                 {&pgconn.PgError{Code: "53100"}, retry},
		"read only":                 {&pgconn.PgError{Code: "25006"}, retry},
		"shutdown":                  {&pgconn.PgError{Code: "57P01"}, retry},
		"wall of the ledger":        {&pgconn.PgError{Code: "23505", TableName: "ledger_entries", ConstraintName: "ledger_entries_effect_once"}, race},
		"wall of the memory":        {&pgconn.PgError{Code: "23505", TableName: "processed_events_3", ConstraintName: "processed_events_3_pkey"}, race},
		"unique elsewhere":          {&pgconn.PgError{Code: "23505", TableName: "incidents", ConstraintName: "x"}, retry},
		"privilege":                 {&pgconn.PgError{Code: "42501"}, retry},
		"connection":                {io.ErrUnexpectedEOF, retry},
		"cancelled":                 {context.Canceled, retry},
		"none":                      {nil, retry},
	} {
		got := classify(c.err)
		kind := retry
		if _, ok := isDataError(got); ok {
			kind = data
		} else if errors.Is(got, errRace) {
			kind = race
		}
		if kind != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: got %s (%v), want %s", name, kind, got, c.want)
		}
	}
}
