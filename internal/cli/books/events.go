package books

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

// Events makes `hookledger events`, with the commands of others that repair.
func Events(a *app.App, more ...*cobra.Command) *cobra.Command {
	return app.Group("events", "Show what became of events, and mend it", append([]*cobra.Command{eventsList(a), eventsShow(a), eventsGet(a)}, more...)...)
}

// event is a row of processed_events in JSON.
type event struct {
	Source      string  `json:"source"`
	EventID     string  `json:"event_id"`
	Type        string  `json:"type"`
	Outcome     string  `json:"outcome"`
	Topic       string  `json:"topic"`
	Partition   int32   `json:"partition"`
	Offset      int64   `json:"offset"`
	OccurredAt  *string `json:"occurred_at"`
	ReceivedAt  *string `json:"received_at"`
	ProcessedAt *string `json:"processed_at"`
	BodySHA256  string  `json:"body_sha256"`
}

func scanEvent(row pgx.CollectableRow) (event, error) {
	var e event
	var occurred *time.Time
	var received, processed time.Time
	var hash []byte
	err := row.Scan(&e.Source, &e.EventID, &e.Type, &e.Outcome, &e.Topic, &e.Partition, &e.Offset,
		&occurred, &received, &processed, &hash)
	if occurred != nil {
		e.OccurredAt = console.JSONTime(*occurred)
	}
	e.ReceivedAt, e.ProcessedAt = console.JSONTime(received), console.JSONTime(processed)
	e.BodySHA256 = fmt.Sprintf("%x", hash)
	return e, err
}

// outcomes are those that have a row in processed_events.
var outcomes = []string{"applied", "ignored", "same_effect", "stale", "discarded"}

// printHeld says what was accepted and is no event yet, so that nobody looks for it in
// the list in vain.
func printHeld(w io.Writer, quarantined, conflicts int64) error {
	if quarantined == 0 && conflicts == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nwaiting for a person: %d in quarantine, %s: see `hookledger quarantine list`\n", quarantined, console.Count(conflicts, "conflict", "conflicts"))
	return err
}

func eventsList(a *app.App) *cobra.Command {
	var source, outcome, kind, account, object, since, until string
	var limit int
	var wait patience
	c := &cobra.Command{
		Use:   "list",
		Short: "List the latest events and their outcomes",
		Long: `List the latest events and their outcomes: applied (money moved), ignored (the event
means no money), same_effect (another event already told of the movement), stale
(an older status), discarded (a person decided). What waits in quarantine is counted below
the list, and listed by ` + "`hookledger quarantine list`" + `. Events that were forgotten are not
listed; their entries are, by ` + "`hookledger accounts show`" + `.`,
		Args: cobra.NoArgs,
		Example: `  hookledger events list
  hookledger events list --source stripe --outcome ignored --limit 100
  hookledger events list --account user_1 --since 2026-11-29T03:00:00Z
  hookledger events list --object pi_123        # a movement, or an object with a status
  hookledger events list --json | jq -r '.events[].event_id'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			if outcome != "" && !slices.Contains(outcomes, outcome) {
				return app.Usage(fmt.Errorf("--outcome %s: use one of %s; what waits for a person is in `hookledger quarantine list`", outcome, strings.Join(outcomes, ", ")))
			}
			if err := wait.check(); err != nil {
				return err
			}
			from, err := app.Time("--since", since)
			if err != nil {
				return err
			}
			before, err := app.Time("--until", until)
			if err != nil {
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
			out := struct {
				Events      []event `json:"events"`
				Quarantined int64   `json:"quarantined"`
				Conflicts   int64   `json:"conflicts"`
			}{Events: []event{}}
			err = wait.read(c.Context(), pool, "ask for one event with `hookledger events show`", func(tx pgx.Tx) error {
				rows, err := tx.Query(c.Context(), sqlEvents, pgx.QueryExecModeExec, source, outcome, kind, account, object, from, before, limit)
				if err != nil {
					return err
				}
				if out.Events, err = pgx.AppendRows(out.Events, rows, scanEvent); err != nil {
					return err
				}
				return tx.QueryRow(c.Context(), sqlHeld, pgx.QueryExecModeExec, source).Scan(&out.Quarantined, &out.Conflicts)
			})
			if err != nil {
				return err
			}
			return a.Print("events-list", out, func(w io.Writer) error {
				if len(out.Events) == 0 {
					if _, err := fmt.Fprintln(w, "no events"); err != nil {
						return err
					}
					return printHeld(w, out.Quarantined, out.Conflicts)
				}
				t := console.NewTable("source", "event", "type", "outcome", "partition>", "offset>", "received", "processed")
				for _, e := range out.Events {
					t.Row(e.Source, e.EventID, e.Type, e.Outcome, fmt.Sprint(e.Partition), fmt.Sprint(e.Offset),
						console.ShortTime(e.ReceivedAt), console.ShortTime(e.ProcessedAt))
				}
				if err := t.Write(w); err != nil {
					return err
				}
				return printHeld(w, out.Quarantined, out.Conflicts)
			})
		},
	}
	c.Flags().StringVar(&source, "source", "", "only events of this source")
	c.Flags().StringVar(&outcome, "outcome", "", "only this outcome: "+strings.Join(outcomes, ", "))
	c.Flags().StringVar(&kind, "type", "", "only events of this type")
	c.Flags().StringVar(&account, "account", "", "only events that moved money of this account, or were amended to")
	c.Flags().StringVar(&object, "object", "", "only events of this movement, or that set the status of this object last")
	c.Flags().StringVar(&since, "since", "", "only events received at or after this time (RFC 3339)")
	c.Flags().StringVar(&until, "until", "", "only events received before this time (RFC 3339)")
	c.Flags().IntVar(&limit, "limit", 20, "at most so many events, the latest processed; 0 is all")
	wait.flag(c)
	return c
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
