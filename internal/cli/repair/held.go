package repair

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ledger"
)

// held is a row of quarantined_events, or one of event_conflicts as the same thing.
type held struct {
	ID            int64   `json:"id"`
	Conflict      bool    `json:"-"`
	Source        *string `json:"source"`
	EventID       *string `json:"event_id"`
	Type          *string `json:"type,omitempty"`
	Topic         string  `json:"topic"`
	Partition     int32   `json:"partition"`
	Offset        int64   `json:"offset"`
	Reason        string  `json:"reason"`
	Detail        string  `json:"detail"`
	RecordTime    *string `json:"record_time"`
	QuarantinedAt *string `json:"quarantined_at"`
	ResolvedAt    *string `json:"resolved_at"`
	// Resolution is replayed (by a worker), retried or discarded.
	Resolution     *string `json:"resolution"`
	ResolvedBy     *string `json:"resolved_by"`
	ResolvedReason *string `json:"resolved_reason"`
}

// number is what commands call it: 7, or c7 for a conflict.
func (h *held) number() string { return ledger.Held{Conflict: h.Conflict, ID: h.ID}.String() }

// scanHeld reads the columns that both tables share, and then into rest.
func scanHeld(row pgx.CollectableRow, conflict bool, rest ...any) (held, error) {
	h := held{Conflict: conflict}
	var source, event, kind, resolution, by, reason string
	var recorded, since time.Time
	var resolved *time.Time
	err := row.Scan(append([]any{&h.ID, &source, &event, &kind, &h.Topic, &h.Partition, &h.Offset, &h.Reason, &h.Detail,
		&recorded, &since, &resolved, &resolution, &by, &reason}, rest...)...)
	h.Source, h.EventID, h.Type = filled(source), filled(event), filled(kind)
	h.Resolution, h.ResolvedBy, h.ResolvedReason = filled(resolution), filled(by), filled(reason)
	h.RecordTime, h.QuarantinedAt = console.JSONTime(recorded), console.JSONTime(since)
	if resolved != nil {
		h.ResolvedAt = console.JSONTime(*resolved)
	}
	return h, err
}

// parseHeld reads numbers such as 7 and c7, each once.
func parseHeld(args []string) ([]ledger.Held, error) {
	var list []ledger.Held
	seen := make(map[ledger.Held]bool)
	for _, arg := range args {
		digits, conflict := strings.CutPrefix(arg, "c")
		id, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || id <= 0 {
			return nil, app.Usage(fmt.Errorf("%s is no number of a held record: `hookledger quarantine list` shows 7 for one in quarantine, c7 for a conflict", strconv.Quote(arg)))
		}
		h := ledger.Held{Conflict: conflict, ID: id}
		if !seen[h] {
			seen[h] = true
			list = append(list, h)
		}
	}
	return list, nil
}

// filter selects what is held and not resolved.
type filter struct {
	source, reason string
	all, conflicts bool
}

// flags adds the filter. With own, --reason is the filter too; where --reason is why
// somebody decides, only --with-reason is.
func (f *filter) flags(c *cobra.Command, own bool) {
	c.Flags().StringVar(&f.source, "source", "", "only records of this source (its key)")
	c.Flags().StringVar(&f.reason, "with-reason", "", "only records held for this reason, such as bad_amount")
	c.Flags().BoolVar(&f.conflicts, "conflicts", false, "conflicts instead of records in quarantine")
	if own {
		c.Flags().StringVar(&f.reason, "reason", "", "the same as --with-reason")
		_ = c.Flags().MarkHidden("reason")
	}
}

// check refuses numbers together with a filter, and neither.
func (f *filter) check(numbers []string) error {
	some := f.all || f.source != "" || f.reason != ""
	switch {
	case len(numbers) > 0 && (some || f.conflicts):
		return app.Usage(errors.New("name numbers, or select with --source, --with-reason or --all: not both"))
	case len(numbers) == 0 && !some:
		return app.Usage(errors.New("say which: numbers, --source, --with-reason or --all; `hookledger quarantine list` shows them"))
	}
	return nil
}

// read returns what the filter selects, from after on, at most limit or all if it is 0.
func (f *filter) read(ctx context.Context, tx pgx.Tx, conflicts, resolved bool, after int64, limit int) ([]held, error) {
	sql := sqlQuarantined
	if conflicts {
		sql = sqlConflicts
	}
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, f.source, f.reason, resolved, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]held{}, rows, func(row pgx.CollectableRow) (held, error) { return scanHeld(row, conflicts) })
}
