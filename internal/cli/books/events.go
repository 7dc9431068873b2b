package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema"
)

// Events makes `hookledger events`.
func Events(a *app.App) *cobra.Command {
	return app.Group("events", "Show what became of events", eventsList(a), eventsShow(a))
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

func eventsList(a *app.App) *cobra.Command {
	var source, outcome string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List the latest events and their outcomes",
		Long: `List the latest events and their outcomes: applied (money moved), ignored (the event
means no money), same_effect (another event already told of the movement), stale
(an older status), discarded (a person decided).`,
		Args: cobra.NoArgs,
		Example: `  hookledger events list
  hookledger events list --source stripe --outcome ignored --limit 100
  hookledger events list --json | jq -r '.events[].event_id'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			if outcome != "" && !contains(outcomes, outcome) {
				return app.Usage(fmt.Errorf("--outcome %s: use one of %s", outcome, strings.Join(outcomes, ", ")))
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
				Events []event `json:"events"`
			}{[]event{}}
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				rows, err := tx.Query(c.Context(), sqlEvents, pgx.QueryExecModeExec, source, outcome, limit)
				if err != nil {
					return err
				}
				out.Events, err = pgx.AppendRows(out.Events, rows, scanEvent)
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("events-list", out, func(w io.Writer) error {
				if len(out.Events) == 0 {
					_, err := fmt.Fprintln(w, "no events")
					return err
				}
				t := console.NewTable("source", "event", "type", "outcome", "partition>", "offset>", "received", "processed")
				for _, e := range out.Events {
					t.Row(e.Source, e.EventID, e.Type, e.Outcome, fmt.Sprint(e.Partition), fmt.Sprint(e.Offset),
						shortTime(e.ReceivedAt), shortTime(e.ProcessedAt))
				}
				return t.Write(w)
			})
		},
	}
	c.Flags().StringVar(&source, "source", "", "only events of this source")
	c.Flags().StringVar(&outcome, "outcome", "", "only this outcome: "+strings.Join(outcomes, ", "))
	c.Flags().IntVar(&limit, "limit", 20, "at most so many events, the latest processed; 0 is all")
	return c
}

// life is everything on record about one event ID.
type life struct {
	Event     *event     `json:"event"`
	Outcome   string     `json:"outcome"`
	Entries   []entry    `json:"entries"`
	Conflicts []conflict `json:"conflicts"`
	// Quarantined are its records that could not be applied.
	Quarantined []quarantined `json:"quarantined"`
}

type conflict struct {
	Partition  int32   `json:"partition"`
	Offset     int64   `json:"offset"`
	SeenAt     *string `json:"seen_at"`
	ResolvedAt *string `json:"resolved_at"`
	BodySHA256 string  `json:"body_sha256"`
}

type quarantined struct {
	ID            int64   `json:"id"`
	Partition     int32   `json:"partition"`
	Offset        int64   `json:"offset"`
	Reason        string  `json:"reason"`
	Detail        string  `json:"detail"`
	QuarantinedAt *string `json:"quarantined_at"`
	ResolvedAt    *string `json:"resolved_at"`
}

func eventsShow(a *app.App) *cobra.Command {
	var source string
	c := &cobra.Command{
		Use:   "show EVENT_ID",
		Short: "Show one event: its record, outcome, entries and conflicts",
		Args:  cobra.ExactArgs(1),
		Example: `  hookledger events show evt_1
  hookledger events show evt_1 --source stripe --json`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			sources := []string{source}
			if source == "" {
				sources = cfg.SourceKeys()
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "events")
			if err != nil {
				return err
			}
			defer pool.Close()
			var found []life
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				for _, s := range sources {
					l, err := readLife(c.Context(), tx, s, args[0])
					if err != nil {
						return err
					}
					if l.known() {
						found = append(found, l)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			switch len(found) {
			case 0:
				return fmt.Errorf("event %q of %s is not on record: it may still be in the topic unread, or was never accepted", args[0], strings.Join(sources, ", "))
			case 1:
			default:
				return app.Usage(errors.New("several sources know this event ID: name one with --source"))
			}
			return a.Print("events-show", found[0], func(w io.Writer) error { return printLife(w, args[0], found[0]) })
		},
	}
	c.Flags().StringVar(&source, "source", "", "the key of its source; without it all configured sources are asked")
	return c
}

func (l *life) known() bool {
	return l.Event != nil || len(l.Entries)+len(l.Conflicts)+len(l.Quarantined) > 0
}

func readLife(ctx context.Context, tx pgx.Tx, source, id string) (life, error) {
	key := pgtype.UUID{Bytes: schema.KeyOf(source, id), Valid: true}
	l := life{Entries: []entry{}, Conflicts: []conflict{}, Quarantined: []quarantined{}}
	rows, err := tx.Query(ctx, sqlEvent, pgx.QueryExecModeExec, key)
	if err != nil {
		return l, err
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return l, err
	}
	if len(events) > 0 {
		l.Event, l.Outcome = &events[0], events[0].Outcome
	}
	if rows, err = tx.Query(ctx, sqlEntriesOfEvent, pgx.QueryExecModeExec, key); err != nil {
		return l, err
	}
	if l.Entries, err = pgx.AppendRows(l.Entries, rows, scanEntry); err != nil {
		return l, err
	}
	if rows, err = tx.Query(ctx, sqlConflictsOfEvent, pgx.QueryExecModeExec, key); err != nil {
		return l, err
	}
	if l.Conflicts, err = pgx.AppendRows(l.Conflicts, rows, scanConflict); err != nil {
		return l, err
	}
	if rows, err = tx.Query(ctx, sqlQuarantineOfEvent, pgx.QueryExecModeExec, source, id); err != nil {
		return l, err
	}
	l.Quarantined, err = pgx.AppendRows(l.Quarantined, rows, scanQuarantined)
	if l.Event == nil {
		l.Outcome = l.outcomeWithoutEvent()
	}
	return l, err
}

// outcomeWithoutEvent is the outcome of an event that has no row: forgotten, or never
// applied.
func (l *life) outcomeWithoutEvent() string {
	if len(l.Entries) > 0 {
		return "applied"
	}
	for _, q := range l.Quarantined {
		if q.ResolvedAt == nil {
			return "quarantined"
		}
	}
	return ""
}

func scanConflict(row pgx.CollectableRow) (conflict, error) {
	var c conflict
	var seen time.Time
	var resolved *time.Time
	var hash []byte
	err := row.Scan(&c.Partition, &c.Offset, &seen, &resolved, &hash)
	c.SeenAt = console.JSONTime(seen)
	if resolved != nil {
		c.ResolvedAt = console.JSONTime(*resolved)
	}
	c.BodySHA256 = fmt.Sprintf("%x", hash)
	return c, err
}

func scanQuarantined(row pgx.CollectableRow) (quarantined, error) {
	var q quarantined
	var at time.Time
	var resolved *time.Time
	err := row.Scan(&q.ID, &q.Partition, &q.Offset, &q.Reason, &q.Detail, &at, &resolved)
	q.QuarantinedAt = console.JSONTime(at)
	if resolved != nil {
		q.ResolvedAt = console.JSONTime(*resolved)
	}
	return q, err
}

func printLife(w io.Writer, id string, l life) error {
	t := console.NewTable("", "")
	t.Row("event", id)
	if e := l.Event; e != nil {
		t.Row("source", e.Source)
		t.Row("type", e.Type)
		t.Row("outcome", e.Outcome)
		t.Row("record", fmt.Sprintf("%s/%d@%d", e.Topic, e.Partition, e.Offset))
		t.Row("occurred", shortTime(e.OccurredAt))
		t.Row("received", shortTime(e.ReceivedAt))
		t.Row("processed", shortTime(e.ProcessedAt))
		t.Row("sha256", e.BodySHA256)
	} else {
		t.Row("outcome", orDash(l.Outcome))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, "\nentries"); err != nil {
		return err
	}
	if err := printEntries(w, l.Entries); err != nil {
		return err
	}
	if len(l.Conflicts) > 0 {
		t := console.NewTable("conflict at", "seen", "resolved")
		for _, c := range l.Conflicts {
			t.Row(fmt.Sprintf("%d@%d", c.Partition, c.Offset), shortTime(c.SeenAt), shortTime(c.ResolvedAt))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(l.Quarantined) > 0 {
		t := console.NewTable("quarantined at", "reason", "detail", "since", "resolved")
		for _, q := range l.Quarantined {
			t.Row(fmt.Sprintf("%d@%d", q.Partition, q.Offset), q.Reason, q.Detail, shortTime(q.QuarantinedAt), shortTime(q.ResolvedAt))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		return t.Write(w)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
