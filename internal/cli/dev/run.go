package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"hookledger/consumer"
	"hookledger/ingest"
	"hookledger/ingest/payments"
	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/roles"
	"hookledger/internal/config"
	"hookledger/internal/devstack"
	"hookledger/internal/observe"
	"hookledger/migrations"
)

// databaseName is the database within the local cluster.
const databaseName = "hookledger"

// readyWithin bounds the wait for the roles, once the stack is up.
const readyWithin = time.Minute

// stopWithin bounds the stop of Kafka and Postgres.
const stopWithin = 20 * time.Second

// run starts everything, tells when it is ready, and stops when ctx ends.
func run(ctx context.Context, a *app.App, o options) error {
	began := time.Now()
	log, err := observe.NewLogger(a.Stderr, "info", observe.FormatAuto)
	if err != nil {
		return err
	}
	f := folder{o.data}
	if err := os.MkdirAll(f.path, 0o755); err != nil { // secrets and data below have modes of their own
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := checkPorts(o); err != nil {
		return err
	}
	if o.reset {
		if err := f.reset(ctx); err != nil {
			return fmt.Errorf("reset %s: %w", f.path, err)
		}
		log.Info().Str("data", f.path).Msg("all data removed")
	}
	parts, err := startStack(ctx, f, o, log)
	if err != nil {
		return err
	}
	defer parts.stop(ctx, log)

	cfg, err := f.writeConfig(stack{
		brokers: parts.kafka.Brokers(), database: parts.postgres.URL(databaseName), listen: o.listen, payments: o.payments, admin: o.admin,
	}, o.partitions, a.Environ)
	if err != nil {
		return err
	}
	if err := prepare(ctx, cfg, log); err != nil {
		return err
	}
	r, err := newRunning(ctx, cfg, log, !o.noWorker)
	if err != nil {
		return err
	}
	defer r.close()
	stopReloading := roles.ReloadOnSignal(a, r.Reload, log)
	defer stopReloading()
	return r.run(ctx, a, parts, func() error { return printBanner(a, cfg, o, parts, r, time.Since(began)) })
}

// parts are Kafka and Postgres.
type parts struct {
	kafka    *devstack.Kafka
	postgres *devstack.Postgres
}

// startStack starts Kafka, whose lock tells of another dev, then Postgres.
func startStack(ctx context.Context, f folder, o options, log zerolog.Logger) (*parts, error) {
	p := &parts{}
	var err error
	p.kafka, err = devstack.StartKafka(ctx, devstack.KafkaOptions{
		Dir: f.kafka(), Port: o.kafkaPort, DefaultPartitions: o.partitions,
		Log: func(message string) { log.Warn().Str("component", "kafka").Msg(message) },
	})
	if err != nil {
		return nil, err
	}
	p.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{
		Dir: f.postgres(), Port: o.postgresPort,
		Log: func(message string) { log.Info().Str("component", "postgres").Msg(message) },
	})
	if err != nil {
		_ = p.kafka.Stop(ctx)
		return nil, err
	}
	return p, nil
}

// stop ends Postgres, then Kafka. It works although ctx is over.
func (p *parts) stop(ctx context.Context, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := errors.Join(p.postgres.Stop(ctx), p.kafka.Stop(ctx)); err != nil {
		log.Error().Err(err).Msg("stop of the local Kafka and Postgres")
	}
}

// prepare makes database, schema and topic.
func prepare(ctx context.Context, cfg *config.Loaded, log zerolog.Logger) error {
	if err := createDatabase(ctx, cfg.Database.URL); err != nil {
		return err
	}
	if err := migrations.Up(ctx, cfg.Database.URL); err != nil {
		return err
	}
	cl, err := broker.Open(cfg.Kafka, log)
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = broker.ApplyTopic(ctx, cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes, false)
	return err
}

// createDatabase makes the database that url names, if it is not there.
func createDatabase(ctx context.Context, url string) error {
	pc, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	name := pc.Database
	pc.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, pc)
	if err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_catalog.pg_database where datname = $1)", name).Scan(&there); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if there {
		return nil
	}
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	return nil
}

