package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/schema/provider"
)

// result is what became of one held record in JSON.
type result struct {
	Number  string  `json:"number"`
	Source  *string `json:"source"`
	EventID *string `json:"event_id"`
	// Outcome is that of the record; quarantined or conflict if it stays.
	Outcome string  `json:"outcome"`
	Stays   bool    `json:"stays"`
	Before  bool    `json:"resolved_before"`
	Reason  *string `json:"reason"`
	Detail  *string `json:"detail"`
	Moves   []move  `json:"moves"`
}

// move is what a balance gains or loses, in minor units of currency.
type move struct {
	AccountID string `json:"account_id"`
	Currency  string `json:"currency"`
	Amount    int64  `json:"amount"`
}

// total is what all of them move in one currency.
type total struct {
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
}

// mendAnswer is hookledger.quarantine-retry.v1 and hookledger.quarantine-discard.v1.
type mendAnswer struct {
	DryRun  bool     `json:"dry_run"`
	Results []result `json:"results"`
	// Resolved are those that left, Stay those that are held as before, Before those that
	// were resolved already.
	Resolved int     `json:"resolved"`
	Stay     int     `json:"stay"`
	Before   int     `json:"resolved_before"`
	Moves    []total `json:"moves"`
}

// decision is Ledger.Retry or Ledger.Discard.
type decision func(context.Context, ledger.Held, ledger.Decision) (ledger.Resolved, error)

func quarantineRetry(a *app.App) *cobra.Command {
	var f filter
	var by, note string
	var dryRun bool
	c := &cobra.Command{
		Use:   "retry [NUMBER...]",
		Short: "Apply held records with today's configuration",
		Long: `Apply held records as if they came today, with today's configuration: each in a transaction
of its own, through the same walls as every record, so at most once. What still cannot be
applied stays. Workers may run; positions are not touched. A conflict is resolved if it
means today what stands.

--dry-run does the same and rolls it back: it shows the money that would move. Needs the
rights of hookledger_operator. Exit code 1 if some stay.`,
		Example: `  hookledger quarantine retry 7 8 --dry-run
  hookledger quarantine retry --source stripe --with-reason missing_account
  hookledger quarantine retry --all --note "mapping fixed in release 41"`,
		RunE: func(c *cobra.Command, args []string) error {
			signed := app.Signed{By: by, Reason: note}
			if err := signed.Complete(true); err != nil {
				return err
			}
			d := ledger.Decision{By: signed.By, Reason: signed.Reason, DryRun: dryRun}
			return mend(c.Context(), a, "retry", args, f, d, true)
		},
	}
	f.flags(c, true)
	c.Flags().BoolVar(&f.all, "all", false, "all that is in quarantine, or with --conflicts in conflict")
	c.Flags().StringVar(&note, "note", "", "what was mended, for whoever reads it later")
	c.Flags().StringVar(&by, "by", "", "who (default: the user of this system)")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen, change nothing")
	return c
}

func quarantineDiscard(a *app.App) *cobra.Command {
	var f filter
	var signed app.Signed
	var dryRun bool
	c := &cobra.Command{
		Use:   "discard [NUMBER...]",
		Short: "Decide against held records, for a reason",
		Long: `Decide against held records, for a reason. The event gets the outcome discarded, which
blocks every later replay of it, for as long as events are remembered (dedupe.keep); an
event that was applied meanwhile stands. A discarded conflict leaves the event as it is:
` + "`hookledger events amend`" + ` mends money.

Needs the rights of hookledger_operator.`,
		Example: `  hookledger quarantine discard 7 --reason "test event of the provider, ticket 123"
  hookledger quarantine discard --source acme --with-reason body_unreadable --reason "empty pings" --dry-run
  hookledger quarantine discard c7 --reason "the provider confirmed the first amount"`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := signed.Complete(dryRun); err != nil {
				return err
			}
			return mend(c.Context(), a, "discard", args, f, ledger.Decision{By: signed.By, Reason: signed.Reason, DryRun: dryRun}, false)
		},
	}
	f.flags(c, false)
	signed.Flags(c)
	c.Flags().BoolVar(&f.all, "all", false, "all that is in quarantine, or with --conflicts in conflict")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen, change nothing")
	return c
}

// mend decides about what args or f name, one after the other.
func mend(ctx context.Context, a *app.App, command string, args []string, f filter, d ledger.Decision, mapped bool) error {
	if err := f.check(args); err != nil {
		return err
	}
	numbers, err := parseHeld(args)
	if err != nil {
		return err
	}
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	mapper, err := today(cfg, mapped)
	if err != nil {
		return err
	}
	pool, err := a.OpenDatabase(ctx, cfg, "quarantine")
	if err != nil {
		return err
	}
	defer pool.Close()
	books := ledger.New(pool, mapper, ledger.Options{})
	decide := decision(books.Discard)
	if mapped {
		decide = books.Retry
	}
	out := mendAnswer{DryRun: d.DryRun, Results: []result{}, Moves: []total{}}
	if len(numbers) > 0 {
		err = out.decide(ctx, numbers, d, decide)
	} else {
		err = out.decideAll(ctx, pool, f, d, decide)
	}
	// What was done is told even if the next one failed.
	if err != nil && len(out.Results) == 0 {
		return app.RightsError(err)
	}
	if printErr := a.Print("quarantine-"+command, out, func(w io.Writer) error { return out.print(w, command) }); printErr != nil {
		return printErr
	}
	switch {
	case err != nil:
		return app.RightsError(err)
	case out.Stay > 0 && !d.DryRun:
		return fmt.Errorf("%d of %d are held as before: mend what the reason says, then retry", out.Stay, len(out.Results))
	}
	return nil
}

