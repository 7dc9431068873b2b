package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	core "hookledger/internal/ops/replay"
)

// selectFlags are the flags that select records.
type selectFlags struct {
	fromTime, toTime     string
	sources, types, ids  []string
	account              string
	partition            int32
	fromOffset, toOffset int64
}

func (s *selectFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.fromTime, "from-time", "", "only records received at or after this time (RFC 3339)")
	f.StringVar(&s.toTime, "to-time", "", "only records received before this time (RFC 3339)")
	f.StringArrayVar(&s.sources, "source", nil, "only events of this source; may be repeated")
	f.StringArrayVar(&s.types, "type", nil, "only events of this type; may be repeated")
	f.StringArrayVar(&s.ids, "event-id", nil, "only the event with this ID; may be repeated")
	f.StringVar(&s.account, "account", "", "only events that mean money of this account today")
	f.Int32Var(&s.partition, "partition", 0, "only this partition")
	f.Int64Var(&s.fromOffset, "from-offset", 0, "only records from this offset on, of each partition")
	f.Int64Var(&s.toOffset, "to-offset", 0, "only records before this offset, of each partition")
}

// selection checks the flags.
func (s *selectFlags) selection(set func(string) bool, cfg *config.Loaded) (core.Selection, error) {
	sel := core.Selection{Types: s.types, EventIDs: s.ids, Account: s.account}
	var err error
	if sel.FromTime, err = app.Time("--from-time", s.fromTime); err != nil {
		return sel, err
	}
	if sel.ToTime, err = app.Time("--to-time", s.toTime); err != nil {
		return sel, err
	}
	for _, name := range s.sources {
		key, err := sourceKey(cfg, name)
		if err != nil {
			return sel, err
		}
		sel.Sources = append(sel.Sources, key)
	}
	for _, o := range []struct {
		flag  string
		value int64
		to    **int64
	}{{"from-offset", s.fromOffset, &sel.FromOffset}, {"to-offset", s.toOffset, &sel.ToOffset}} {
		if !set(o.flag) {
			continue
		}
		if o.value < 0 {
			return sel, fmt.Errorf("--%s is 0 or more", o.flag)
		}
		*o.to = &o.value
	}
	if sel.FromOffset != nil && sel.ToOffset != nil && s.fromOffset >= s.toOffset {
		return sel, errors.New("--from-offset is not before --to-offset: nothing lies between them")
	}
	if sel.FromTime != nil && sel.ToTime != nil && !sel.FromTime.Before(*sel.ToTime) {
		return sel, errors.New("--from-time is not before --to-time: nothing lies between them")
	}
	if set("partition") {
		if s.partition < 0 {
			return sel, errors.New("--partition is 0 or more")
		}
		sel.Partition = &s.partition
	}
	return sel, nil
}

// sourceKey is the key under which the events of the source with the name are recorded.
func sourceKey(cfg *config.Loaded, name string) (string, error) {
	var names []string
	for i, key := range cfg.SourceKeys() {
		if n := cfg.Sources[i].Name; n == name || key == name {
			return key, nil
		}
		names = append(names, cfg.Sources[i].Name)
	}
	return "", fmt.Errorf("--source %q is not configured: use one of %s", name, strings.Join(names, ", "))
}

// planAnswer is hookledger.replay-plan.v1, whose schema Print writes.
type planAnswer struct {
	*core.Plan
	Schema *struct{} `json:"schema,omitempty"` // instead of the plan's own
}

