package sources

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ops"
	"hookledger/schema/provider"
)

// matchPatience bounds the reading of the topic: at 100,000 records/s it is enough for
// tens of millions.
const matchPatience = 10 * time.Minute

// matched is what a secret verified, in JSON.
type matched struct {
	ID string `json:"id"`
	// Configured is false for a secret that was removed.
	Configured  bool    `json:"configured"`
	Events      int64   `json:"events"`
	LastMatched *string `json:"last_matched"`
}

func secrets(a *app.App) *cobra.Command {
	var since time.Duration
	c := &cobra.Command{
		Use:   "secrets SOURCE",
		Short: "Show which secrets of a source signed lately, and when last",
		Long: `Show which secrets of a source signed the events of the topic lately, and when last: when
the old one of a rotation is not used any more, it can be removed. It reads the topic, so it
knows what every receiver verified, before a restart too. It needs read access to the topic.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger sources secrets stripe
  hookledger sources secrets stripe --since 24h --json`,
		RunE: func(c *cobra.Command, args []string) error {
			if since <= 0 {
				return app.Usage(fmt.Errorf("--since is %s: set how far to look back, such as 72h", since))
			}
			cfg, sc, err := configured(a, args[0])
			if err != nil {
				return err
			}
			s, err := provider.New(sc)
			if err != nil {
				return app.Usage(err)
			}
			shown, err := describe(sc, s)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), matchPatience)
			defer cancel()
			began := time.Now().Add(-since)
			found, err := ops.SecretMatches(ctx, broker.Options(cfg.Kafka, a.Quiet()), cfg.Kafka.Topic, s.Key(), began)
			if err != nil {
				return app.TopicError(err)
			}
			out := struct {
				Source  string    `json:"source"`
				Since   *string   `json:"since"`
				Secrets []matched `json:"secrets"`
			}{s.Name(), console.JSONTime(began), matchedSecrets(shown.SecretIDs, found)}
			return a.Print("sources-secrets", out, func(w io.Writer) error { return printMatched(w, out.Secrets, since) })
		},
	}
	c.Flags().DurationVar(&since, "since", 7*24*time.Hour, "how far to look back")
	return c
}

// matchedSecrets lists the configured secrets in their order, then those removed.
func matchedSecrets(configured []secret, found map[string]ops.Match) []matched {
	out := []matched{}
	entry := func(id string, is bool) {
		m := found[id]
		out = append(out, matched{ID: id, Configured: is, Events: m.Events, LastMatched: console.JSONTime(m.Last)})
		delete(found, id)
	}
	for _, s := range configured {
		entry(s.ID, true)
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		entry(id, false)
	}
	return out
}

func printMatched(w io.Writer, all []matched, since time.Duration) error {
	t := console.NewTable("secret", "events>", "last matched", "")
	for _, m := range all {
		last, note := "not in "+since.String(), ""
		if m.LastMatched != nil {
			last = *m.LastMatched
		}
		if !m.Configured {
			note = "not configured any more"
		}
		t.Row(m.ID, fmt.Sprint(m.Events), last, note)
	}
	return t.Write(w)
}
