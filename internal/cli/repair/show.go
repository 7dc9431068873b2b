package repair

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ledger"
	"hookledger/schema"
)

// showAnswer is hookledger.quarantine-show.v1.
type showAnswer struct {
	held
	Number  string           `json:"number"`
	Headers []console.Header `json:"headers"`
	// Key and Body are what the record holds, in base64; BodyText is the body where it
	// is UTF-8.
	Key        []byte  `json:"key_base64"`
	Body       []byte  `json:"body_base64"`
	BodyText   *string `json:"body_text"`
	BodySHA256 string  `json:"body_sha256"`
	// FirstBodySHA256 is the hash of the body that stands, of a conflict.
	FirstBodySHA256 *string `json:"first_body_sha256,omitempty"`

	stored []schema.Header
}

func quarantineShow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show one held record with its headers and bytes",
		Long: `Show one held record with its headers and bytes. No byte of it steers the terminal: what
does not print is escaped, what is no text is dumped. Needs the rights of
hookledger_reader.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger quarantine show 7
  hookledger quarantine show c7
  hookledger quarantine show 7 --json | jq -r .body_base64 | base64 -d`,
		RunE: func(c *cobra.Command, args []string) error {
			numbers, err := parseHeld(args)
			if err != nil {
				return err
			}
			var out showAnswer
			err = withDatabase(c.Context(), a, "quarantine", func(ctx context.Context, pool *pgxpool.Pool) error {
				return app.ReadOnly(ctx, pool, func(tx pgx.Tx) (err error) {
					out, err = readShow(ctx, tx, numbers[0])
					return err
				})
			})
			if err != nil {
				return err
			}
			return a.Print("quarantine-show", out, func(w io.Writer) error { return out.print(w) })
		},
	}
}

func readShow(ctx context.Context, tx pgx.Tx, h ledger.Held) (showAnswer, error) {
	sql := sqlQuarantinedOne
	if h.Conflict {
		sql = sqlConflictOne
	}
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, h.ID)
	if err != nil {
		return showAnswer{}, err
	}
	out, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (showAnswer, error) {
		out := showAnswer{Number: h.String()}
		var headers, first []byte
		var err error
		if out.held, err = scanHeld(row, h.Conflict, &out.Key, &headers, &out.Body, &first); err != nil {
			return out, err
		}
		out.stored, err = ledger.DecodeHeaders(headers)
		out.Headers = console.Headers(out.stored)
		out.BodySHA256 = fmt.Sprintf("%x", sha256.Sum256(out.Body))
		if out.Body != nil && utf8.Valid(out.Body) {
			out.BodyText = new(string(out.Body))
		}
		if first != nil {
			out.FirstBodySHA256 = new(fmt.Sprintf("%x", first))
		}
		return out, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%s: %w: `hookledger quarantine list --all` shows what is, or was", h, ledger.ErrNotHeld)
	}
	return out, err
}

func (s *showAnswer) print(w io.Writer) error {
	t := console.NewTable("", "")
	t.Row("number", s.Number)
	t.Row("source", text(s.Source))
	t.Row("event", text(s.EventID))
	if s.Type != nil {
		t.Row("type", *s.Type)
	}
	t.Row("record", s.place())
	t.Row("time", console.ShortTime(s.RecordTime))
	t.Row("reason", s.Reason)
	t.Row("detail", orDash(s.Detail))
	t.Row("held since", console.ShortTime(s.QuarantinedAt))
	t.Row("resolved", s.resolved())
	t.Row("sha256", s.BodySHA256)
	if s.FirstBodySHA256 != nil {
		t.Row("stands", *s.FirstBodySHA256)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, "\nheaders"); err != nil {
		return err
	}
	if err := console.WriteHeaders(w, s.Headers); err != nil {
		return err
	}
	if s.Body == nil {
		_, err := fmt.Fprintln(w, "\nno body: a tombstone")
		return err
	}
	if _, err := fmt.Fprintf(w, "\nbody, %d bytes\n", len(s.Body)); err != nil {
		return err
	}
	return console.WriteBytes(w, s.Body)
}
