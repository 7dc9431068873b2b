package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

// measureRecovery kills a worker with SIGKILL, starts it again at once, and measures from
// the kill until it applies the next record, while records keep coming.
func measureRecovery(b *bench) {
	kafka := testkit.Kafka(b.tb)
	const session = 10
	for _, c := range []struct {
		name, instance string
		most           float64
	}{{"back after kill -9, with consume.instance_id", "worker-1", 2}, {"back after kill -9, without", "", session + 2}} {
		if b.tiny() && c.instance == "" {
			continue // it would wait for the session to end
		}
		topic := b.newTopic(kafka)
		stop := b.trickle(kafka, topic)
		ledgerURL, bareURL := b.database("ledger"), b.database("bare")
		s := b.newSystem(kafka, topic, ledgerURL)
		var env []string
		if c.instance != "" {
			env = append(env, "HOOKLEDGER_CONSUME_INSTANCE_ID="+c.instance)
		}
		ours := s.start("consume", env...)
		floor := b.startFloor("consumer", order{Brokers: kafka.Brokers(), Topic: topic, Group: testkit.UniqueName("hand"), Database: bareURL, Instance: c.instance})
		l := b.add(line{name: c.name, unit: "s", floorName: "usual consumer, the same session timeout", want: below(c.most)})
		b.alternate(
			func(int) { l.ours = append(l.ours, b.back(ours, ledgerURL, oursDone)) },
			func(int) { l.floor = append(l.floor, b.back(floor, bareURL, handDone)) },
		)
		b.say("%s: %s s, usual consumer %s s", c.name, figure(median(l.ours)), figure(median(l.floor)))
		stop()
		ours.Kill()
		floor.Kill()
	}
}

// trickle produces fifty records a second until it is told to stop.
func (b *bench) trickle(kafka *testkit.KafkaCluster, topic string) (stop func()) {
	b.tb.Helper()
	cl := b.client(kafka, kgo.ProducerLinger(0))
	ctx, cancel := context.WithCancel(b.tb.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				cl.Produce(ctx, newRecord(topic, numbers.Add(1), uniform, time.Now()), nil)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// back kills and starts a worker that works, and returns how many seconds nothing was
// applied.
func (b *bench) back(p *testkit.KillableProcess, url, done string) float64 {
	b.tb.Helper()
	conn := connect(b.tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	at := func() (n int64) {
		if err := conn.QueryRow(b.tb.Context(), done).Scan(&n); err != nil {
			b.tb.Fatal(err)
		}
		return n
	}
	more := func(than int64) {
		testkit.Eventually(b.tb, 2*time.Minute, func() error {
			if at() <= than {
				return errors.New("nothing more is applied")
			}
			return nil
		})
	}
	more(at()) // it works, so the group has settled
	more(at())
	begin := time.Now()
	p.Kill()
	testkit.Eventually(b.tb, time.Minute, func() error { // what it had sent may still be committed
		var backends int
		if err := conn.QueryRow(b.tb.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`).Scan(&backends); err != nil || backends > 0 {
			return fmt.Errorf("%d connections of the dead worker are left: %w", backends, err)
		}
		return nil
	})
	before := at()
	p.Restart()
	more(before)
	return time.Since(begin).Seconds()
}
