package books

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
)

// patience bounds reads that no index serves. The ledger has no index beyond its walls,
// since each would cost every entry; a look at 3 a.m. can wait, vacuum and the workers'
// memory of pages should not.
type patience time.Duration

const defaultPatience = time.Minute

// flag adds --patience to c.
func (p *patience) flag(c *cobra.Command) {
	c.Flags().DurationVar((*time.Duration)(p), "patience", defaultPatience, "give up after this long; no index serves this look")
}

func (p patience) check() error {
	if time.Duration(p) < time.Millisecond {
		return app.Usage(fmt.Errorf("--patience is %s: set 1ms or more", time.Duration(p)))
	}
	return nil
}

// codeQueryCanceled is Postgres's code for a statement timeout.
const codeQueryCanceled = "57014"

// read is app.ReadOnly for so long at most.
func (p patience) read(ctx context.Context, pool *pgxpool.Pool, narrow string, f func(pgx.Tx) error) error {
	err := app.ReadOnly(ctx, pool, func(tx pgx.Tx) error {
		ms := fmt.Sprintf("%dms", time.Duration(p).Milliseconds())
		if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, pgx.QueryExecModeExec, ms); err != nil {
			return err
		}
		return f(tx)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeQueryCanceled {
		return fmt.Errorf("it took longer than %s: %s, or wait longer with --patience", time.Duration(p), narrow)
	}
	return err
}
