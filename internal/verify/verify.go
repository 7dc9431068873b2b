package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"hookledger/schema"
)

// Options says what to verify. Pool, KafkaOpts, Topic and Group are required.
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

	// From and To bound the records that are judged by when they were received: From
	// included, To not; zero bounds nothing. Tables are compared whole in any case: a
	// balance is the sum of all its entries.
	From, To time.Time
	// Incremental proves what came since the mark Since, or everything if it is nil or
	// does not fit, and makes the next mark. It excludes From and To.
	Incremental bool
	Since       *Mark

	// Histories are files of acknowledged deliveries, as `send --history` writes them.
	Histories []string
	// SourceKey is the key of the source with a name. Nil: they are the same.
	SourceKey func(name string) string
	// CheckSignature checks a record's event again as of when it was received. It
	// returns nil, an *UncheckedError, or why the signature does not hold. Nil: no
	// signature is checked. It is called from several goroutines.
	CheckSignature func(*schema.Event) error
	// Meaning is what today's mapping says of an event. It is asked only about applied
	// events that the hash of their entries does not explain, and believed only if its
	// answer has the hash that was recorded. Nil: such events are notes.
	Meaning func(*schema.Event) (schema.Meaning, error)

	// Strict makes what waits for a person (quarantine, conflicts, warnings) break the
	// report.
	Strict bool
	// suspects is maxSuspected, for tests.
	suspects int
	// Command is how commands to run next begin. Empty: hookledger.
	Command string
}

// Run recomputes what the tables and the topic say and compares. It changes
// nothing, and workers may run meanwhile. A finding is not an error: it makes the
// report not OK. An error means that something could not be read, and then
// nothing is known.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Incremental && !(opts.From.IsZero() && opts.To.IsZero()) {
		return Report{}, errors.New("a range of time and a mark exclude each other: what lies outside the range would pass for proved")
	}
	if err := refuseStandby(ctx, opts.Pool); err != nil {
		return Report{}, err
	}
	cl, err := kgo.NewClient(readerOpts(opts.KafkaOpts)...)
	if err != nil {
		return Report{}, fmt.Errorf("make Kafka client to verify topic %s: %w", opts.Topic, err)
	}
	defer cl.Close()
	r := &run{opts: opts, cl: cl}
	if err := r.prove(ctx); err != nil {
		return Report{}, err
	}
	return r.report(), nil
}

// run is one verification: what was read, and what came of it.
type run struct {
	opts Options
	cl   *kgo.Client

	acks   *acks
	pos    positions
	limits limits
	// since is the mark that is built upon, nil for none; aside is why one was not.
	since *Mark
	aside string

	reader   *reader
	acc      accounting
	tables   tables
	meanings meanings
	missing  missing
	progress finding
	strange  bool // the group committed nothing of what workers applied
	next     *Mark
}

// prove reads and compares. The order is the proof: see the package documentation.
// Only the tables among themselves have no order to keep with the topic, so both go
// on at once.
func (r *run) prove(ctx context.Context) (err error) {
	// Before the log's end is asked for: what was acknowledged by then lies below it.
	if r.acks, err = readAcks(r.opts); err != nil {
		return err
	}
	if r.pos, err = readPositions(ctx, r.cl, r.opts.Topic, r.opts.Group); err != nil {
		return err
	}
	if err = r.settleByProgress(ctx); err != nil {
		return err
	}
	if err = r.chooseMark(ctx); err != nil {
		return err
	}
	if r.limits, err = readLimits(ctx, r.cl, r.opts, r.pos, r.since); err != nil {
		return err
	}
	spans := r.limits.spans(r.acks != nil)
	r.reader = newReader(r.cl, r.opts.Topic, spans)
	var open map[schema.EventKey]*unexplained
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		r.acc, err = r.accountant().account(bothCtx, r.reader, countUp(r.opts.Progress, spans))
		return err
	})
	both.Go(func() (err error) {
		if r.tables, err = readTables(bothCtx, r.opts.Pool, r.since); err != nil {
			return err
		}
		open, r.meanings, err = readUnexplained(bothCtx, r.opts, r.since)
		return err
	})
	if err := both.Wait(); err != nil {
		return err
	}
	if err = r.judgeMeanings(ctx, open); err != nil {
		return err
	}
	if r.missing, err = r.acks.settle(ctx, r.opts); err != nil {
		return err
	}
	if r.progress, r.strange, err = judgePositions(ctx, r.opts, r.cl, r.pos); err != nil {
		return err
	}
	return r.advance(ctx)
}

func (r *run) accountant() *accountant {
	workers := r.opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(min(workers, int(r.opts.Pool.Config().MaxConns)), 1)
	return &accountant{
		pool: r.opts.Pool, topic: r.opts.Topic, topicID: r.pos.topicID, workers: workers,
		limits: r.limits, acks: r.acks, checkSignature: r.opts.CheckSignature, incremental: r.since != nil,
	}
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

// ErrStandby refuses a standby.
var ErrStandby = errors.New("verify reads the primary, and this Postgres is a standby that may lag behind: set database.url to the primary")

// refuseStandby fails on a standby: it may show less than what is committed, and
// every record it has not yet heard of would look lost.
func refuseStandby(ctx context.Context, pool *pgxpool.Pool) error {
	var standby bool
	if err := pool.QueryRow(ctx, sqlIsStandby).Scan(&standby); err != nil {
		return fmt.Errorf("ask Postgres whether it is the primary: %w", err)
	}
	if standby {
		return ErrStandby
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
