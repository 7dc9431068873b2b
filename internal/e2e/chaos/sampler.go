package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
)

// sampleEvery is how often offsets and progress are noted.
const sampleEvery = 200 * time.Millisecond

// sampler notes committed offsets, progress and the memory of processes while a run goes on, past all proxies.
type sampler struct {
	r    *run
	adm  *kadm.Client
	pool *pgxpool.Pool
	stop context.CancelFunc
	done sync.WaitGroup

	mu  sync.Mutex
	all []checker.Sample
}

func newSampler(ctx context.Context, r *run) (*sampler, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.stage.brokers.bootstrap("")...), kgo.RetryTimeout(2*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("open Kafka client: %w", err)
	}
	pool, err := pgxpool.New(ctx, r.stage.postgres.URL(r.database)+"&pool_max_conns=2")
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return &sampler{r: r, adm: kadm.NewClient(cl), pool: pool, stop: func() {}}, nil
}

func (m *sampler) start(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	m.done.Go(func() { m.run(ctx) }) // ends with stop
}

// end stops sampling and returns the samples.
func (m *sampler) end() []checker.Sample {
	m.stop()
	m.done.Wait()
	return m.all
}

// close removes the topic and the group, so that brokers carry only what is in use.
func (m *sampler) close(ctx context.Context) {
	m.end()
	_, _ = m.adm.DeleteTopics(ctx, m.r.topic)
	m.pool.Close()
	m.adm.Close()
}

func (m *sampler) run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		for _, role := range m.r.roles {
			role.weigh()
		}
		if sample, err := m.sample(ctx); err == nil { // what cannot be read now is no sample
			m.mu.Lock()
			m.all = append(m.all, sample)
			m.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *sampler) sample(ctx context.Context) (checker.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	sample := checker.Sample{Committed: map[int32]int64{}, Progress: map[int32]checker.Progress{}}
	offsets, err := m.committed(ctx)
	if err != nil {
		return sample, err
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == m.r.topic && o.At >= 0 {
			sample.Committed[o.Partition] = o.At
		}
	})
	sample.At = time.Now()
	rows, err := m.pool.Query(ctx, `select partition, from_offset, next_offset from consumer_progress`)
	if err != nil {
		return sample, nil // Postgres is away
	}
	defer rows.Close()
	for rows.Next() {
		var p checker.Progress
		if err := rows.Scan(&p.Partition, &p.From, &p.Next); err != nil {
			return sample, err
		}
		sample.Progress[p.Partition] = p
	}
	if rows.Err() != nil {
		clear(sample.Progress)
	}
	return sample, nil
}

func (m *sampler) committed(ctx context.Context) (kadm.OffsetResponses, error) {
	offsets, err := m.adm.FetchOffsets(ctx, m.r.group)
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}

func (m *sampler) ends(ctx context.Context) (kadm.ListedOffsets, error) {
	ends, err := m.adm.ListEndOffsets(ctx, m.r.topic)
	if err == nil {
		err = ends.Error()
	}
	return ends, err
}

// drained says what is not committed yet.
func (m *sampler) drained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ends, err := m.ends(ctx)
	if err != nil {
		return err
	}
	offsets, err := m.committed(ctx)
	if err != nil {
		return err
	}
	var lag error
	ends.Each(func(end kadm.ListedOffset) {
		at := int64(-1)
		if o, ok := offsets.Lookup(m.r.topic, end.Partition); ok {
			at = o.At
		}
		if end.Offset > 0 && at != end.Offset {
			lag = errors.Join(lag, fmt.Errorf("partition %d is committed to %d of %d", end.Partition, at, end.Offset))
		}
	})
	return lag
}