// today is the mapping of the configuration; nobody needs one to decide against records.
func today(cfg *config.Loaded, mapped bool) (ledger.Mapper, error) {
	if !mapped {
		return nil, nil
	}
	if err := cfg.RequireSources(); err != nil {
		return nil, err
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return nil, app.Usage(err)
	}
	return set.Map, nil
}

// page is how many numbers are read at once.
const page = 500

// decideAll decides about what f selects now; what comes in later is left for later.
func (m *mendAnswer) decideAll(ctx context.Context, pool *pgxpool.Pool, f filter, d ledger.Decision, decide decision) error {
	for after := int64(0); ; {
		var list []held
		err := app.ReadOnly(ctx, pool, func(tx pgx.Tx) (err error) {
			list, err = f.read(ctx, tx, f.conflicts, false, after, page)
			return err
		})
		if err != nil {
			return err
		}
		numbers := make([]ledger.Held, len(list))
		for i, h := range list {
			numbers[i], after = ledger.Held{Conflict: h.Conflict, ID: h.ID}, h.ID
		}
		if err := m.decide(ctx, numbers, d, decide); err != nil || len(list) < page {
			return err
		}
	}
}

func (m *mendAnswer) decide(ctx context.Context, numbers []ledger.Held, d ledger.Decision, decide decision) error {
	for _, h := range numbers {
		r, err := decide(ctx, h, d)
		one := result{Number: h.String(), Source: filled(r.Source), EventID: filled(r.EventID), Moves: []move{}}
		var wait *ledger.WaitError
		switch {
		case err == nil:
			one.Outcome, one.Stays, one.Reason, one.Detail = r.Outcome.String(), r.Stays, filled(r.Reason), filled(r.Detail)
		case errors.Is(err, ledger.ErrResolvedBefore):
			one.Before, one.Detail = true, filled(err.Error())
		case errors.As(err, &wait):
			one.Outcome, one.Stays, one.Reason, one.Detail = ledger.Quarantined.String(), true, &wait.Kind, &wait.Detail
		case errors.Is(err, ledger.ErrNotHeld):
			return fmt.Errorf("%w: `hookledger quarantine list --all` shows what is, or was", err)
		default:
			return err
		}
		for _, v := range r.Moves {
			one.Moves = append(one.Moves, move{v.Account, v.Currency, v.Amount})
			m.add(v.Currency, v.Amount)
		}
		switch {
		case one.Before:
			m.Before++
		case one.Stays:
			m.Stay++
		default:
			m.Resolved++
		}
		m.Results = append(m.Results, one)
	}
	return nil
}

// add keeps the totals sorted by currency.
func (m *mendAnswer) add(currency string, amount int64) {
	i, found := slices.BinarySearchFunc(m.Moves, currency, func(t total, c string) int { return cmp.Compare(t.Currency, c) })
	if !found {
		m.Moves = slices.Insert(m.Moves, i, total{Currency: currency})
	}
	m.Moves[i].Amount += amount
}

// maxRows is how many records a person is shown; JSON has all of them.
const maxRows = 100

func (m *mendAnswer) print(w io.Writer, command string) error {
	if len(m.Results) == 0 {
		_, err := fmt.Fprintln(w, "nothing is held that this selects")
		return err
	}
	t := console.NewTable("number>", "source", "event", "outcome", "money", "detail")
	for i, r := range m.Results {
		if i == maxRows {
			break
		}
		outcome, detail := r.Outcome, text(r.Detail)
		switch {
		case r.Before:
			outcome = "-"
		case r.Stays:
			outcome, detail = "stays", text(r.Reason)+": "+text(r.Detail)
		}
		t.Row(r.Number, text(r.Source), text(r.EventID), outcome, r.money(), detail)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if rest := len(m.Results) - maxRows; rest > 0 {
		if _, err := fmt.Fprintf(w, "… and %d more: --json has all\n", rest); err != nil {
			return err
		}
	}
	done := map[string]string{"retry": "applied or settled", "discard": "discarded"}[command]
	if m.DryRun {
		done = "would be " + done
	}
	var sums []string
	for _, s := range m.Moves {
		sums = append(sums, console.Amount(s.Amount, s.Currency))
	}
	line := fmt.Sprintf("\n%d %s, %d stay, %d resolved before", m.Resolved, done, m.Stay, m.Before)
	if len(sums) > 0 {
		line += "; money: " + strings.Join(sums, ", ")
	}
	if m.DryRun {
		line += "\nnothing was changed: this was a dry run"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func (r *result) money() string {
	if len(r.Moves) == 0 {
		return "-"
	}
	var parts []string
	for _, m := range r.Moves {
		parts = append(parts, m.AccountID+" "+console.Amount(m.Amount, m.Currency))
	}
	return strings.Join(parts, ", ")
}
