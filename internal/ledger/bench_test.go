package ledger

import (
	"fmt"
	"testing"

	"hookledger/internal/testkit"
)

// benchRecords is the batch of a worker with a backlog.
const benchRecords = 1000

// BenchmarkApply measures one worker on one partition, batches of 1,000 records of one
// posting each. new: events nobody knows, over 10,000 accounts; the ledger grows as it
// runs. replay: the same batch again and again.
func BenchmarkApply(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		bundle := setupOn(b, testkit.LedgerDB(b))
		id := 0
		batch := func() Batch {
			batch := bundle.batch(0)
			for i := range benchRecords {
				id++
				e := paid(b, fmt.Sprintf("evt_%024d", id), fmt.Sprintf("account:%d", id*7919%10_000), 100)
				batch.Records = append(batch.Records, record(batch.Start+int64(i), e))
			}
			return batch
		}
		bundle.start(0)
		for range 5 { // first plans, first pages
			bundle.applyBatch(batch())
		}
		b.ResetTimer()
		for range b.N {
			b.StopTimer()
			next := batch()
			b.StartTimer()
			bundle.applyBatch(next)
		}
		b.ReportMetric(float64(b.N*benchRecords)/b.Elapsed().Seconds(), "records/s")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("replay", func(b *testing.B) {
		bundle := setupOn(b, testkit.LedgerDB(b))
		batch := bundle.batch(0)
		for i := range benchRecords {
			e := paid(b, fmt.Sprintf("evt_%024d", i), fmt.Sprintf("account:%d", i), 100)
			batch.Records = append(batch.Records, record(int64(i), e))
		}
		bundle.applyBatch(batch)
		b.ResetTimer()
		for range b.N {
			bundle.applyBatch(batch)
		}
		b.ReportMetric(float64(b.N*benchRecords)/b.Elapsed().Seconds(), "records/s")
		b.ReportMetric(0, "ns/op")
	})
}
