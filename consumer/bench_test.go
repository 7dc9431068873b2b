package consumer

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

// BenchmarkDrain measures how fast a worker works off a backlog: kfake and Postgres in
// the same process and machine. Records are the size of a small webhook.
func BenchmarkDrain(b *testing.B) {
	for _, partitions := range []int32{1, 6} {
		for _, batchRecords := range []int{100, 1000} {
			b.Run(fmt.Sprintf("partitions=%d/batch=%d", partitions, batchRecords), func(b *testing.B) {
				drain(b, partitions, batchRecords)
			})
		}
	}
}

func drain(b *testing.B, partitions int32, batchRecords int) {
	const backlog = 60_000
	for range b.N {
		b.StopTimer()
		t := setup(b, partitions)
		t.cfg.BatchMaxRecords = batchRecords
		records := make([]*kgo.Record, backlog)
		for i := range records {
			records[i] = t.record(int32(i)%partitions, "acme", fmt.Sprintf("evt_%d", i), told{Account: fmt.Sprintf("user_%d", i%1000), Amount: 1})
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: "x-signature", Value: make([]byte, 200)})
		}
		t.produce(records...)
		runtime.GC()
		b.StartTimer()
		began := time.Now()
		w := t.start(func(d *Deps) { d.Log = zerolog.Nop() })
		var most, buffered uint64
		testkit.Eventually(b, 5*time.Minute, func() error {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			if s := w.session.Load(); s != nil {
				var bytes uint64
				for _, p := range s.queues.standings() {
					bytes += uint64(p.bytes)
				}
				buffered = max(buffered, bytes)
			}
			if n := value(b, w.metrics.settledRecords); n < backlog {
				return fmt.Errorf("%v of %d records are settled", n, backlog)
			}
			return nil
		})
		took := time.Since(began)
		b.StopTimer()
		w.halt()
		t.lawful()
		b.ReportMetric(backlog/took.Seconds(), "records/s")
		b.ReportMetric(float64(most)/(1<<20), "MiB-heap") // the topic in kfake included
		b.ReportMetric(float64(buffered)/(1<<20), "MiB-queued")
	}
}
