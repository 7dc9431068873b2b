package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ops"
	core "hookledger/internal/ops/replay"
)

// Command makes `hookledger replay`.
func Command(a *app.App) *cobra.Command {
	c := app.Group("replay", "Have events applied again", plan(a), run(a), reset(a), list(a), show(a))
	c.Long = `Have events applied again. What was applied before moves nothing: a replay is safe at
any time, and is how events that were ignored under an older mapping get their money.

A plan says before what a replay would do to the books; run does that, beside workers or
without them; reset moves the group's offsets and leaves the work to the workers. Who, when,
why and what came of it stay on record.`
	return c
}

type resetFlags struct {
	app.Signed
	earliest  bool
	offset    int64
	time      string
	partition int32
	look      int64
	dryRun    bool
}

// lookAt is how many records a reset looks at unless told otherwise: seconds.
const lookAt = 100_000

func reset(a *app.App) *cobra.Command {
	var f resetFlags
	c := &cobra.Command{
		Use:   "reset",
		Short: "Move the group's offsets back; the workers read on from there",
		Long: `Move the committed offsets of kafka.group and leave the rest to the workers. The group must
have no members: stop the workers first, start them after. Kafka's own tool does the same.

The plan is printed, with what the workers would do with the records; --dry-run stops there.
The reason stays on record, as a replay and as an incident, with who asked. A reset forward
skips nothing: workers start where Postgres stands. Needs the rights of hookledger_operator,
for --dry-run those of hookledger_reader, and in Kafka to read the topic and the group.`,
		Args: cobra.NoArgs,
		Example: `  hookledger replay reset --to-earliest --dry-run
  hookledger replay reset --to-earliest --reason "mapping of refunds fixed"
  hookledger replay reset --to-time 2026-11-29T03:00:00Z --reason "worker was misconfigured since 3:00"`,
		RunE: func(c *cobra.Command, _ []string) error {
			target, err := f.target(c.Flags().Changed)
			if err != nil {
				return app.Usage(err)
			}
			if err := f.Complete(f.dryRun); err != nil {
				return err
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			return withReplayer(c.Context(), a, cfg, func(ctx context.Context, r *core.Replayer, _ *config.Loaded) error {
				return runReset(ctx, a, r, f, target)
			})
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.earliest, "to-earliest", false, "move to the start of the log")
	flags.Int64Var(&f.offset, "to-offset", 0, "move to this offset")
	flags.StringVar(&f.time, "to-time", "", "move to the first record received at or after this time (RFC 3339)")
	flags.Int32Var(&f.partition, "partition", -1, "move this partition alone (default: all)")
	flags.Int64Var(&f.look, "look-at", lookAt, "at most so many records, to say what would become of them; 0 is all")
	f.Flags(c)
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan, change nothing")
	return c
}

// target checks the flags.
func (f *resetFlags) target(set func(string) bool) (ops.Target, error) {
	var t ops.Target
	n := 0
	for _, name := range []string{"to-earliest", "to-offset", "to-time"} {
		if set(name) {
			n++
		}
	}
	switch {
	case n != 1 || set("to-earliest") && !f.earliest:
		return t, errors.New("say where to: one of --to-earliest, --to-offset N, --to-time T")
	case set("to-offset") && f.offset < 0:
		return t, errors.New("--to-offset is 0 or more")
	case set("partition") && f.partition < 0:
		return t, errors.New("--partition is 0 or more")
	case f.look < 0:
		return t, errors.New("--look-at is 0 or more")
	case set("to-earliest"):
		t.Earliest = true
	case set("to-offset"):
		t.Offset = &f.offset
	default:
		at, err := app.Time("--to-time", f.time)
		if err != nil {
			return t, err
		}
		t.Time = *at
	}
	return t, nil
}

func runReset(ctx context.Context, a *app.App, r *core.Replayer, f resetFlags, target ops.Target) error {
	if !f.dryRun { // before the look, which takes its time
		if err := ops.CheckGroupEmpty(ctx, r.Client, r.Group); err != nil {
			return err
		}
	}
	p, unforeseen, err := r.PlanReset(ctx, target, f.partition, f.look)
	if err != nil {
		return marked(err)
	}
	if unforeseen != nil {
		a.Say("what would become of the records is not known: %s", console.Safe(unforeseen.Error()))
	}
	p.DryRun = f.dryRun
	if !f.dryRun {
		if err := r.Reset(ctx, p, f.By, f.Reason); err != nil {
			return marked(err)
		}
	}
	return a.Print("replay-reset", p, func(w io.Writer) error { return printReset(w, p) })
}

func printReset(w io.Writer, r *core.Reset) error {
	if err := printMoves(w, r.Partitions); err != nil {
		return err
	}
	if r.Looked != nil && *r.Looked > 0 {
		if err := printForeseen(w, r); err != nil {
			return err
		}
	}
	line := "nothing was changed; without --dry-run, and with --reason, the offsets move"
	if !r.DryRun {
		line = fmt.Sprintf("moved; start the workers: they read on from there, and apply only what is new\nreplay %d is on record: hookledger replay show %d", *r.ReplayID, *r.ReplayID)
	}
	_, err := fmt.Fprintf(w, "\n%s of %s will be read again by group %s\n%s\n", console.Count(r.Records, "record", "records"), console.Safe(r.Topic), console.Safe(r.Group), line)
	return err
}

func printMoves(w io.Writer, moves []ops.Move) error {
	t := console.NewTable("partition>", "from>", "to>", "records to read>")
	for _, m := range moves {
		from := "none"
		if m.From >= 0 {
			from = strconv.FormatInt(m.From, 10)
		}
		t.Row(strconv.Itoa(int(m.Partition)), from, strconv.FormatInt(m.To, 10), strconv.FormatInt(m.Records, 10))
	}
	return t.Write(w)
}

func printForeseen(w io.Writer, r *core.Reset) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := printOutcomes(w, r.Would, nil, "would be"); err != nil {
		return err
	}
	of := ""
	if *r.Looked < r.Records {
		of = fmt.Sprintf(", by the first %d", *r.Looked)
	}
	_, err := fmt.Fprintf(w, "money: %s, on %s%s\n", moneyText(r.Moves), console.Count(r.Accounts, "account", "accounts"), of)
	return err
}
