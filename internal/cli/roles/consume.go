package roles

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hookledger/consumer"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/migrations"
	"hookledger/schema/provider"
)

// Consume makes `hookledger consume`.
func Consume(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "consume",
		Short: "Run a worker: apply events from the topic to the balances",
		Long: `Run a worker: apply events from the topic to the balances in Postgres, until SIGTERM.

Start as many as you like, up to the topic's partitions; the group shares the work.
A worker needs the schema (` + "`hookledger migrate up`" + `), the topic (` + "`hookledger topics apply`" + `)
and the same sources as ingest, and refuses to start otherwise. If Postgres or Kafka is
away it waits, and /readyz on consume.admin says why.`,
		Args: cobra.NoArgs,
		Example: `  hookledger consume --config /etc/hookledger.yaml
  HOOKLEDGER_CONSUME_INSTANCE_ID=$(hostname) hookledger consume`,
		RunE: run(a, "consume", func(ctx context.Context, cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (Role, func(), error) {
			relaxWorker()
			worker, pool, err := NewWorker(ctx, cfg, log, metrics)
			if err != nil {
				return Role{}, nil, err
			}
			return Role{Run: worker.Run, Ready: worker.Ready, Admin: cfg.Consume.Admin}, pool.Close, nil
		}),
	}
}

// schemaPatience is how long a start waits for Postgres to tell its schema. A Postgres
// that is away is no reason to fail: the worker waits for it and says so.
const schemaPatience = 5 * time.Second

// NewWorker wires a worker: pool, ledger, mapping. It refuses a schema that is not this
// program's. The caller closes the pool after the worker's Run.
func NewWorker(ctx context.Context, cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (*consumer.Worker, *pgxpool.Pool, error) {
	if err := errors.Join(cfg.RequireDatabase(), cfg.RequireSources()); err != nil {
		return nil, nil, err
	}
	for _, w := range []string{cfg.Kafka.Warning(), cfg.MemoryWarning()} {
		if w != "" {
			log.Warn().Msg(w)
		}
	}
	if err := cfg.Kafka.CheckSecurity(); err != nil {
		return nil, nil, app.Usage(err)
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return nil, nil, app.Usage(err)
	}
	pool, err := app.NewPool(ctx, cfg, "hookledger consume", poolSize(cfg.Consume))
	if err != nil {
		return nil, nil, err
	}
	schema := func(ctx context.Context) error { return migrations.Check(ctx, pool) }
	if err := firstSchemaCheck(ctx, schema, log); err != nil {
		pool.Close()
		return nil, nil, err
	}
	worker, err := consumer.New(consumer.Deps{
		Config:       cfg.Consume,
		Kafka:        cfg.Kafka,
		MaxBodyBytes: cfg.Ingest.MaxBodyBytes,
		Memory:       consumer.Memory(cfg.Dedupe),
		Ledger: ledger.New(pool, set.Map, ledger.Options{
			StatementTimeout: cfg.Consume.StatementTimeout(),
			LockTimeout:      cfg.Consume.LockTimeout(),
			IdleTimeout:      cfg.Consume.StatementTimeout(),
		}),
		Pool:    pool,
		Schema:  schema,
		Log:     log,
		Metrics: metrics,
	})
	if err != nil {
		pool.Close()
		return nil, nil, app.Usage(err)
	}
	return worker, pool, nil
}

// poolSize is what a worker needs: a connection for each applier, and four for checks
// of positions, of the schema, at assignment and for the memory of events.
func poolSize(c consumer.Config) int { return max(c.Appliers, defaultAppliers) + 4 }

// defaultAppliers is what consumer takes for Appliers: 0 when the pool allows it.
const defaultAppliers = 4

func firstSchemaCheck(ctx context.Context, schema func(context.Context) error, log zerolog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, schemaPatience)
	defer cancel()
	err := schema(ctx)
	switch {
	case err == nil:
	case errors.Is(err, migrations.ErrSchemaOlder), errors.Is(err, migrations.ErrSchemaNewer):
		return app.Usage(err)
	default:
		log.Warn().Err(err).Msg("Postgres does not answer yet; waiting for it")
	}
	return nil
}
