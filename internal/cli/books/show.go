package books

import (
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

func eventsShow(a *app.App) *cobra.Command {
	var source string
	c := &cobra.Command{
		Use:   "show EVENT_ID",
		Short: "Show one event's life: records, outcome, entries, conflicts, amendments, replays",
		Long: `Show one event's life: its records with time and headers, the outcome, the entries, and what
people decided about it. The headers of its first record come from the topic; without
Kafka the rest is shown. Needs the rights of hookledger_reader.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger events show evt_1
  hookledger events show evt_1 --source stripe --json`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "events")
			if err != nil {
				return err
			}
			defer pool.Close()
			var l life
			var findErr error
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				l, findErr = findLife(c.Context(), tx, sourcesToAsk(cfg, source), args[0])
				return nil
			})
			if err != nil {
				return err
			}
			if findErr != nil {
				return findErr
			}
			if err := l.fromTopic(c.Context(), a, cfg); err != nil {
				return err
			}
			return a.Print("events-show", l, func(w io.Writer) error { return printLife(w, l) })
		},
	}
	c.Flags().StringVar(&source, "source", "", "the key of its source; without it all configured sources are asked")
	return c
}

func printLife(w io.Writer, l life) error {
	t := console.NewTable("", "")
	t.Row("event", l.id)
	t.Row("source", l.source)
	if e := l.Event; e != nil {
		t.Row("type", e.Type)
		t.Row("outcome", e.Outcome)
		t.Row("occurred", console.ShortTime(e.OccurredAt))
		t.Row("received", console.ShortTime(e.ReceivedAt))
		t.Row("processed", console.ShortTime(e.ProcessedAt))
		t.Row("sha256", e.BodySHA256)
	} else {
		t.Row("outcome", orDash(l.Outcome))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, r := range l.Records {
		if err := printRecord(w, r); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w, "\nentries"); err != nil {
		return err
	}
	if err := printEntries(w, l.Entries); err != nil {
		return err
	}
	decisions := console.NewTable("number>", "record", "because", "since", "resolved")
	for _, c := range l.Conflicts {
		decisions.Row(fmt.Sprintf("c%d", c.ConflictID), fmt.Sprintf("%d@%d", c.Partition, c.Offset), "conflict",
			console.ShortTime(c.SeenAt), resolved(c.Resolution, c.ResolvedBy, c.ResolvedReason))
	}
	for _, q := range l.Quarantined {
		decisions.Row(fmt.Sprint(q.ID), fmt.Sprintf("%d@%d", q.Partition, q.Offset), q.Reason+": "+q.Detail,
			console.ShortTime(q.QuarantinedAt), resolved(q.Resolution, q.ResolvedBy, q.ResolvedReason))
	}
	amendments := console.NewTable("amendment", "kind", "by", "at", "reason")
	for _, m := range l.Amendments {
		amendments.Row(m.AmendmentID, m.Kind, m.AmendedBy, console.ShortTime(m.AmendedAt), m.Reason)
	}
	replays := console.NewTable("replay>", "kind", "state", "by", "at", "reason")
	for _, r := range l.Replays {
		replays.Row(fmt.Sprint(r.ReplayID), r.Kind, r.State, r.RequestedBy, console.ShortTime(r.StartedAt), r.Reason)
	}
	for _, t := range []*console.Table{decisions, amendments, replays} {
		if t.Len() == 0 {
			continue
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

func printRecord(w io.Writer, r record) error {
	of := r.Of
	if of == "quarantined" {
		of = "quarantine"
	}
	line := fmt.Sprintf("\nrecord %s/%d@%d of the %s", console.Safe(r.Topic), r.Partition, r.Offset, of)
	if r.Time != nil {
		line += ", " + console.ShortTime(r.Time)
	}
	if r.Missing != nil {
		line += ": " + console.Safe(*r.Missing)
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	return console.WriteHeaders(w, r.Headers)
}

// resolved says how, by whom and why.
func resolved(resolution, by, reason *string) string {
	if resolution == nil {
		return "-"
	}
	s := *resolution
	if by != nil {
		s += " by " + *by
	}
	if reason != nil {
		s += ": " + *reason
	}
	return s
}
