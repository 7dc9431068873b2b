package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
)

// offsetsTopic is where Kafka keeps groups; the leader of a partition coordinates its
// groups. The testkit makes it with four partitions.
const (
	offsetsTopic      = "__consumer_offsets"
	offsetsPartitions = 4
)

// coordinatorOf is the partition that keeps the group: by Java's hash of its name.
func coordinatorOf(group string) int32 {
	var hash int32
	for _, c := range []byte(group) { // ASCII, so bytes are Java's chars
		hash = 31*hash + int32(c)
	}
	return int32(uint32(hash)&0x7fffffff) % offsetsPartitions
}

// moveLeader makes the next replica of a partition its leader.
func (r *run) moveLeader(ctx context.Context, topic string, partition int32) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	adm := r.sampler.adm
	topics, err := adm.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return err
	}
	p, ok := topics[topic].Partitions[partition]
	if !ok || p.Err != nil || len(p.Replicas) < 2 {
		return fmt.Errorf("partition has replicas %v: %w", p.Replicas, p.Err)
	}
	at := slices.Index(p.Replicas, p.Leader) // −1 without a leader, which is as well
	replicas := append(slices.Clone(p.Replicas[at+1:]), p.Replicas[:at+1]...)
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, partition, replicas)
	moved, err := adm.AlterPartitionAssignments(ctx, req)
	if err == nil {
		err = moved.Error()
	}
	if err != nil {
		return fmt.Errorf("order replicas %v: %w", replicas, err)
	}
	var one kadm.TopicsSet
	one.Add(topic, partition)
	elected, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, one)
	if err != nil {
		return fmt.Errorf("elect leader: %w", err)
	}
	return elected[topic][partition].Err
}

func (r *run) strikePostgres(ctx context.Context, s Step) func() {
	var err error
	var mend func()
	switch s.Kind {
	case PostgresTerminate:
		err = r.stage.execute(ctx, "postgres", `select pg_terminate_backend(pid) from pg_stat_activity where datname = '`+r.database+`'`)
	case PostgresRestart:
		// Nothing else of Postgres can be hurt meanwhile, so this waits.
		r.stage.postgres.StopAtOnce()
		pause(ctx, millis(s.For))
		r.stage.postgres.Start()
	case PostgresReadOnly:
		r.stage.postgres.SetReadOnly(true)
		mend = func() { r.stage.postgres.SetReadOnly(false) }
	case PostgresFull:
		err = r.full(ctx, true)
		mend = func() {
			if err := r.full(ctx, false); err != nil {
				r.violate("E1", "mend the full disk: %v", err)
			}
		}
	case Rotate:
		err = r.generations(ctx, "rotate")
	case Forget: // of what was open until now
		if err = r.generations(ctx, "rotate"); err == nil {
			err = r.generations(ctx, "forget", "--oldest")
		}
	}
	if err != nil {
		r.log("%s: %v", s.Kind, err)
		if s.Kind != PostgresFull {
			return nil
		}
	} else {
		r.fire(s.Kind)
	}
	return mend
}

// generations runs the operator's command.
func (r *run) generations(ctx context.Context, args ...string) error {
	out, err := r.command(ctx, append([]string{"doctor", "generations"}, args...)...)
	if err != nil {
		return errors.Join(err, errors.New(out))
	}
	return nil
}

// full has Postgres refuse what is written with disk_full, as it does on a full volume,
// or ends that. A trigger raises it: a volume that fills up needs root.
func (r *run) full(ctx context.Context, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// One transaction each: one that locked several tables could wait for a worker that
	// waits for it.
	statements := []string{`create or replace function chaos_full() returns trigger language plpgsql as
		$$ begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`}
	for _, table := range []string{"processed_events", "ledger_entries", "accounts", "idempotency_keys"} {
		statements = append(statements, `drop trigger if exists chaos_full on `+table)
		if on {
			statements = append(statements, `create trigger chaos_full before insert on `+table+` for each statement execute function chaos_full()`)
		}
	}
	for _, sql := range statements {
		if err := poll(ctx, func() error { return r.stage.execute(ctx, r.database, sql) }); err != nil {
			return err
		}
	}
	return nil
}

// mirrorSlow is how long Postgres takes for each event, and mirrorMeet for how long, after
// workers were given the same events: long enough for their transactions to meet.
const (
	mirrorSlow = 4 * time.Millisecond
	mirrorMeet = time.Second
)

// slow makes Postgres take so long for each new event.
func (r *run) slow(ctx context.Context, each time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sql := fmt.Sprintf(`update chaos_slow set seconds = %g`, each.Seconds())
	if err := poll(ctx, func() error { return r.stage.execute(ctx, r.database, sql) }); err != nil {
		r.log("slow: %v", err)
	}
}

// mirror stops the workers for a while. What comes meanwhile stands in a second partition
// too when they go on, as after a change of the number of partitions: two workers have
// the same events at the same time, in opposite orders, and nothing of them is known yet.
func (r *run) mirror(ctx context.Context) func() {
	for _, name := range workerRoles {
		r.roles[name].signal(syscall.SIGSTOP)
	}
	return func() {
		copies, err := r.copyUnread(ctx)
		r.slow(ctx, mirrorSlow)
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
		pause(ctx, mirrorMeet)
		r.slow(context.WithoutCancel(ctx), 0)
	}
}

// copyUnread appends each record that the group has not committed to the other partition
// of its pair, in the opposite order: two who have the same events come to them from both
// ends.
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
		to := &kgo.Record{Topic: r.topic, Partition: from.Partition ^ 1, Key: from.Key, Value: from.Value, Timestamp: from.Time}
		for _, h := range from.Headers {
			to.Headers = append(to.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
		}
		copies = append(copies, to)
	}
	slices.Reverse(copies)
	if err := cl.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		return 0, fmt.Errorf("copy %d records: %w", len(copies), err)
	}
	return len(copies), nil
}

// zombieWork is how long Postgres refuses writes before a worker is frozen, so that it has
// records in hand when it wakes up.
const zombieWork = 400 * time.Millisecond

// zombieDeaf is how long nothing of Kafka reaches a zombie that woke up: shorter than a
// session, and long enough to try again what it has in hand.
const zombieDeaf = time.Second

// zombie freezes a worker that has read records and could not apply them, for longer than
// its session. When it wakes up another worker has applied them and more. It applies its
// own before it learns that: the link to Kafka stands still meanwhile.
func (r *run) zombie(ctx context.Context, s Step) func() {
	role := r.roles[s.On]
	if err := r.full(ctx, true); err != nil {
		r.log("zombie: %v", err)
	}
	pause(ctx, zombieWork)
	role.signal(syscall.SIGSTOP)
	if err := r.full(ctx, false); err != nil {
		r.violate("E1", "mend the full disk: %v", err)
	}
	r.fire(s.Kind)
	return func() {
		deaf := r.stage.links[linkWorkerKafka]
		for _, p := range deaf {
			p.Stall()
		}
		role.signal(syscall.SIGCONT)
		pause(ctx, zombieDeaf)
		for _, p := range deaf {
			p.Pass()
		}
	}
}
