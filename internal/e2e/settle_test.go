package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// sampleEvery is how often offsets and progress are noted.
const sampleEvery = 200 * time.Millisecond

// slack is how much longer than promised an answer may take where two cores run
// brokers, Postgres, clients and the race detector beside the receiver.
const slack = 2 * time.Second

// sampler notes committed offsets and progress while a system runs.
type sampler struct {
	s    *system
	adm  *kadm.Client
	pool *pgxpool.Pool
	stop context.CancelFunc
	done sync.WaitGroup

	mu  sync.Mutex
	all []checker.Sample
}

// startSampler samples until settle, or the end of the test.
func (s *system) startSampler() {
	s.tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Brokers()...), kgo.RetryTimeout(2*time.Second))
	if err != nil {
		s.tb.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, s.opts.database)
	if err != nil {
		s.tb.Fatal(err)
	}
	m := &sampler{s: s, adm: kadm.NewClient(cl), pool: pool, stop: stop}
	if s.sampler != nil { // it was ended for a while
		m.all = s.sampler.all
	}
	m.done.Go(func() { m.run(ctx) }) // ends with stop
	s.tb.Cleanup(func() {
		m.end()
		pool.Close()
		cl.Close()
	})
	s.sampler = m
}

func (m *sampler) end() {
	m.stop()
	m.done.Wait()
}

func (m *sampler) run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	sample := checker.Sample{Committed: map[int32]int64{}, Progress: map[int32]checker.Progress{}}
	offsets, err := m.adm.FetchOffsets(ctx, m.s.group)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return sample, err
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == m.s.topic && o.At >= 0 {
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
	return sample, nil
}

// drained is for Eventually: every partition is committed up to its end.
func (s *system) drained() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ends, err := s.sampler.adm.ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	offsets, err := s.sampler.adm.FetchOffsets(ctx, s.group)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return err
	}
	var lag error
	ends.Each(func(end kadm.ListedOffset) {
		at := int64(-1)
		if o, ok := offsets.Lookup(s.topic, end.Partition); ok {
			at = o.At
		}
		if end.Offset > 0 && at != end.Offset {
			lag = errors.Join(lag, fmt.Errorf("partition %d is committed to %d of %d", end.Partition, at, end.Offset))
		}
	})
	return lag
}

// awaitDrained waits until everything in the topic is committed.
func (s *system) awaitDrained(within time.Duration) {
	s.tb.Helper()
	began := time.Now()
	testkit.Eventually(s.tb, within, s.drained)
	s.tb.Logf("drained after %s", time.Since(began).Round(time.Millisecond))
}

// tables reads Postgres as the checker does.
func (s *system) tables() checker.Tables {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	t, err := checker.ReadTables(ctx, s.opts.database)
	if err != nil {
		s.tb.Fatal(err)
	}
	return t
}

// verdict is what a story adds to what can be gathered.
type verdict struct {
	before    *checker.Tables
	incidents []string
	// noDeadline leaves the time of requests unjudged.
	noDeadline bool
}

// settle waits until all is read, gathers the world and wants no violation.
func (s *system) settle(v verdict) checker.World {
	s.tb.Helper()
	s.awaitDrained(time.Minute)
	w := s.gather(v)
	if len(w.Records) == 0 || len(w.History) == 0 || len(w.Tables.Events) == 0 {
		s.tb.Errorf("nothing to judge: %d records, %d deliveries, %d events", len(w.Records), len(w.History), len(w.Tables.Events))
	}
	for _, violation := range checker.Check(w) {
		s.tb.Errorf("violated %s", violation)
	}
	s.verify()
	if !s.tb.Failed() {
		s.tb.Logf("checked %d deliveries, %d records, %d events, %d entries, %d samples after %s",
			len(w.History), len(w.Records), len(w.Tables.Events), len(w.Tables.Entries), len(w.Samples), time.Since(s.started).Round(time.Millisecond))
	}
	return w
}

// gather sees all that can be seen from outside.
func (s *system) gather(v verdict) checker.World {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.sampler.end()
	w := checker.World{
		History: s.history.snapshot(s.tb), Tables: s.tables(), Before: v.before, Incidents: v.incidents,
		Samples: s.sampler.all, Texts: map[string]string{},
	}
	var err error
	if w.Records, err = checker.ReadTopic(ctx, s.kafka.Brokers(), s.topic); err != nil {
		s.tb.Fatal(err)
	}
	if w.Group, err = checker.ReadGroup(ctx, s.kafka.Tool, s.group, s.topic); err != nil {
		s.tb.Fatal(err)
	}
	for _, secret := range s.secrets {
		w.Secrets = append(w.Secrets, secret)
	}
	for _, r := range append(append([]*role{}, s.ingest...), s.consume...) {
		output := r.Output()
		w.Texts["output of "+r.name] = output
		for _, alarm := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
			if strings.Contains(output, alarm) {
				s.tb.Errorf("%s wrote %q; see its output below", r.name, alarm)
			}
		}
		if _, metrics, err := r.get("/metrics"); err == nil { // it may have ended
			w.Texts["metrics of "+r.name] = metrics
		}
	}
	if !v.noDeadline {
		w.RequestLimit = s.opts.ackTimeout + 2*slack
	}
	return w
}

// within fails the test if something took longer than it may.
func within(tb testing.TB, what string, took, most time.Duration) {
	tb.Helper()
	if took > most {
		tb.Errorf("%s: got %s, want at most %s", what, took.Round(time.Millisecond), most)
	}
	tb.Logf("%s: %s", what, took.Round(time.Millisecond))
}
