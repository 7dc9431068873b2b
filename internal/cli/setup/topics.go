package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

// brokerPatience bounds a command that talks to Kafka alone.
const brokerPatience = time.Minute

// Topics makes `hookledger topics`.
func Topics(a *app.App) *cobra.Command {
	c := app.Group("topics", "Create and check the topic of the events", topicsApply(a), topicsCheck(a))
	c.Long = `Create and check the topic of the events.

What the topic must be like follows from the promise: with kafka.durability: replicated
a record that was acknowledged outlives the loss of one broker.`
	return c
}

func topicsApply(a *app.App) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "apply",
		Short: "Create the topic, or change what differs from the configuration",
		Long: `Create the topic, or change what differs from the configuration: partitions are added,
settings altered. Nothing is ever removed: what cannot or need not be changed is noted.`,
		Args:    cobra.NoArgs,
		Example: "  hookledger topics apply --dry-run\n  hookledger topics apply",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), brokerPatience)
			defer cancel()
			cl, err := broker.Open(cfg.Kafka, a.Quiet())
			if err != nil {
				return err
			}
			defer cl.Close()
			report, err := broker.ApplyTopic(ctx, cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes, dryRun)
			if err != nil {
				return app.TopicError(err)
			}
			return a.Print("topics-apply", report, func(w io.Writer) error { return printApply(w, report) })
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "let the brokers validate each step, change nothing")
	return c
}

func printApply(w io.Writer, r broker.Report) error {
	would := ""
	if r.DryRun {
		would = "would be "
	}
	line := fmt.Sprintf("topic %s is as configured", console.Safe(r.Topic))
	switch {
	case r.Created:
		line = fmt.Sprintf("topic %s %screated", console.Safe(r.Topic), would)
	case len(r.Changes) > 0:
		line = fmt.Sprintf("topic %s %schanged", console.Safe(r.Topic), would)
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	t := console.NewTable("setting", "from", "to").Indent("  ")
	for _, c := range r.Changes {
		t.Row(c.Setting, c.From, c.To)
	}
	if t.Len() > 0 {
		if err := t.Write(w); err != nil {
			return err
		}
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", console.Safe(n)); err != nil {
			return err
		}
	}
	return nil
}

func topicsCheck(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Say whether a role would start on the topic",
		Long:  "Say whether a role would start on the topic. Exit code 3 if one would refuse.",
		Args:  cobra.NoArgs, Example: "  hookledger topics check && hookledger ingest",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), brokerPatience)
			defer cancel()
			cl, err := broker.Open(cfg.Kafka, a.Quiet())
			if err != nil {
				return err
			}
			defer cl.Close()
			topic, err := broker.CheckTopic(ctx, cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes)
			refused := refusals(err)
			if err != nil && refused == nil {
				return err
			}
			out := struct {
				OK          bool     `json:"ok"`
				Topic       string   `json:"topic"`
				ClusterID   string   `json:"cluster_id"`
				Partitions  int      `json:"partitions"`
				Replication int      `json:"replication"`
				Refused     []string `json:"refused"`
				Durability  string   `json:"durability"`
			}{err == nil, cfg.Kafka.Topic, topic.ClusterID, topic.Partitions, topic.Replication, refused, cfg.Kafka.Durability}
			if out.Refused == nil {
				out.Refused = []string{}
			}
			printErr := a.Print("topics-check", out, func(w io.Writer) error {
				if out.OK {
					_, err := fmt.Fprintf(w, "topic %s is fine: %d partitions, replication %d, durability %s\n",
						console.Safe(out.Topic), out.Partitions, out.Replication, out.Durability)
					return err
				}
				if _, err := fmt.Fprintf(w, "a role would refuse topic %s:\n", console.Safe(out.Topic)); err != nil {
					return err
				}
				for _, r := range refused {
					if _, err := fmt.Fprintf(w, "  %s\n", console.Safe(r)); err != nil {
						return err
					}
				}
				return nil
			})
			if printErr != nil || out.OK {
				return printErr
			}
			return app.ErrFound
		},
	}
}

// refusals lists why a role would not start on the topic; nil if err says something
// else, such as that the brokers could not be asked.
func refusals(err error) []string {
	var refused *broker.RefusedError
	switch {
	case errors.As(err, &refused):
		return refused.Reasons
	case errors.Is(err, broker.ErrNoTopic):
		return []string{err.Error()}
	}
	return nil
}
