package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/books"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/ledger/amend"
	"hookledger/internal/ops"
	"hookledger/schema"
)

// amendAnswer is hookledger.events-amend.v1.
type amendAnswer struct {
	// AmendmentID is null in a dry run, and if there was nothing to mend.
	AmendmentID *string `json:"amendment_id"`
	Source      string  `json:"source"`
	EventID     string  `json:"event_id"`
	// Kind is amend or reverse.
	Kind    string        `json:"kind"`
	DryRun  bool          `json:"dry_run"`
	Entries []amendEntry  `json:"entries"`
	Moves   []amendedMove `json:"moves"`
	// SameEffect counts postings that another event has told of.
	SameEffect int `json:"same_effect"`
	// Resolved is the number of the conflict that is closed by it, null if none is.
	Resolved *string `json:"conflict_resolved"`
}

// amendEntry is an entry of an amendment; opposite ones take back what stood.
type amendEntry struct {
	AccountID  string `json:"account_id"`
	Contra     string `json:"contra"`
	Amount     int64  `json:"amount"`
	Currency   string `json:"currency"`
	Rule       string `json:"rule"`
	MovementID string `json:"movement_id"`
	Opposite   bool   `json:"opposite"`
}

// amendedMove is what a balance gains or loses, and what it is then.
type amendedMove struct {
	AccountID string `json:"account_id"`
	Currency  string `json:"currency"`
	Amount    int64  `json:"amount"`
	Balance   int64  `json:"balance"`
}

// Amend makes `hookledger events amend`.
func Amend(a *app.App) *cobra.Command {
	var signed app.Signed
	var source, conflict string
	var reverse, dryRun bool
	c := &cobra.Command{
		Use:   "amend EVENT_ID",
		Short: "Mend money that an event moved wrongly",
		Long: `Mend money that an event moved wrongly: one transaction adds the opposites of what stands
and the postings of what the event means today, by its record in the topic and today's
configuration. --reverse adds the opposites alone. --conflict c7 takes the bytes of that
conflict instead, and closes it: the provider sent the event again, and the second one is
right.

--dry-run does the same and rolls it back: look at the money first. Amendments are in
Postgres alone, the topic cannot heal them. Needs the rights of hookledger_operator, and
in Kafka to read the topic.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger events amend evt_1 --dry-run
  hookledger events amend evt_1 --reason "the fee was counted as income until release 41"
  hookledger events amend evt_1 --reverse --reason "test payment in production, ticket 123"
  hookledger events amend evt_1 --conflict c7 --reason "the provider confirmed the second amount"`,
		RunE: func(c *cobra.Command, args []string) error {
			if reverse && conflict != "" {
				return app.Usage(errors.New("--reverse and --conflict exclude each other: a reversal reads no bytes"))
			}
			if err := signed.Complete(dryRun); err != nil {
				return err
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "events")
			if err != nil {
				return err
			}
			defer pool.Close()
			r := amend.Request{By: signed.By, Reason: signed.Reason, DryRun: dryRun}
			if r.Reason == "" {
				r.Reason = "dry run"
			}
			f, err := find(c.Context(), pool, cfg, source, args[0])
			if err != nil {
				return err
			}
			r.Source, r.EventID = f.Source, f.EventID
			if !reverse {
				if err := readMeaning(c.Context(), a, cfg, pool, f, conflict, &r); err != nil {
					return err
				}
			}
			done, err := amend.Amend(c.Context(), pool, r)
			if err != nil {
				return app.RightsError(err)
			}
			out := newAmendAnswer(&r, &done)
			var open error
			if conflict != "" && !dryRun {
				if open = closeConflict(c.Context(), cfg, pool, conflict, signed); open == nil {
					out.Resolved = &conflict
				}
			}
			return errors.Join(a.Print("events-amend", out, func(w io.Writer) error { return out.print(w) }), open)
		},
	}
	signed.Flags(c)
	c.Flags().StringVar(&source, "source", "", "the key of its source; without it all configured sources are asked")
	c.Flags().StringVar(&conflict, "conflict", "", "take the bytes of this conflict, such as c7")
	c.Flags().BoolVar(&reverse, "reverse", false, "take back what stands, and no more")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show the money, change nothing")
	return c
}

// find reads which event is meant. What it says of usage and of what is not on record is
// no error of the database.
func find(ctx context.Context, pool *pgxpool.Pool, cfg *config.Loaded, source, id string) (books.Found, error) {
	var f books.Found
	var findErr error
	err := app.ReadOnly(ctx, pool, func(tx pgx.Tx) error {
		f, findErr = books.Find(ctx, tx, cfg, source, id)
		return nil
	})
	return f, errors.Join(err, findErr)
}

// readMeaning reads what the event means today, from its record or from a conflict.
func readMeaning(ctx context.Context, a *app.App, cfg *config.Loaded, pool *pgxpool.Pool, f books.Found, conflict string, r *amend.Request) error {
	mapper, err := today(cfg, true)
	if err != nil {
		return err
	}
	var ev schema.Event
	switch {
	case conflict != "":
		ev, r.Record, err = conflictEvent(ctx, pool, conflict)
		if err == nil && (ev.Source != f.Source || ev.ID != f.EventID) {
			err = app.Usage(fmt.Errorf("%s is a conflict of another event: %s", conflict, ev.ID))
		}
	case f.BodySHA256 == nil:
		return errors.New("the event is remembered by its entries alone, so its record cannot be found: --reverse takes back what stands")
	default:
		ev, r.Record, err = topicEvent(ctx, a, cfg, f)
		if errors.Is(err, ops.ErrRecordGone) {
			err = fmt.Errorf("%w: --reverse takes back what stands without reading it", err)
		}
	}
	if err != nil {
		return err
	}
	m, err := mapper(&ev)
	if err != nil {
		return fmt.Errorf("what the event means today: %w", err)
	}
	r.Meaning = &m
	return nil
}

