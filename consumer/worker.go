package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

// ErrRefused says that the worker does not start on this topic or this database, which
// a retry does not mend. The error that wraps it says what does.
var ErrRefused = errors.New("the worker refuses to start")

// Deps are what a Worker works with. All of them are required.
type Deps struct {
	Config Config
	Kafka  broker.Config
	// MaxBodyBytes is the receiver's limit, which the topic must be able to hold.
	MaxBodyBytes int
	// Memory says how long events are remembered.
	Memory Memory
	// Ledger applies batches through Pool.
	Ledger *ledger.Ledger
	Pool   *pgxpool.Pool
	// Schema fails if Postgres is away or holds a schema this binary does not know.
	Schema  func(context.Context) error
	Log     zerolog.Logger
	Metrics prometheus.Registerer

	// options are further options of the Kafka clients, for tests.
	options []kgo.Opt
}

// Worker is one member of the consumer group. It applies the records of its partitions
// and then tells Kafka how far it got.
type Worker struct {
	cfg          Config
	kafka        broker.Config
	maxBodyBytes int
	ledger       *ledger.Ledger
	pool         *pgxpool.Pool
	schema       func(context.Context) error
	log          zerolog.Logger
	// floods is log for what can come with every batch: at most some lines a second.
	floods  zerolog.Logger
	metrics *metrics
	outlook *outlook

	memory        Memory
	memoryMetrics *memoryMetrics

	// options are those of every Kafka client.
	options []kgo.Opt
	// admin asks about topic and group; it outlives the members of the group.
	admin  *kgo.Client
	health health
	losses losses
	// session is the current membership, nil between two.
	session atomic.Pointer[session]
}

// New returns a Worker that has not joined the group yet. It registers its metrics.
func New(d Deps) (*Worker, error) {
	if err := d.Config.Validate(); err != nil {
		return nil, err
	}
	if d.Memory.Rotate <= 0 || d.Memory.Keep <= 0 {
		return nil, errNoMemory
	}
	w := &Worker{
		cfg: d.Config, kafka: d.Kafka, maxBodyBytes: d.MaxBodyBytes, ledger: d.Ledger, pool: d.Pool, schema: d.Schema,
		memory: d.Memory, memoryMetrics: newMemoryMetrics(d.Metrics),
		log: d.Log.With().Str("component", "consumer").Logger(),
	}
	w.floods = w.log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Second})
	if w.cfg.Appliers == 0 {
		w.cfg.Appliers = min(4, int(d.Pool.Config().MaxConns))
	}
	w.metrics = newMetrics(d.Metrics, w)
	w.outlook = newOutlook(d.Metrics)
	w.options = append(broker.Options(d.Kafka, d.Log), d.options...)
	var err error
	if w.admin, err = kgo.NewClient(w.options...); err != nil {
		return nil, fmt.Errorf("open Kafka client: %w: check kafka.brokers", err)
	}
	return w, nil
}

// Run consumes until ctx ends, then finishes what is in hand, commits and leaves the
// group. It returns nil after that, and an error only for what no retry mends: one that
// wraps ErrRefused, or another worker with the same consume.instance_id. Run is called
// once.
func (w *Worker) Run(ctx context.Context) error {
	defer w.admin.Close()
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx))
	probed := make(chan struct{})
	go func() { // ends with Run
		defer close(probed)
		var both sync.WaitGroup
		both.Go(func() { w.watchOutlook(probing) })
		w.probe(probing)
		both.Wait()
	}()
	defer func() {
		stopProbing()
		<-probed
	}()
	tending, stopTending := context.WithCancel(ctx)
	tended := make(chan struct{})
	go func() { // ends with Run
		defer close(tended)
		w.tend(tending)
	}()
	defer func() {
		stopTending()
		<-tended
	}()

	if err := w.checkTopic(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := w.runSession(ctx)
		switch {
		case ctx.Err() != nil:
			w.log.Info().Msg("worker stopped")
			return nil
		case isFatal(err):
			return err
		}
		if time.Since(began) > reopenCalm {
			attempt = 1
		}
		wait := backoff(attempt)
		w.metrics.reopens.WithLabelValues(reopenReason(err)).Inc()
		w.log.Warn().Err(err).Dur("retry_in", wait).Msg("leaving the group to look up positions again")
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// reopenCalm is how long a membership must last for the next failure to be a new one.
const reopenCalm = time.Minute

// checkTopic waits for the brokers and refuses a topic that may lose records.
func (w *Worker) checkTopic(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		try, cancel := context.WithTimeout(ctx, w.cfg.batchTimeout())
		_, err := broker.CheckTopic(try, w.admin, w.kafka, w.maxBodyBytes)
		cancel()
		var refused *broker.RefusedError
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case errors.As(err, &refused), errors.Is(err, broker.ErrNoTopic):
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		wait := backoff(attempt)
		w.metrics.retries.WithLabelValues(classOf(err)).Inc()
		w.log.Warn().Err(err).Int("attempt", attempt).Dur("retry_in", wait).Msg("Kafka does not answer yet")
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// isFatal tells what no retry mends.
func isFatal(err error) bool {
	var other *OtherClusterError
	return errors.As(err, &other) || errors.Is(err, kerr.FencedInstanceID) || errors.Is(err, ErrRefused)
}
