package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Options says what to verify. All fields but Progress and Workers are required.
type Options struct {
	// Pool reaches the primary, with any role that may SELECT.
	Pool *pgxpool.Pool
	// KafkaOpts say how to reach the brokers: seeds, TLS, SASL. Verify adds how to
	// read. They must name no group and no topic.
	KafkaOpts []kgo.Opt
	// Topic is what is read, Group the group whose committed offsets are judged.
	Topic, Group string
	// Workers is how many connections look records up. Zero means as many as there
	// are processors, and never more than the pool has.
	Workers int
	// Progress hears how many of how many offsets were read. It is called from one
	// goroutine, often: it should return at once. Nil is allowed.
	Progress func(done, total int64)
}

// Run recomputes what the tables and the topic say and compares. It changes
// nothing, and workers may run meanwhile. A finding is not an error: it makes the
// report not OK. An error means that something could not be read, and then
// nothing is known.
func Run(ctx context.Context, opts Options) (Report, error) {
	if err := refuseStandby(ctx, opts.Pool); err != nil {
		return Report{}, err
	}
	cl, err := kgo.NewClient(readerOpts(opts.KafkaOpts)...)
	if err != nil {
		return Report{}, fmt.Errorf("make Kafka client to verify topic %s: %w", opts.Topic, err)
	}
	defer cl.Close()

	// The order is the proof: see the package documentation. Only the tables among
	// themselves have no order to keep with the topic, so both go on at once.
	pos, err := readPositions(ctx, cl, opts.Topic, opts.Group)
	if err != nil {
		return Report{}, err
	}
	var (
		r   = newReader(cl, opts.Topic, pos.spans())
		acc accounting
		t   tables
	)
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		acc, err = newAccountant(opts, pos).account(bothCtx, r, countUp(opts.Progress, pos.spans()))
		return err
	})
	both.Go(func() (err error) {
		t, err = readTables(bothCtx, opts.Pool)
		return err
	})
	if err := both.Wait(); err != nil {
		return Report{}, err
	}
	progress, err := judgePositions(ctx, opts, cl, pos)
	if err != nil {
		return Report{}, err
	}
	return report(opts, pos, r, acc, t, progress), nil
}

func newAccountant(opts Options, pos positions) *accountant {
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(min(workers, int(opts.Pool.Config().MaxConns)), 1)
	return &accountant{pool: opts.Pool, topic: opts.Topic, topicID: pos.topicID, workers: workers}
}

// countUp returns a function that adds up offsets and tells progress.
func countUp(progress func(done, total int64), spans []span) func(int64) {
	var done, total int64
	for _, s := range spans {
		total += s.records()
	}
	if progress == nil {
		return func(int64) {}
	}
	progress(0, total)
	return func(n int64) {
		done += n
		progress(done, total)
	}
}

// refuseStandby fails on a standby: it may show less than what is committed, and
// every record it has not yet heard of would look lost.
func refuseStandby(ctx context.Context, pool *pgxpool.Pool) error {
	var standby bool
	if err := pool.QueryRow(ctx, sqlIsStandby).Scan(&standby); err != nil {
		return fmt.Errorf("ask Postgres whether it is the primary: %w", err)
	}
	if standby {
		return errors.New("verify reads the primary, and this Postgres is a standby that may lag behind: set database.url to the primary")
	}
	return nil
}

// readError words an error of a table that verify reads.
func readError(what string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "42P01", "42703": // undefined table, undefined column
			return fmt.Errorf("read %s: %w: run `hookledger migrate up`", what, err)
		case "42501": // insufficient privilege
			return fmt.Errorf("read %s: %w: connect as a role that is granted hookledger_reader", what, err)
		}
	}
	return fmt.Errorf("read %s: %w", what, err)
}
