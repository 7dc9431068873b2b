package books

import (
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/ingest/payments"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

func accountsDuplicates(a *app.App) *cobra.Command {
	var window, since time.Duration
	var limit int
	c := &cobra.Command{
		Use:   "duplicates",
		Short: "List payments that mean the same as an earlier one, under another key",
		Long: `List payments of one client with the same accounts, amount, currency and reference as an
earlier one within a window, under another Idempotency-Key. Either the client meant both, or
it makes a new key for each retry: then it pays twice, and has to be told.`,
		Args: cobra.NoArgs,
		Example: `  hookledger accounts duplicates
  hookledger accounts duplicates --since 720h --window 1h --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			if window == 0 {
				window = cfg.Payments.DuplicateWindow
			}
			if limit < 1 || window < 0 || since <= 0 {
				return app.Usage(fmt.Errorf("--limit, --window and --since must be positive"))
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "accounts")
			if err != nil {
				return err
			}
			defer pool.Close()
			out := struct {
				WindowSeconds float64              `json:"window_seconds"`
				Duplicates    []payments.Duplicate `json:"duplicates"`
			}{window.Seconds(), []payments.Duplicate{}}
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				list, err := payments.Duplicates(c.Context(), tx, time.Now().Add(-since), window, limit)
				out.Duplicates = append(out.Duplicates, list...)
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("accounts-duplicates", out, func(w io.Writer) error { return printDuplicates(w, out.Duplicates, window) })
		},
	}
	c.Flags().DurationVar(&window, "window", 0, "how far apart two payments may be (default payments.duplicate_window)")
	c.Flags().DurationVar(&since, "since", 24*time.Hour, "look at payments of so long")
	c.Flags().IntVar(&limit, "limit", 100, "at most so many rows")
	return c
}

func printDuplicates(w io.Writer, list []payments.Duplicate, window time.Duration) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "no two payments within %s mean the same under different keys\n", window)
		return err
	}
	t := console.NewTable("created", "client", "from", "to", "amount>", "reference", "key", "key before", "apart>")
	for _, d := range list {
		t.Row(console.Time(d.CreatedAt), d.Client, d.From, d.To, console.Amount(d.Amount, d.Currency), d.Reference, d.Key, d.OfKey,
			d.CreatedAt.Sub(d.OfCreatedAt).Round(time.Millisecond).String())
	}
	return t.Write(w)
}
