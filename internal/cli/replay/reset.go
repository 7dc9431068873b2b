package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/ops"
)

// patience bounds a reset, which talks to Kafka and Postgres a few times.
const patience = time.Minute

// incidentReset is the kind of the incident that a reset leaves.
const incidentReset = "replay_reset"

// Command makes `hookledger replay`.
func Command(a *app.App) *cobra.Command {
	c := app.Group("replay", "Have events applied again", plan(a), run(a), reset(a), list(a), show(a))
	c.Long = `Have events applied again. What was applied before moves nothing: a replay is safe at
any time, and is how events that were ignored under an older mapping get their money.`
	return c
}

type resetFlags struct {
	earliest  bool
	offset    int64
	time      string
	partition int32
	reason    string
	dryRun    bool
}

func reset(a *app.App) *cobra.Command {
	var f resetFlags
	c := &cobra.Command{
		Use:   "reset",
		Short: "Move the group's offsets back; the workers read on from there",
		Long: `Move the committed offsets of kafka.group and leave the rest to the workers. The group must
have no members: stop the workers first, start them after. Kafka's own tool does the same.

The plan is printed; --dry-run stops there. The reason is kept as an incident, with who
asked. A reset forward skips nothing: workers start where Postgres stands.`,
		Args: cobra.NoArgs,
		Example: `  hookledger replay reset --to-earliest --dry-run
  hookledger replay reset --to-earliest --reason "mapping of refunds fixed"
  hookledger replay reset --to-time 2026-11-29T03:00:00Z --reason "worker was misconfigured since 3:00"`,
		RunE: func(c *cobra.Command, _ []string) error {
			target, err := f.target(c.Flags().Changed)
			if err != nil {
				return app.Usage(err)
			}
			return runReset(c.Context(), a, f, target)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.earliest, "to-earliest", false, "move to the start of the log")
	flags.Int64Var(&f.offset, "to-offset", 0, "move to this offset")
	flags.StringVar(&f.time, "to-time", "", "move to the first record received at or after this time (RFC 3339)")
	flags.Int32Var(&f.partition, "partition", -1, "move this partition alone (default: all)")
	flags.StringVar(&f.reason, "reason", "", "why, for whoever reads the incidents later")
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
	case !f.dryRun && strings.TrimSpace(f.reason) == "":
		return t, errors.New("--reason is needed: it is kept with the incident (or look first with --dry-run)")
	case set("to-earliest"):
		t.Earliest = true
	case set("to-offset"):
		t.Offset = &f.offset
	default:
		at, err := time.Parse(time.RFC3339, f.time)
		if err != nil {
			return t, errors.New("--to-time is an RFC 3339 time, such as 2026-11-29T03:00:00Z")
		}
		t.Time = at
	}
	return t, nil
}

// resetAnswer is hookledger.replay-reset.v1.
type resetAnswer struct {
	Group      string     `json:"group"`
	Topic      string     `json:"topic"`
	Partitions []ops.Move `json:"partitions"`
	Records    int64      `json:"records"`
	DryRun     bool       `json:"dry_run"`
}

func runReset(ctx context.Context, a *app.App, f resetFlags, target ops.Target) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cl, err := broker.Open(cfg.Kafka, a.Quiet())
	if err != nil {
		return err
	}
	defer cl.Close()
	moves, err := ops.PlanReset(ctx, cl, cfg.Kafka.Group, cfg.Kafka.Topic, target, f.partition)
	if err != nil {
		return app.TopicError(err)
	}
	out := resetAnswer{Group: cfg.Kafka.Group, Topic: cfg.Kafka.Topic, Partitions: moves, DryRun: f.dryRun}
	for _, m := range moves {
		out.Records += m.Records
	}
	if !f.dryRun {
		if err := execute(ctx, a, cfg, cl, out, f.reason); err != nil {
			return err
		}
	}
	return a.Print("replay-reset", out, func(w io.Writer) error { return printReset(w, out) })
}

// execute writes the reason down first: a reset without one would be a riddle, a reason
// without a reset is none.
func execute(ctx context.Context, a *app.App, cfg *config.Loaded, cl *kgo.Client, plan resetAnswer, reason string) error {
	if err := ops.CheckGroupEmpty(ctx, cl, plan.Group); err != nil {
		return err
	}
	pool, err := a.OpenDatabase(ctx, cfg, "replay reset")
	if err != nil {
		return err
	}
	defer pool.Close()
	detail, err := json.Marshal(struct {
		Reason     string     `json:"reason"`
		By         string     `json:"by"`
		Group      string     `json:"group"`
		Partitions []ops.Move `json:"partitions"`
	}{reason, app.Operator(), plan.Group, plan.Partitions})
	if err != nil {
		return fmt.Errorf("write down the reason: %w", err)
	}
	books := ledger.New(pool, nil, ledger.Options{})
	if _, err := books.RaiseIncident(ctx, ledger.Incident{
		Severity: ledger.Info, Kind: incidentReset, Topic: plan.Topic, Detail: detail,
	}); err != nil {
		return err
	}
	return ops.Reset(ctx, cl, plan.Group, plan.Topic, plan.Partitions)
}

func printReset(w io.Writer, r resetAnswer) error {
	t := console.NewTable("partition>", "from>", "to>", "records to read>")
	for _, m := range r.Partitions {
		from := "none"
		if m.From >= 0 {
			from = strconv.FormatInt(m.From, 10)
		}
		t.Row(strconv.Itoa(int(m.Partition)), from, strconv.FormatInt(m.To, 10), strconv.FormatInt(m.Records, 10))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	line := "moved; start the workers: they read on from there, and apply only what is new"
	if r.DryRun {
		line = "nothing was changed; without --dry-run, and with --reason, the offsets move"
	}
	_, err := fmt.Fprintf(w, "\n%d records of %s will be read again by group %s\n%s\n", r.Records, console.Safe(r.Topic), console.Safe(r.Group), line)
	return err
}
