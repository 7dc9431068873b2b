package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ops"
	core "hookledger/internal/ops/replay"
)

// rowJSON is a replay on record.
type rowJSON struct {
	ReplayID int64  `json:"replay_id"`
	Kind     string `json:"kind"`
	State    string `json:"state"`
	Topic    string `json:"topic"`
	PlanHash string `json:"plan_hash"`
	// Partition and Next are where a run stands; null before its first record.
	Partition    *int32        `json:"partition"`
	Next         *int64        `json:"next_offset"`
	Records      int64         `json:"records"`
	Outcome      core.Outcomes `json:"outcome"`
	Moves        []core.Move   `json:"moves"`
	Accepted     bool          `json:"accepted"`
	RequestedBy  string        `json:"requested_by"`
	DatabaseUser string        `json:"database_user"`
	Reason       string        `json:"reason"`
	Detail       *string       `json:"detail"`
	StartedAt    *string       `json:"started_at"`
	// AliveAt is when its runner showed life last: a run that lives does every few seconds.
	AliveAt    *string `json:"alive_at"`
	FinishedAt *string `json:"finished_at"`
	// Plan is what was foreseen, shown by show alone.
	Plan json.RawMessage `json:"plan,omitempty"`
}

func newRowJSON(r *core.Row) rowJSON {
	out := rowJSON{
		ReplayID: r.ID, Kind: r.Kind, State: r.State, Topic: r.Topic, PlanHash: r.PlanHash,
		Records: r.Counts.Records(), Outcome: core.OutcomesOf(r.Counts), Moves: r.Moves, Accepted: r.Accepted,
		RequestedBy: r.RequestedBy, DatabaseUser: r.DatabaseUser, Reason: r.Reason, StartedAt: console.JSONTime(r.StartedAt), AliveAt: console.JSONTime(r.BeatAt),
	}
	if r.Partition >= 0 {
		out.Partition, out.Next = &r.Partition, &r.Next
	}
	if r.Detail != "" {
		out.Detail = &r.Detail
	}
	if r.FinishedAt != nil {
		out.FinishedAt = console.JSONTime(*r.FinishedAt)
	}
	return out
}

func list(a *app.App) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List the replays on record: who, when, why, and what came of it",
		Long: `List the replays on record, latest first: runs of plans, and resets of the group. Needs the
rights of hookledger_reader.`,
		Args: cobra.NoArgs,
		Example: `  hookledger replay list
  hookledger replay list --limit 0 --json | jq '.replays[] | {replay_id, state, reason}'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return app.Usage(fmt.Errorf("--limit is %d: set 0 for all or a positive number", limit))
			}
			out := struct {
				Replays []rowJSON `json:"replays"`
			}{Replays: []rowJSON{}}
			err := withStore(c.Context(), a, func(ctx context.Context, s *core.Store) error {
				rows, err := s.List(ctx, limit)
				for i := range rows {
					out.Replays = append(out.Replays, newRowJSON(&rows[i]))
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("replay-list", out, func(w io.Writer) error { return printList(w, out.Replays) })
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "at most so many; 0 is all")
	return c
}

func printList(w io.Writer, rows []rowJSON) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no replays")
		return err
	}
	t := console.NewTable("replay>", "kind", "state", "started", "by", "records>", "reason")
	for _, r := range rows {
		t.Row(strconv.FormatInt(r.ReplayID, 10), r.Kind, r.State, console.ShortTime(r.StartedAt), r.RequestedBy+" as "+r.DatabaseUser,
			strconv.FormatInt(r.Records, 10), r.Reason)
	}
	return t.Write(w)
}

func show(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show one replay: its plan and its result",
		Long: `Show one replay: who asked for it and why, what was foreseen and what came of it. With --json
the whole plan is in it. Needs the rights of hookledger_reader.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger replay show 3
  hookledger replay show 3 --json | jq .plan`,
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return app.Usage(fmt.Errorf("%q is no number of a replay: see `hookledger replay list`", args[0]))
			}
			var out rowJSON
			err = withStore(c.Context(), a, func(ctx context.Context, s *core.Store) error {
				row, err := s.Read(ctx, id)
				if err == nil {
					out = newRowJSON(row)
					out.Plan = row.Plan
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.Print("replay-show", out, func(w io.Writer) error { return printRow(w, &out) })
		},
	}
}

func printRow(w io.Writer, r *rowJSON) error {
	t := console.NewTable("", "")
	t.Row("replay", strconv.FormatInt(r.ReplayID, 10)+", "+r.Kind+", "+r.State)
	t.Row("by", r.RequestedBy+", as "+r.DatabaseUser+" of the database")
	t.Row("reason", r.Reason)
	t.Row("started", console.ShortTime(r.StartedAt))
	if r.State == core.StateRunning {
		t.Row("alive at", console.ShortTime(r.AliveAt)+", and every few seconds while its runner lives")
	}
	t.Row("finished", console.ShortTime(r.FinishedAt))
	t.Row("plan", r.PlanHash)
	if r.Accepted {
		t.Row("accepted", "it was asked to go on although the counts differ")
	}
	if r.Detail != nil {
		t.Row("detail", *r.Detail)
	}
	if r.Partition != nil {
		t.Row("stands at", fmt.Sprintf("%s/%d@%d", r.Topic, *r.Partition, *r.Next))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	var planned struct {
		Would      core.Outcomes `json:"would"`
		Partitions []ops.Move    `json:"partitions"`
	}
	if err := json.Unmarshal(r.Plan, &planned); err != nil {
		return fmt.Errorf("read plan of replay %d: %w", r.ReplayID, err)
	}
	if r.Kind == core.KindReset {
		return printMoves(w, planned.Partitions)
	}
	if err := printOutcomes(w, r.Outcome, planned.Would, "records"); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, money: %s\n", console.Count(r.Records, "record", "records"), moneyText(r.Moves))
	return err
}

// withStore gives f the table of replays.
func withStore(ctx context.Context, a *app.App, f func(context.Context, *core.Store) error) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	pool, err := a.OpenDatabase(ctx, cfg, "replay")
	if err != nil {
		return err
	}
	defer pool.Close()
	return app.RightsError(f(ctx, &core.Store{Pool: pool}))
}
