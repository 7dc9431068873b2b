package lag

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/ops"
)

const (
	// patience bounds one look. databasePatience bounds how long Postgres holds it up.
	patience         = 30 * time.Second
	databasePatience = 3 * time.Second
)

// Command makes `hookledger lag`.
func Command(a *app.App) *cobra.Command {
	var watch bool
	var every time.Duration
	c := &cobra.Command{
		Use:   "lag",
		Short: "Show how far the workers are behind the topic",
		Long: `Show how far the workers are behind the topic: records behind as Kafka's own tool counts
them, seconds behind as the age of the oldest record that is not applied, the rate, and how
long it takes until nothing is behind; and who holds which partition.

It may run beside the workers. Without Postgres it shows what Kafka knows. Needs the rights
of hookledger_reader, and in Kafka to describe the topic and the group and to read the topic.`,
		Args: cobra.NoArgs,
		Example: `  hookledger lag
  hookledger lag --watch
  hookledger lag --json | jq '.records_behind, .seconds_behind'`,
		RunE: func(c *cobra.Command, _ []string) error {
			if every < 200*time.Millisecond {
				return app.Usage(fmt.Errorf("--every is %s: set 200ms or more", every))
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			return run(c.Context(), a, cfg, watch, every)
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "look again and again; with --json one object a line")
	c.Flags().DurationVar(&every, "every", 2*time.Second, "how often, with --watch")
	return c
}

func run(ctx context.Context, a *app.App, cfg *config.Loaded, watch bool, every time.Duration) error {
	cl, err := broker.Open(cfg.Kafka, a.Quiet())
	if err != nil {
		return err
	}
	defer cl.Close()
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cluster, topicID, _, err := broker.Identity(asking, cl, cfg.Kafka.Topic)
	if err != nil {
		return app.TopicError(err)
	}
	r := &ops.LagReader{Client: cl, Options: broker.Options(cfg.Kafka, a.Quiet()), Group: cfg.Kafka.Group, Topic: cfg.Kafka.Topic}
	progress, closeDatabase, err := progressOf(ctx, a, cfg, cluster, topicID)
	if err != nil {
		a.Say("progress is not known: %v", err)
	} else {
		defer closeDatabase()
		r.Progress = progress
	}

	var before *ops.Lag
	for {
		now, err := read(ctx, r, before)
		switch {
		case watch && ctx.Err() != nil:
			return nil // a person ends it
		case err != nil && !watch:
			return app.TopicError(err)
		case err != nil:
			a.Say("%v", err)
		default:
			if err := show(a, cfg, now, watch); err != nil || !watch {
				return err
			}
			before = &now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func read(ctx context.Context, r *ops.LagReader, before *ops.Lag) (ops.Lag, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.Read(ctx, before)
}

func show(a *app.App, cfg *config.Loaded, now ops.Lag, watch bool) error {
	f, ok := a.Stdout.(*os.File)
	if watch && !a.JSON && ok && isatty.IsTerminal(f.Fd()) {
		if _, err := io.WriteString(f, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
	return a.Print("lag", now, func(w io.Writer) error { return printLag(w, cfg, now, watch) })
}

// progressOf returns what reads the positions in Postgres of the topic as it is now.
func progressOf(ctx context.Context, a *app.App, cfg *config.Loaded, cluster string, topicID [16]byte) (func(context.Context) (map[int32]int64, error), func(), error) {
	ctx, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	pool, err := a.OpenDatabase(ctx, cfg, "lag")
	if err != nil {
		return nil, nil, err
	}
	books := ledger.New(pool, nil, ledger.Options{})
	progress := func(ctx context.Context) (map[int32]int64, error) {
		rows, err := books.ReadProgress(ctx, cfg.Kafka.Topic, topicID)
		if err != nil {
			return nil, err
		}
		next := make(map[int32]int64, len(rows))
		for _, p := range rows {
			if p.ClusterID == cluster && p.TopicID == topicID {
				next[p.Partition] = p.Next
			}
		}
		return next, nil
	}
	if _, err := progress(ctx); err != nil {
		pool.Close()
		return nil, nil, err
	}
	return progress, pool.Close, nil
}
