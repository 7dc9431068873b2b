package roles

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest"
	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/schema/provider"
)

// Ingest makes `hookledger ingest`.
func Ingest(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ingest",
		Short: "Run a receiver: check webhooks and store them in the topic",
		Long: `Run a receiver: check webhooks and store them in the topic, until SIGTERM.

POST /webhooks/{source} on ingest.listen is answered 2xx when all in-sync replicas have
the event, and not before. Start as many as you like behind any load balancer. A receiver
needs the topic (` + "`hookledger topics apply`" + `) and no database.

SIGHUP reads the secrets again; files of secrets are watched anyway.`,
		Args: cobra.NoArgs,
		Example: `  hookledger ingest --config /etc/hookledger.yaml
  kill -HUP $(pidof hookledger)      # after changing a secret in the environment's file`,
		RunE: run(a, "ingest", func(_ context.Context, cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (Role, func(), error) {
			boundMemory(cfg.Ingest.MaxInflightBytes + cfg.Ingest.MaxBufferedBytes)
			server, err := NewServer(cfg, log, metrics)
			if err != nil {
				return Role{}, nil, err
			}
			return Role{Run: server.Run, Ready: server.Ready, Admin: cfg.Ingest.Admin, Reload: server.Reload}, func() {}, nil
		}),
	}
}

// NewServer wires a receiver. It fails with an error of setup if a secret or the
// address cannot be used.
func NewServer(cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (*ingest.Server, error) {
	if err := cfg.RequireSources(); err != nil {
		return nil, err
	}
	if w := cfg.Kafka.Warning(); w != "" {
		log.Warn().Msg(w)
	}
	if err := cfg.Kafka.CheckSecurity(); err != nil {
		return nil, app.Usage(err)
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return nil, app.Usage(err)
	}
	server, err := ingest.NewServer(ingest.Deps{
		Config:  cfg.Ingest,
		Sources: set,
		Topic:   cfg.Kafka.Topic,
		Kafka:   broker.Options(cfg.Kafka, log),
		CheckTopic: func(ctx context.Context, cl *kgo.Client) error {
			return awaitTopic(ctx, cl, cfg, log)
		},
		Registerer: metrics,
		Log:        log,
	})
	return server, app.Usage(err)
}

// Pauses between two looks at a broker that does not answer.
const (
	firstTopicPause   = 200 * time.Millisecond
	longestTopicPause = 5 * time.Second
	topicPatience     = 10 * time.Second
)

// awaitTopic waits for the brokers and refuses a topic that may lose records.
func awaitTopic(ctx context.Context, cl *kgo.Client, cfg *config.Loaded, log zerolog.Logger) error {
	for pause := firstTopicPause; ; pause = min(2*pause, longestTopicPause) {
		try, cancel := context.WithTimeout(ctx, topicPatience)
		_, err := broker.CheckTopic(try, cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes)
		cancel()
		var refused *broker.RefusedError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, broker.ErrNoTopic), errors.As(err, &refused):
			return err
		}
		wait := pause/2 + rand.N(pause/2)
		log.Warn().Err(err).Dur("retry_in", wait).Msg("Kafka does not answer yet; waiting for it")
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
