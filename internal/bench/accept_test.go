package bench

import (
	"fmt"
	"time"

	"hookledger/internal/testkit"
)

// measureAccept posts signed webhooks of 1 KiB to the receiver and to a bare handler.
func measureAccept(b *bench) {
	for _, brokers := range b.brokers {
		kafka := testkit.Kafka(b.tb)
		if brokers == 3 {
			kafka = testkit.KafkaCluster3(b.tb)
		}
		b.acceptOn(kafka, brokers)
	}
}

func (b *bench) acceptOn(kafka *testkit.KafkaCluster, brokers int) {
	const bare = "echo + HMAC + acks=all"
	s := b.newSystem(kafka, b.newTopic(kafka), "postgres://unused@127.0.0.1:1/unused")
	ours, oursAt := s.startIngest()
	floorAt := testkit.FreeAddr(b.tb)
	floor := b.startFloor("accept", order{Brokers: kafka.Brokers(), Topic: b.newTopic(kafka), Listen: floorAt})
	for _, callers := range b.callers {
		name := fmt.Sprintf("%d callers, %d broker%s", callers, brokers, map[bool]string{true: "s"}[brokers > 1])
		rate := b.add(line{name: name, unit: "requests/s", floorName: bare, want: least(0.8)})
		p99 := b.add(line{name: name + ", p99", unit: "ms", floorName: bare, want: most(1.5)})
		var cpu [2]float64
		side := func(p *testkit.KillableProcess, addr string, rates, p99s, medians *[]float64) float64 {
			u := b.watch(p)
			l, err := loadWebhooks(addr, callers, b.span/4, b.span)
			if err != nil || l.done == 0 {
				b.tb.Fatalf("load %s: %d answers, %v", addr, l.done, err)
			}
			own, _ := u.per(int(l.rate() * (b.span + b.span/4).Seconds()))
			*rates, *p99s, *medians = append(*rates, l.rate()), append(*p99s, percentile(l.ms, 0.99)), append(*medians, percentile(l.ms, 0.5))
			return own
		}
		var oursP50, floorP50 []float64
		if !b.tiny() { // caches, connections, and the heap as it will be
			for _, addr := range []string{oursAt, floorAt} {
				if _, err := loadWebhooks(addr, callers, 0, time.Second); err != nil {
					b.tb.Fatal(err)
				}
			}
		}
		b.alternate(
			func(int) { cpu[0] = side(ours, oursAt, &rate.ours, &p99.ours, &oursP50) },
			func(int) { cpu[1] = side(floor, floorAt, &rate.floor, &p99.floor, &floorP50) },
		)
		rate.note = fmt.Sprintf("process CPU %.0f and %.0f µs a request", cpu[0], cpu[1])
		p99.note = fmt.Sprintf("median %s and %s ms", figure(median(oursP50)), figure(median(floorP50)))
		b.say("%s: %s and %s requests/s, p99 %s and %s ms, CPU %.0f and %.0f µs", name, figure(median(rate.ours)), figure(median(rate.floor)),
			figure(median(p99.ours)), figure(median(p99.floor)), cpu[0], cpu[1])
	}
	b.add(line{
		name: fmt.Sprintf("most memory of the receiver, %d broker%s", brokers, map[bool]string{true: "s"}[brokers > 1]), unit: "MiB", floorName: bare,
		ours: []float64{memoryOf(ours.PID(), "VmHWM")}, floor: []float64{memoryOf(floor.PID(), "VmHWM")}, want: below(100),
		note: "buffers for the broker included",
	})
}