func topicEvent(ctx context.Context, a *app.App, cfg *config.Loaded, f books.Found) (schema.Event, amend.Place, error) {
	place := amend.Place{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset}
	record, err := f.Read(ctx, a, cfg)
	if err != nil {
		return schema.Event{}, place, err
	}
	ev, err := schema.DecodeRecord(record.Key, record.Value, books.HeadersOf(record))
	return ev, place, err
}

func conflictEvent(ctx context.Context, pool *pgxpool.Pool, number string) (schema.Event, amend.Place, error) {
	var place amend.Place
	numbers, err := parseHeld([]string{number})
	if err != nil {
		return schema.Event{}, place, err
	}
	if !numbers[0].Conflict {
		return schema.Event{}, place, app.Usage(errors.New("--conflict is a number such as c7: `hookledger quarantine list --conflicts` shows them"))
	}
	var s showAnswer
	var showErr error
	err = app.ReadOnly(ctx, pool, func(tx pgx.Tx) error {
		s, showErr = readShow(ctx, tx, numbers[0])
		return nil
	})
	if err := errors.Join(err, showErr); err != nil {
		return schema.Event{}, place, err
	}
	place = amend.Place{Topic: s.Topic, Partition: s.Partition, Offset: s.Offset}
	ev, err := schema.DecodeRecord(s.Key, s.Body, s.stored)
	return ev, place, err
}

// closeConflict decides anew about a conflict whose event means now what it says.
func closeConflict(ctx context.Context, cfg *config.Loaded, pool *pgxpool.Pool, number string, signed app.Signed) error {
	numbers, err := parseHeld([]string{number})
	if err != nil {
		return err
	}
	mapper, err := today(cfg, true)
	if err != nil {
		return err
	}
	done, err := ledger.New(pool, mapper, ledger.Options{}).Retry(ctx, numbers[0], ledger.Decision{By: signed.By, Reason: signed.Reason})
	if err == nil && done.Stays {
		err = errors.New(done.Detail)
	}
	if err != nil && !errors.Is(err, ledger.ErrResolvedBefore) {
		return fmt.Errorf("the money stands, but the conflict is still open: %w: run `hookledger quarantine retry %s`", err, number)
	}
	return nil
}

func newAmendAnswer(r *amend.Request, done *amend.Amendment) amendAnswer {
	out := amendAnswer{AmendmentID: filled(done.ID), Source: r.Source, EventID: r.EventID, Kind: "amend", DryRun: r.DryRun,
		Entries: []amendEntry{}, Moves: []amendedMove{}, SameEffect: done.SameEffect}
	if r.Meaning == nil {
		out.Kind = "reverse"
	}
	for _, e := range done.Entries {
		out.Entries = append(out.Entries, amendEntry{e.Account, e.Contra, e.Amount, e.Currency, e.Rule, e.Movement, e.Opposite})
	}
	for _, m := range done.Moves {
		out.Moves = append(out.Moves, amendedMove{m.Account, m.Currency, m.Amount, m.Balance})
	}
	return out
}

func (o *amendAnswer) print(w io.Writer) error {
	if o.SameEffect > 0 {
		if _, err := fmt.Fprintf(w, "%d of its postings are on record under another event, with equal money: they stay there\n", o.SameEffect); err != nil {
			return err
		}
	}
	if o.Resolved != nil {
		if _, err := fmt.Fprintf(w, "conflict %s is closed\n", *o.Resolved); err != nil {
			return err
		}
	}
	if len(o.Entries) == 0 {
		_, err := fmt.Fprintln(w, "nothing to mend: what stands is what it should be")
		return err
	}
	entries := console.NewTable("entry", "account", "amount>", "contra", "rule", "movement")
	for _, e := range o.Entries {
		kind := "posting"
		if e.Opposite {
			kind = "opposite"
		}
		entries.Row(kind, e.AccountID, console.Amount(e.Amount, e.Currency), e.Contra, e.Rule, e.MovementID)
	}
	if err := entries.Write(w); err != nil {
		return err
	}
	moves := console.NewTable("account", "moves>", "balance then>", "")
	for _, m := range o.Moves {
		note := ""
		if m.Balance < 0 {
			note = "below zero"
		}
		moves.Row(m.AccountID, console.Amount(m.Amount, m.Currency), console.Amount(m.Balance, m.Currency), note)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := moves.Write(w); err != nil {
		return err
	}
	line := "nothing was changed: this was a dry run; with --reason it is done"
	if o.AmendmentID != nil {
		line = strings.Join([]string{"amendment", *o.AmendmentID, "of", console.Safe(o.EventID)}, " ")
	}
	_, err := fmt.Fprintf(w, "\n%s\n", line)
	return err
}
