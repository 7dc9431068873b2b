package sources

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/schema/provider"
)

// effect is a provider.Effect in JSON.
type effect struct {
	Type     string `json:"type"`
	Does     string `json:"does"`
	Rule     string `json:"rule,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Amount   string `json:"amount,omitempty"`
	Movement string `json:"movement,omitempty"`
	When     string `json:"when,omitempty"`
}

// seen is a type of events that a source has sent.
type seen struct {
	Type   string `json:"type"`
	Does   string `json:"does"`
	Events int64  `json:"events"`
	// Outcomes counts the events by what became of them.
	Outcomes map[string]int64 `json:"outcomes"`
}

func events(a *app.App) *cobra.Command {
	var asSeen bool
	c := &cobra.Command{
		Use:   "events SOURCE",
		Short: "List the event types of a source and what they do to money",
		Long: `List the event types of a source and what they do to money, as its provider and the
configuration say. A type that is not listed is ignored.

With --seen the types are those in the database, with what became of their events, so
that one without a rule shows. An event that went to quarantine is not among them.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger sources events stripe
  hookledger sources events stripe --seen`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, source, err := configured(a, args[0])
			if err != nil {
				return err
			}
			effects, err := effectsOf(source)
			if err != nil {
				return err
			}
			if !asSeen {
				out := struct {
					Source string   `json:"source"`
					Events []effect `json:"events"`
				}{source.Name, effects}
				return a.Print("sources-events", out, func(w io.Writer) error { return printEffects(w, effects) })
			}
			out := struct {
				Source string `json:"source"`
				Seen   []seen `json:"seen"`
			}{source.Name, nil}
			if out.Seen, err = readSeen(c.Context(), a, cfg, source, effects); err != nil {
				return err
			}
			return a.Print("sources-events-seen", out, func(w io.Writer) error { return printSeen(w, out.Seen) })
		},
	}
	c.Flags().BoolVar(&asSeen, "seen", false, "list the types in the database, with what became of their events")
	return c
}

func effectsOf(c provider.Config) ([]effect, error) {
	all, err := provider.Effects(c)
	if err != nil {
		return nil, app.Usage(err)
	}
	out := []effect{}
	for _, e := range all {
		out = append(out, effect(e))
	}
	return out, nil
}

func printEffects(w io.Writer, effects []effect) error {
	if len(effects) == 0 {
		_, err := fmt.Fprintln(w, "no events are known: all are ignored until the source has postings or statuses")
		return err
	}
	t := console.NewTable("type", "does", "rule", "amount", "movement", "when")
	for _, e := range effects {
		name := e.Type
		if name == "" {
			name = "(every type)"
		}
		amount := e.Amount
		if amount != "" {
			amount += " (" + e.Unit + ")"
		}
		t.Row(name, e.Does, e.Rule, amount, e.Movement, e.When)
	}
	return t.Write(w)
}

// sqlSeen counts the events of a source by type and outcome. No index: it reads every
// generation that is remembered.
const sqlSeen = `
select coalesce(type, ''), outcome, count(*)
from processed_events
where source = $1::text
group by 1, 2
order by 1, 2`

func readSeen(ctx context.Context, a *app.App, cfg *config.Loaded, source provider.Config, effects []effect) ([]seen, error) {
	pool, err := a.OpenDatabase(ctx, cfg, "sources")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	key := source.Key
	if key == "" {
		key = source.Name
	}
	out := []seen{}
	err = app.ReadOnly(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlSeen, pgx.QueryExecModeExec, key)
		if err != nil {
			return err
		}
		var eventType, outcome string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&eventType, &outcome, &n}, func() error {
			if len(out) == 0 || out[len(out)-1].Type != eventType {
				out = append(out, seen{Type: eventType, Does: doesOf(effects, eventType), Outcomes: map[string]int64{}})
			}
			last := &out[len(out)-1]
			last.Events += n
			last.Outcomes[outcome] += n
			return nil
		})
		return err
	})
	return out, err
}

// doesOf says what the rules do with a type: "no rule" if none is for it.
func doesOf(effects []effect, eventType string) string {
	var words []string
	for _, e := range effects {
		if (e.Type == eventType || e.Type == "") && !slices.Contains(words, e.Does) {
			words = append(words, e.Does)
		}
	}
	if len(words) == 0 {
		return "no rule"
	}
	return strings.Join(words, ", ")
}

func printSeen(w io.Writer, list []seen) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no events yet")
		return err
	}
	t := console.NewTable("type", "does", "events>", "outcomes")
	for _, s := range list {
		name := s.Type
		if name == "" {
			name = "(no type)"
		}
		var outcomes []string
		for outcome, n := range s.Outcomes {
			outcomes = append(outcomes, fmt.Sprintf("%s %d", outcome, n))
		}
		slices.Sort(outcomes)
		t.Row(name, s.Does, fmt.Sprint(s.Events), strings.Join(outcomes, ", "))
	}
	return t.Write(w)
}
