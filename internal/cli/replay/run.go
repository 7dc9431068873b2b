package replay

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	core "hookledger/internal/ops/replay"
)

func run(a *app.App) *cobra.Command {
	var signed app.Signed
	var accept, dryRun bool
	c := &cobra.Command{
		Use:   "run PLAN",
		Short: "Do what a plan says, and nothing else",
		Long: `Do what the plan in the file PLAN says. First everything is looked at once more: if the
counts or sums would differ from the plan's, it is refused, or with --accept done all the
same. It has its own reader, goes through the same core as the workers, and touches neither
the group nor positions, so workers may run or not. One replay runs at a time.

Ctrl-C stops it between two transactions; the same plan run again goes on there, and what
was applied is never applied twice. Who, when, why and the result stay on record: see
` + "`hookledger replay list`" + `. Needs the rights of hookledger_operator, and in Kafka to read
the topic. Exit code 1 if the result does not match the plan.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger replay run refunds.plan --dry-run
  hookledger replay run refunds.plan --reason "mapping of refunds fixed in release 41"
  hookledger replay run refunds.plan --reason "ticket 123" --json | jq .matches_plan`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := signed.Complete(dryRun); err != nil {
				return err
			}
			p, err := core.ReadPlan(args[0])
			if err != nil {
				return app.Usage(err)
			}
			return withSources(c.Context(), a, func(ctx context.Context, r *core.Replayer, _ *config.Loaded) error {
				return runPlan(ctx, a, r, p, core.Order{By: signed.By, Reason: signed.Reason, Accept: accept, DryRun: dryRun})
			})
		},
	}
	signed.Flags(c)
	c.Flags().BoolVar(&accept, "accept", false, "go on although the counts differ from the plan's")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen, change nothing")
	return c
}

func runPlan(ctx context.Context, a *app.App, r *core.Replayer, p *core.Plan, o core.Order) error {
	res, err := r.Run(ctx, p, o)
	if err != nil {
		return marked(err)
	}
	if err := a.Print("replay-run", res, func(w io.Writer) error { return printResult(w, p, res) }); err != nil {
		return err
	}
	if !res.MatchesPlan && !o.DryRun {
		return fmt.Errorf("replay %d is done, but did not do what the plan says: %s", *res.ReplayID, strings.Join(res.Differences, ", "))
	}
	return nil
}

func printResult(w io.Writer, p *core.Plan, r *core.Result) error {
	title := "records"
	if r.DryRun {
		title = "would be"
	}
	if err := printOutcomes(w, r.Outcome, p.Would, title); err != nil {
		return err
	}
	line := fmt.Sprintf("\n%s, money: %s; ", console.Count(r.Records, "record", "records"), moneyText(r.Moves))
	switch {
	case r.MatchesPlan:
		line += "as planned"
	default:
		line += "not as planned: " + strings.Join(r.Differences, ", ")
	}
	if r.DryRun {
		line += "\nnothing was changed: this was a dry run"
	} else {
		line += fmt.Sprintf("\nreplay %d is on record: hookledger replay show %d", *r.ReplayID, *r.ReplayID)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
