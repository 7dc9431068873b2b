package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hookledger/consumer"
	"hookledger/ingest/payments"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/internal/observe"
)

// Role is something that works until its context ends, and then finishes what is in
// hand.
type Role struct {
	// Run returns nil after ctx ended and the work in hand is done.
	Run   func(ctx context.Context) error
	Ready observe.Readiness
	// Admin is the address of its admin listener.
	Admin string
	// Reload reads its secrets again. Nil: it has none.
	Reload func() error
}

// run makes the command that runs a role. Its name is also that of its group of keys in
// the configuration. wire may return what is to be closed after the role's end.
func run(a *app.App, name string, wire func(context.Context, *config.Loaded, zerolog.Logger, prometheus.Registerer) (Role, func(), error)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		cfg, err := a.Config()
		if err != nil {
			return err
		}
		log, err := a.Logger(cfg)
		if err != nil {
			return app.Usage(err)
		}
		log = log.With().Str("role", name).Logger()
		metrics := observe.NewRegistry()
		role, release, err := wire(c.Context(), cfg, log, metrics)
		if err != nil {
			return err
		}
		defer release()
		stopReloading := ReloadOnSignal(a, role.Reload, log)
		defer stopReloading()
		return serve(c.Context(), name, role, metrics, log)
	}
}

// serve runs a role with its admin listener until ctx ends. The listener opens first and
// closes last: while the role waits for others, and while it drains, /livez and /readyz
// say so.
func serve(ctx context.Context, name string, role Role, metrics prometheus.Gatherer, log zerolog.Logger) error {
	checks := &observe.Checks{}
	admin, err := observe.ListenAdmin(role.Admin, checks, metrics, log)
	if err != nil {
		return app.Usage(fmt.Errorf("%s: %w: set %s.admin", name, err, name))
	}
	checks.Add(name, role.Ready)
	log.Info().Stringer("admin", admin.Addr()).Str("version", observe.Build().Version).Msg("starting")

	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	adminDone := make(chan error, 1)
	go func() { adminDone <- admin.Run(adminCtx) }() // ends with stopAdmin below
	drain := context.AfterFunc(ctx, func() {
		checks.Drain("the process was asked to stop")
		log.Info().Msg("stopping: finishing the work in hand; a second signal abandons it")
	})
	err = role.Run(ctx)
	drain()
	stopAdmin()
	if adminErr := <-adminDone; err == nil {
		err = adminErr
	}
	if err == nil {
		log.Info().Msg("stopped")
	}
	return refusal(err)
}

// refusal marks errors that no retry mends as matters of setup.
func refusal(err error) error {
	var other *consumer.OtherClusterError
	if errors.Is(err, consumer.ErrRefused) || errors.Is(err, payments.ErrRefused) || errors.As(err, &other) {
		return app.Usage(err)
	}
	return app.TopicError(app.SchemaError(err))
}