// running are the roles of this process. Worker is nil with --no-worker.
type running struct {
	server *ingest.Server
	worker *consumer.Worker
	door   *payments.Server
	// pools are closed after the roles that use them.
	pools  []*pgxpool.Pool
	checks *observe.Checks
	admin  *observe.Admin
	log    zerolog.Logger
}

func newRunning(ctx context.Context, cfg *config.Loaded, log zerolog.Logger, withWorker bool) (*running, error) {
	r := &running{checks: &observe.Checks{}, log: log}
	registry := observe.NewRegistry()
	var err error
	if r.admin, err = observe.ListenAdmin(cfg.Ingest.Admin, r.checks, registry, log); err != nil {
		return nil, app.Usage(fmt.Errorf("%w: choose another with --admin", err))
	}
	if r.server, err = newServer(cfg, log, registry); err != nil {
		return nil, err
	}
	r.checks.Add("ingest", r.server.Ready)
	var pool *pgxpool.Pool
	if r.door, pool, err = roles.NewPayments(ctx, cfg, log.With().Str("role", "payments").Logger(), registry); err != nil {
		r.server.Close()
		return nil, fmt.Errorf("%w: choose another address with --payments", err)
	}
	r.pools = append(r.pools, pool)
	r.checks.Add("payments", r.door.Ready)
	if !withWorker {
		return r, nil
	}
	if r.worker, pool, err = roles.NewWorker(ctx, cfg, log.With().Str("role", "consume").Logger(), registry); err != nil {
		r.server.Close()
		r.door.Close()
		r.close()
		return nil, err
	}
	r.pools = append(r.pools, pool)
	r.checks.Add("consume", r.worker.Ready)
	return r, nil
}

// Reload reads secrets and tokens again.
func (r *running) Reload() error { return errors.Join(r.server.Reload(), r.door.Reload()) }

func (r *running) close() {
	for _, pool := range r.pools {
		pool.Close()
	}
}

func newServer(cfg *config.Loaded, log zerolog.Logger, registry prometheus.Registerer) (*ingest.Server, error) {
	server, err := roles.NewServer(cfg, log.With().Str("role", "ingest").Logger(), registry)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --listen", err)
	}
	return server, nil
}

// run runs the roles until ctx ends or a part fails, and calls ready once all are.
// The admin listener outlives the roles, so that it can say that they drain.
func (r *running) run(ctx context.Context, a *app.App, p *parts, ready func() error) error {
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	adminDone := make(chan error, 1)
	go func() { adminDone <- r.admin.Run(adminCtx) }() // ends with stopAdmin below

	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { return r.server.Run(working) })
	group.Go(func() error { return r.door.Run(working) })
	if r.worker != nil {
		group.Go(func() error { return r.worker.Run(working) })
	}
	group.Go(func() error {
		select {
		case <-p.postgres.Done():
			return fmt.Errorf("Postgres ended by itself: its log is %s", filepath.Join(p.postgres.Dir(), "postgres.log"))
		case <-working.Done():
			return nil
		}
	})
	group.Go(func() error {
		if err := r.awaitReady(working); err != nil {
			return err
		}
		return ready()
	})
	announced := context.AfterFunc(ctx, func() {
		r.checks.Drain("the process was asked to stop")
		a.Say("\nstopping: finishing the work in hand (Ctrl-C again abandons it; nothing is lost either way)")
	})
	err := group.Wait()
	announced()
	stopAdmin()
	if adminErr := <-adminDone; err == nil {
		err = adminErr
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// awaitReady waits until every role is ready, or working ends.
func (r *running) awaitReady(working context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	for {
		if r.checks.State().Ready {
			return nil
		}
		select {
		case <-tick.C:
		case <-working.Done():
			return working.Err()
		case <-late.C:
			return fmt.Errorf("not ready after %s: %s", readyWithin, firstFailure(r.checks.State()))
		}
	}
}

func firstFailure(s observe.State) string {
	for _, c := range s.Checks {
		if !c.OK {
			return c.Name + ": " + c.Error
		}
	}
	return "no reason given"
}
