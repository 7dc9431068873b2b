package ingest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

// BenchmarkProduce shows what a linger costs a lone sender and what it gives many, on one
// Apache Kafka broker with records of 1 KiB: ns/op is the time between acknowledgements,
// ms/ack the time one sender waits.
// go test -run '^$' -bench Produce -benchtime 3s ./ingest
func BenchmarkProduce(b *testing.B) {
	kafka := testkit.Kafka(b)
	value := []byte(strings.Repeat("x", 1<<10))
	var n atomic.Int64
	for _, linger := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
		for _, senders := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("linger=%s/senders=%d", linger, senders), func(b *testing.B) {
				name := testkit.UniqueName("bench")
				config, h := DefaultConfig(), newHealth(time.Now, name)
				m, err := newMetrics(prometheus.NewRegistry())
				if err != nil {
					b.Fatal(err)
				}
				client, err := kgo.NewClient(append(producerOptions(config, name, h), kgo.SeedBrokers(kafka.Brokers()...), kgo.ProducerLinger(linger))...)
				if err != nil {
					b.Fatal(err)
				}
				defer client.Close()
				if _, err := kadm.NewClient(client).CreateTopic(b.Context(), 12, 1, nil, name); err != nil {
					b.Fatal(err)
				}
				p := &producer{client: client, ackTimeout: 10 * time.Second, health: h, metrics: m}
				one := func() {
					r := &kgo.Record{Key: []byte(fmt.Sprint("evt_", n.Add(1))), Value: value, Timestamp: time.Now()}
					if _, err := p.produce([]*kgo.Record{r}, p.ackTimeout); err != nil {
						b.Error(err)
					}
				}
				for range 50 {
					one() // connections, metadata, producer ID
				}
				b.SetParallelism(max(1, senders/2)) // times GOMAXPROCS, 2 here
				b.ResetTimer()
				var waited atomic.Int64
				if senders == 1 {
					for b.Loop() {
						begun := time.Now()
						one()
						waited.Add(int64(time.Since(begun)))
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							begun := time.Now()
							one()
							waited.Add(int64(time.Since(begun)))
						}
					})
				}
				b.ReportMetric(float64(waited.Load())/float64(b.N)/1e6, "ms/ack")
			})
		}
	}
}
