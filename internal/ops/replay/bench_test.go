package replay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/consumer"
	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
)

// BenchmarkKnown compares a replay of records that are all known with a worker that reads
// the same ones again after a reset: records a second of each, in kfake and Postgres on the
// same machine. A run looks at them once, and passes over what changes nothing.
func BenchmarkKnown(b *testing.B) {
	const records = 60_000
	w := newWorld(b)
	for p := range int32(2) {
		for i := range 30 {
			w.pay(p, fmt.Sprintf("p%d_%d_", p, i), records/60)
		}
	}
	w.work()
	for range b.N {
		worker := w.drainAgain(records)
		p := w.plan(Selection{})
		began := time.Now()
		res := w.mustRun(p, order)
		run := time.Since(began)
		if !res.MatchesPlan || res.Outcome["duplicate"] != records {
			b.Fatalf("got %+v", res)
		}
		b.ReportMetric(records/worker.Seconds(), "worker-records/s")
		b.ReportMetric(records/run.Seconds(), "run-records/s")
		b.ReportMetric(worker.Seconds()/run.Seconds(), "run/worker")
	}
}

// drainAgain resets the group to the start, and returns how long a worker takes.
func (w *world) drainAgain(records int64) time.Duration {
	w.t.Helper()
	w.commit(0)
	w.exec(`update consumer_progress set next_offset = 0, from_offset = 0`)
	kafka := broker.DefaultConfig()
	kafka.Brokers, kafka.Topic, kafka.Group, kafka.Durability = w.cluster.ListenAddrs(), topic, group, broker.Single
	worker, err := consumer.New(consumer.Deps{
		Config: consumer.DefaultConfig(), Kafka: kafka, Memory: consumer.Memory{Rotate: 168 * time.Hour, Keep: 840 * time.Hour},
		Ledger: ledger.New(w.pool, w.meaning, ledger.Options{}), Pool: w.pool, Schema: func(context.Context) error { return nil },
		Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }() // ends with stop
	// From its first batch on: joining the group is not its rate.
	var began time.Time
	var first int64
	testkit.Eventually(w.t, 5*time.Minute, func() error {
		var next int64
		if err := w.pool.QueryRow(ctx, `select sum(next_offset)::bigint from consumer_progress`).Scan(&next); err != nil {
			return err
		}
		if next > 0 && began.IsZero() {
			began, first = time.Now(), next
		}
		if next < records {
			return fmt.Errorf("%d of %d records", next, records)
		}
		return nil
	})
	took := time.Since(began) * time.Duration(records) / time.Duration(max(records-first, 1))
	stop()
	if err := <-ended; err != nil {
		w.t.Fatal(err)
	}
	return took
}
