package roles

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hookledger/ingest/payments"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/migrations"
)

// Payments makes `hookledger payments`.
func Payments(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "payments",
		Short: "Run the door for payments: move money once for each Idempotency-Key",
		Long: `Run the door for payments: move money between two accounts, once for each
Idempotency-Key, until SIGTERM.

POST /v1/payments on payments.listen is answered 201 when Postgres has the payment, and a
retry with the same key is answered the same. GET /openapi.json describes it all. Start as
many as you like behind any load balancer. It needs the schema (` + "`hookledger migrate up`" + `),
tokens in payments.tokens, and a Postgres with a synchronous standby unless
payments.durability is single.

SIGHUP reads the tokens again; they are read every 10 seconds anyway.`,
		Args: cobra.NoArgs,
		Example: `  hookledger payments --config /etc/hookledger.yaml
  curl -H "Authorization: Bearer $SHOP_TOKEN" -H 'Idempotency-Key: order-1' --json \
    '{"from":"shop:1","to":"user_1","amount":1250,"currency":"EUR","reference":"order 1"}' \
    http://127.0.0.1:8081/v1/payments`,
		RunE: run(a, "payments", func(ctx context.Context, cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (Role, func(), error) {
			server, pool, err := NewPayments(ctx, cfg, log, metrics)
			if err != nil {
				return Role{}, nil, err
			}
			return Role{Run: server.Run, Ready: server.Ready, Admin: cfg.Payments.Admin, Reload: server.Reload}, pool.Close, nil
		}),
	}
}

// NewPayments wires a door for payments, with a pool of its own. The caller closes the
// pool after the server's Run.
func NewPayments(ctx context.Context, cfg *config.Loaded, log zerolog.Logger, metrics prometheus.Registerer) (*payments.Server, *pgxpool.Pool, error) {
	if err := cfg.RequireDatabase(); err != nil {
		return nil, nil, err
	}
	pc, err := pgxpool.ParseConfig(cfg.Database.URL)
	if err != nil {
		return nil, nil, app.Usage(errors.New("database.url cannot be read as a connection URL"))
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "hookledger payments"
	}
	pool, err := pgxpool.NewWithConfig(ctx, payments.PoolConfig(pc, cfg.Database.MaxConnections))
	if err != nil {
		return nil, nil, app.Usage(err)
	}
	server, err := payments.NewServer(payments.Deps{
		Config:     cfg.Payments,
		Pool:       pool,
		Schema:     func(ctx context.Context) error { return migrations.Check(ctx, pool) },
		Registerer: metrics,
		Log:        log,
	})
	if err != nil {
		pool.Close()
		return nil, nil, app.Usage(err)
	}
	return server, pool, nil
}
