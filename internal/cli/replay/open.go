package replay

import (
	"context"
	"errors"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/ops"
	core "hookledger/internal/ops/replay"
	"hookledger/schema/provider"
)

// withSources is withReplayer for those who cannot do without sources.
func withSources(ctx context.Context, a *app.App, f func(context.Context, *core.Replayer, *config.Loaded) error) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	if err := cfg.RequireSources(); err != nil {
		return err
	}
	return withReplayer(ctx, a, cfg, f)
}

// withReplayer gives f what replays need: Kafka, Postgres and today's mapping.
func withReplayer(ctx context.Context, a *app.App, cfg *config.Loaded, f func(context.Context, *core.Replayer, *config.Loaded) error) error {
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return app.Usage(err)
	}
	pool, err := a.OpenDatabase(ctx, cfg, "replay")
	if err != nil {
		return err
	}
	defer pool.Close()
	cl, err := broker.Open(cfg.Kafka, a.Quiet())
	if err != nil {
		return err
	}
	defer cl.Close()
	bar := a.NewProgress()
	defer bar.Clear()
	return f(ctx, &core.Replayer{
		Client: cl, Options: broker.Options(cfg.Kafka, a.Quiet()), Group: cfg.Kafka.Group, Topic: cfg.Kafka.Topic,
		Store: &core.Store{Pool: pool}, Books: ledger.New(pool, set.Map, ledger.Options{}), Mapper: set.Map, Progress: bar.Update,
	}, cfg)
}

// marked marks what is a matter of usage or setup, and says which rights are missing.
func marked(err error) error {
	var partition *ops.PartitionError
	if errors.As(err, &partition) {
		return app.Usage(err)
	}
	for _, wrong := range []error{core.ErrElsewhere, core.ErrPlanDone, core.ErrPlanEdited, core.ErrWrongGroup} {
		if errors.Is(err, wrong) {
			return app.Usage(err)
		}
	}
	return app.RightsError(app.TopicError(err))
}
