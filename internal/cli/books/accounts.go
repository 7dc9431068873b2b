package books

import (
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

// Accounts makes `hookledger accounts`.
func Accounts(a *app.App) *cobra.Command {
	return app.Group("accounts", "Show balances and what they are made of", accountsList(a), accountsShow(a), accountsDuplicates(a))
}

// account is a row of accounts in JSON; balance is in minor units of currency.
type account struct {
	AccountID  string `json:"account_id"`
	Currency   string `json:"currency"`
	Balance    int64  `json:"balance"`
	EntryCount int64  `json:"entry_count"`
	UpdatedAt  string `json:"updated_at"`
}

func accountsList(a *app.App) *cobra.Command {
	var currency, after string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List every account with its balance",
		Long: `List every account with its balance, one row for each currency. With --json amounts
are integers in minor units (cents) with the currency beside them.`,
		Args: cobra.NoArgs,
		Example: `  hookledger accounts list
  hookledger accounts list --currency EUR --limit 20
  hookledger accounts list --json | jq '[.accounts[] | select(.currency == "EUR") | .balance] | add'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "accounts")
			if err != nil {
				return err
			}
			defer pool.Close()
			out := struct {
				Accounts []account `json:"accounts"`
			}{[]account{}}
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				rows, err := tx.Query(c.Context(), sqlAccounts, pgx.QueryExecModeExec, currency, after, limit)
				if err != nil {
					return err
				}
				out.Accounts, err = pgx.AppendRows(out.Accounts, rows, scanAccount)
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("accounts-list", out, func(w io.Writer) error { return printAccounts(w, out.Accounts) })
		},
	}
	c.Flags().StringVar(&currency, "currency", "", "only this currency, such as EUR")
	c.Flags().StringVar(&after, "after", "", "only accounts whose ID sorts after this one")
	c.Flags().IntVar(&limit, "limit", 0, "at most so many rows; 0 is all")
	return c
}

func scanAccount(row pgx.CollectableRow) (account, error) {
	var acc account
	var updated time.Time
	err := row.Scan(&acc.AccountID, &acc.Currency, &acc.Balance, &acc.EntryCount, &updated)
	acc.UpdatedAt = updated.UTC().Format(time.RFC3339Nano)
	return acc, err
}

func printAccounts(w io.Writer, accounts []account) error {
	if len(accounts) == 0 {
		_, err := fmt.Fprintln(w, "no accounts: an account begins with its first entry")
		return err
	}
	t := console.NewTable("account", "balance>", "entries>", "changed")
	for _, acc := range accounts {
		updated, _ := time.Parse(time.RFC3339Nano, acc.UpdatedAt)
		t.Row(acc.AccountID, console.Amount(acc.Balance, acc.Currency), fmt.Sprint(acc.EntryCount), console.Time(updated))
	}
	return t.Write(w)
}

func accountsShow(a *app.App) *cobra.Command {
	var limit int
	var until string
	var wait patience
	c := &cobra.Command{
		Use:   "show ACCOUNT",
		Short: "Show one account: its balances and its latest entries",
		Long: `Show one account: its balances, and its latest entries with the event, payment or amendment
behind each and what the balance came to with it. With --at all of it is as it was then,
added up from the entries. Needs the rights of hookledger_reader.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger accounts show user_1
  hookledger accounts show user_1 --at 2026-11-29T03:00:00Z
  hookledger accounts show user_1 --limit 0 --json`,
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			if err := wait.check(); err != nil {
				return err
			}
			at, err := app.Time("--at", until)
			if err != nil {
				return err
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "accounts")
			if err != nil {
				return err
			}
			defer pool.Close()
			out := struct {
				Accounts []account `json:"accounts"`
				Entries  []entry   `json:"entries"`
			}{[]account{}, []entry{}}
			err = wait.read(c.Context(), pool, "ask for the balance alone with `hookledger accounts list --after`", func(tx pgx.Tx) error {
				sql, params := sqlAccount, []any{pgx.QueryExecModeExec, args[0]}
				if at != nil {
					sql, params = sqlAccountAt, append(params, at)
				}
				rows, err := tx.Query(c.Context(), sql, params...)
				if err != nil {
					return err
				}
				if out.Accounts, err = pgx.AppendRows(out.Accounts, rows, scanAccount); err != nil {
					return err
				}
				if rows, err = tx.Query(c.Context(), sqlEntriesOfAccount, pgx.QueryExecModeExec, args[0], limit, at); err != nil {
					return err
				}
				out.Entries, err = pgx.AppendRows(out.Entries, rows, scanAccountEntry)
				return err
			})
			if err != nil {
				return err
			}
			if len(out.Accounts) == 0 && at != nil {
				return fmt.Errorf("account %q had no entries at %s", args[0], until)
			}
			if len(out.Accounts) == 0 {
				return fmt.Errorf("account %q has no entries: `hookledger accounts list` shows those that have", args[0])
			}
			return a.Print("accounts-show", out, func(w io.Writer) error {
				if err := printAccounts(w, out.Accounts); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(w, "\nlatest entries\n"); err != nil {
					return err
				}
				return printEntries(w, out.Entries)
			})
		},
	}
	c.Flags().StringVar(&until, "at", "", "as it was at this time (RFC 3339)")
	c.Flags().IntVar(&limit, "limit", 20, "at most so many entries, the latest; 0 is all")
	wait.flag(c)
	return c
}