func plan(a *app.App) *cobra.Command {
	var s selectFlags
	var out string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Say what replaying records would do to the books; change nothing",
		Long: `Say what would become of records if they were applied again now, with today's configuration:
counts by outcome, the money that would move and the accounts it would move on. Nothing is
written and nothing locked, so workers may run. With --out the plan is written to a file,
with a hash, for ` + "`hookledger replay run`" + `.

Without a selection it is the whole topic. While the group has members a plan ends where
Postgres stands: what lies beyond is the workers' to apply. Needs the rights of
hookledger_reader, and in Kafka to read the topic and describe the group.`,
		Args: cobra.NoArgs,
		Example: `  hookledger replay plan --from-time 2026-11-29T03:00:00Z --to-time 2026-11-29T04:00:00Z
  hookledger replay plan --source stripe --type charge.refunded --out refunds.plan
  hookledger replay plan --event-id evt_1 --event-id evt_2 --out two.plan
  hookledger replay plan --account user_1 --json | jq '.would, .moves'
  hookledger replay plan --partition 3 --from-offset 1000 --to-offset 2000`,
		RunE: func(c *cobra.Command, _ []string) error {
			if out != "" {
				if err := core.CheckFile(out); err != nil {
					return app.Usage(err)
				}
			}
			return withSources(c.Context(), a, func(ctx context.Context, r *core.Replayer, cfg *config.Loaded) error {
				sel, err := s.selection(c.Flags().Changed, cfg)
				if err != nil {
					return app.Usage(err)
				}
				p, err := r.Plan(ctx, sel, app.Operator())
				if err != nil {
					return marked(err)
				}
				if out != "" {
					if err := p.Write(out); err != nil {
						return err
					}
				}
				return a.Print("replay-plan", planAnswer{Plan: p}, func(w io.Writer) error { return printPlan(w, p, out) })
			})
		},
	}
	s.flags(c)
	c.Flags().StringVar(&out, "out", "", "write the plan to this file")
	return c
}

func printPlan(w io.Writer, p *core.Plan, file string) error {
	if err := printOutcomes(w, p.Would, nil, "would be"); err != nil {
		return err
	}
	if len(p.AccountMoves) > 0 {
		t := console.NewTable("account", "would move>")
		shown := make(map[string]bool)
		for _, m := range p.AccountMoves {
			shown[m.AccountID] = true
			t.Row(m.AccountID, console.Amount(m.Amount, m.Currency))
		}
		if more := p.Accounts - int64(len(shown)); more > 0 {
			t.Row(fmt.Sprintf("… and %d more", more))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	lines := fmt.Sprintf("\n%s, %s affected, money: %s; about %s\n", console.Count(p.Records, "record", "records"),
		console.Count(p.Accounts, "account", "accounts"), moneyText(p.Moves), seconds(p.EstimateSeconds))
	if file != "" {
		lines += fmt.Sprintf("plan %s written to %s; run it: hookledger replay run %s --reason …\n", p.Hash[:12], console.Safe(file), console.Safe(file))
	} else {
		lines += "nothing was changed; --out FILE keeps the plan, to be run\n"
	}
	_, err := io.WriteString(w, lines)
	return err
}

// printOutcomes shows counts by outcome, those of no record left out, beside those of a
// plan if there is one.
func printOutcomes(w io.Writer, counts, planned core.Outcomes, title string) error {
	columns := []string{"outcome", title + ">"}
	if planned != nil {
		columns = append(columns, "planned>")
	}
	t := console.NewTable(columns...)
	for _, o := range ledger.Outcomes() {
		name := o.String()
		if counts[name] == 0 && planned[name] == 0 {
			continue
		}
		cells := []string{name, strconv.FormatInt(counts[name], 10)}
		if planned != nil {
			cells = append(cells, strconv.FormatInt(planned[name], 10))
		}
		t.Row(cells...)
	}
	if t.Len() == 0 {
		_, err := fmt.Fprintln(w, "no records")
		return err
	}
	return t.Write(w)
}

func moneyText(moves []core.Move) string {
	if len(moves) == 0 {
		return "none moves"
	}
	parts := make([]string, len(moves))
	for i, m := range moves {
		parts[i] = console.Amount(m.Amount, m.Currency)
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) string {
	return time.Duration(math.Ceil(s*10) / 10 * float64(time.Second)).String()
}
