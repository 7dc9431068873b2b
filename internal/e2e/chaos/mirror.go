package chaos

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
)

// mirror stops the workers for a while. What comes meanwhile stands in a second partition
// too when they go on, as after a change of the number of partitions: two workers have
// the same events at the same time, and nothing of them is known yet.
func (r *run) mirror(ctx context.Context) func() {
	for _, name := range workerRoles {
		r.roles[name].signal(syscall.SIGSTOP)
	}
	return func() {
		copies, err := r.copyUnread(ctx)
		for _, name := range workerRoles {
			r.roles[name].signal(syscall.SIGCONT)
		}
		switch {
		case err != nil:
			r.log("mirror: %v", err)
		case copies > 0:
			r.log("mirror: %d records are in a second partition", copies)
			r.fire(Mirror)
		}
	}
}

// copyUnread appends each record that the group has not committed to the next partition.
func (r *run) copyUnread(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	offsets, err := r.sampler.committed(ctx)
	if err != nil {
		return 0, err
	}
	read := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) { read[o.Partition] = o.At })
	records, err := checker.ReadTopic(ctx, r.stage.brokers.bootstrap(""), r.topic)
	if err != nil {
		return 0, err
	}
	records = slices.DeleteFunc(records, func(r checker.Record) bool { return r.Offset < read[r.Partition] })
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.stage.brokers.bootstrap("")...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return 0, fmt.Errorf("open Kafka client: %w", err)
	}
	defer cl.Close()
	var copies []*kgo.Record
	for i := range records {
		from := &records[i]
		to := &kgo.Record{Topic: r.topic, Partition: (from.Partition + 1) % partitions, Key: from.Key, Value: from.Value, Timestamp: from.Time}
		for _, h := range from.Headers {
			to.Headers = append(to.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
		}
		copies = append(copies, to)
	}
	if err := cl.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		return 0, fmt.Errorf("copy %d records: %w", len(copies), err)
	}
	return len(copies), nil
}

// wantNoDeadlock asks Postgres. Locks are taken in one order, so there is none to break.
func (r *run) wantNoDeadlock(ctx context.Context) error {
	var n int64
	if err := r.sampler.pool.QueryRow(ctx, `select deadlocks from pg_stat_database where datname = $1`, r.database).Scan(&n); err != nil {
		return fmt.Errorf("count deadlocks: %w", err)
	}
	if n > 0 {
		r.violate("E2", "Postgres broke %d deadlocks", n)
	}
	return nil
}
