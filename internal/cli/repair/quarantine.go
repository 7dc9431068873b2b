package repair

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

// Quarantine makes `hookledger quarantine`.
func Quarantine(a *app.App) *cobra.Command {
	c := app.Group("quarantine", "Decide about records that could not be applied, and conflicts",
		quarantineList(a), quarantineShow(a), quarantineRetry(a), quarantineDiscard(a))
	c.Long = `Decide about records that could not be applied, and about conflicts: a known event ID that
came again with another meaning. A number such as 7 is a record in quarantine, c7 a
conflict. Nothing leaves without a trace: rows stay, with who decided, when and why.`
	return c
}

// conflictJSON is a held conflict in JSON.
type conflictJSON struct {
	ConflictID int64   `json:"conflict_id"`
	Source     *string `json:"source"`
	EventID    *string `json:"event_id"`
	Type       *string `json:"type"`
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Offset     int64   `json:"offset"`
	// Detail names the record that stands.
	Detail         string  `json:"detail"`
	SeenAt         *string `json:"seen_at"`
	ResolvedAt     *string `json:"resolved_at"`
	Resolution     *string `json:"resolution"`
	ResolvedBy     *string `json:"resolved_by"`
	ResolvedReason *string `json:"resolved_reason"`
}

// heldCount is how many are held for a reason.
type heldCount struct {
	Conflicts bool   `json:"conflicts"`
	Source    string `json:"source"`
	Reason    string `json:"reason"`
	Count     int64  `json:"count"`
}

// listAnswer is hookledger.quarantine-list.v1.
type listAnswer struct {
	Quarantined []held         `json:"quarantined"`
	Conflicts   []conflictJSON `json:"conflicts"`
	// Reasons count all that is not resolved, whatever was selected.
	Reasons []heldCount `json:"reasons"`
	// More says that the limit left some out.
	More bool `json:"more"`

	conflicts []held
}

func quarantineList(a *app.App) *cobra.Command {
	var f filter
	var after int64
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List what waits for a decision, with counts by reason",
		Long: `List what waits for a decision, oldest first, with counts by source and reason: many of one
reason are one wrong mapping, to be fixed and retried together. Needs the rights of
hookledger_reader.`,
		Args: cobra.NoArgs,
		Example: `  hookledger quarantine list
  hookledger quarantine list --source stripe --with-reason bad_amount --limit 0
  hookledger quarantine list --all --json | jq '.quarantined[] | {id, reason, resolution}'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			out := listAnswer{Quarantined: []held{}, Conflicts: []conflictJSON{}, Reasons: []heldCount{}}
			err := withDatabase(c.Context(), a, "quarantine", func(ctx context.Context, pool *pgxpool.Pool) error {
				return app.ReadOnly(ctx, pool, func(tx pgx.Tx) error { return out.read(ctx, tx, f, after, limit) })
			})
			if err != nil {
				return err
			}
			return a.Print("quarantine-list", out, func(w io.Writer) error { return out.print(w) })
		},
	}
	f.flags(c, true)
	c.Flags().BoolVar(&f.all, "all", false, "those that are resolved too")
	c.Flags().Int64Var(&after, "after", 0, "only those with a number above this one")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many of each; 0 is all")
	return c
}

func (l *listAnswer) read(ctx context.Context, tx pgx.Tx, f filter, after int64, limit int) error {
	rows, err := tx.Query(ctx, sqlReasons, pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	l.Reasons, err = pgx.AppendRows(l.Reasons, rows, pgx.RowToStructByPos[heldCount])
	if err != nil {
		return err
	}
	ask := limit
	if limit > 0 {
		ask++ // one more tells whether there is more
	}
	if !f.conflicts {
		if l.Quarantined, err = f.read(ctx, tx, false, f.all, after, ask); err != nil {
			return err
		}
	}
	if l.conflicts, err = f.read(ctx, tx, true, f.all, after, ask); err != nil {
		return err
	}
	for _, list := range []*[]held{&l.Quarantined, &l.conflicts} {
		if limit > 0 && len(*list) > limit {
			*list, l.More = (*list)[:limit], true
		}
	}
	for _, h := range l.conflicts {
		l.Conflicts = append(l.Conflicts, conflictJSON{h.ID, h.Source, h.EventID, h.Type, h.Topic, h.Partition, h.Offset, h.Detail,
			h.QuarantinedAt, h.ResolvedAt, h.Resolution, h.ResolvedBy, h.ResolvedReason})
	}
	return nil
}

func (l *listAnswer) print(w io.Writer) error {
	if len(l.Reasons) == 0 {
		if _, err := fmt.Fprintln(w, "nothing waits for a decision"); err != nil {
			return err
		}
	} else {
		t := console.NewTable("waiting>", "source", "reason")
		for _, r := range l.Reasons {
			t.Row(fmt.Sprint(r.Count), orDash(r.Source), r.Reason)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(l.Quarantined)+len(l.conflicts) == 0 {
		return nil
	}
	t := console.NewTable("number>", "source", "event", "record", "reason", "since", "resolved", "detail")
	for _, list := range [][]held{l.Quarantined, l.conflicts} {
		for _, h := range list {
			t.Row(h.number(), text(h.Source), text(h.EventID), h.place(), h.Reason, console.ShortTime(h.QuarantinedAt), h.resolved(), h.Detail)
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if l.More {
		_, err := fmt.Fprintln(w, "… and more: --limit 0 shows all, --after NUMBER goes on")
		return err
	}
	return nil
}

// place names the record.
func (h *held) place() string { return fmt.Sprintf("%s/%d@%d", h.Topic, h.Partition, h.Offset) }

// resolved says how, by whom and why.
func (h *held) resolved() string {
	if h.Resolution == nil {
		return "-"
	}
	s := *h.Resolution
	if h.ResolvedBy != nil {
		s += " by " + *h.ResolvedBy
	}
	if h.ResolvedReason != nil {
		s += ": " + *h.ResolvedReason
	}
	return s
}
