package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/consumer"
	"hookledger/ingest/payments"
	"hookledger/internal/cli/app"
	"hookledger/internal/observe"
)

// Role is something that works until its context ends, and then finishes what is in
// hand.
type Role struct {
	// Name is also that of its group of keys in the configuration.
	Name string
	// Run returns nil after ctx ended and the work in hand is done.
	Run   func(ctx context.Context) error
	Ready observe.Readiness
}

// Serve runs a role with its admin listener at adminAddr until ctx ends. The listener
// opens first and closes last: while the role waits for others, and while it drains,
// /livez and /readyz say so.
func Serve(ctx context.Context, role Role, adminAddr string, metrics prometheus.Gatherer, log zerolog.Logger) error {
	checks := &observe.Checks{}
	admin, err := observe.ListenAdmin(adminAddr, checks, metrics, log)
	if err != nil {
		return app.Usage(fmt.Errorf("%s: %w: set %s.admin", role.Name, err, role.Name))
	}
	checks.Add(role.Name, role.Ready)
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
