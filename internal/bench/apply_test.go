package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/testkit"
)

// How far each side is, in records.
const (
	oursDone = `select coalesce(sum(next_offset), 0)::bigint from consumer_progress`
	bareDone = `select coalesce(sum(next_offset), 0)::bigint from bare_progress`
	handDone = `select count(*) from bare_events`
)

// drain is how a backlog was worked off.
type drain struct {
	// early is the rate of the first third, rate that of all, in records a second.
	early, rate float64
	// own and postgres are µs of processor time for each record.
	own, postgres float64
	peakMiB       float64
}

// drained starts processes and waits until total records are done. Its clock begins with
// the first ones, so that starting and joining a group are left out on both sides. A
// process that is ready has begun already, so that nobody waits for that either.
func (b *bench) drained(url, done string, total int, start func() []*testkit.KillableProcess) ([]*testkit.KillableProcess, drain) {
	b.tb.Helper()
	conn := connect(b.tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	var d drain
	var from, at int64
	var begin, thirdAt time.Time
	var third int64
	started := time.Now()
	u := b.watch()
	ps := start()
	u.add(ps)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := conn.QueryRow(b.tb.Context(), done).Scan(&at); err != nil {
			b.tb.Fatal(err)
		}
		now := time.Now()
		if begin.IsZero() && at > 0 {
			from, begin = at, now
		}
		if thirdAt.IsZero() && at >= int64(total)/3 {
			third, thirdAt = at, now
		}
		if at >= int64(total) {
			if from == at { // all at once
				from, begin = 0, started
			}
			d.rate = float64(at-from) / now.Sub(begin).Seconds()
			if d.early = d.rate; third > from {
				d.early = float64(third-from) / thirdAt.Sub(begin).Seconds()
			}
			d.own, d.postgres = u.per(int(at))
			for _, p := range ps {
				d.peakMiB = max(d.peakMiB, memoryOf(p.PID(), "VmHWM"))
			}
			return ps, d
		}
		if now.Sub(started) > 10*time.Minute {
			b.tb.Fatalf("after %s %d of %d records are done", now.Sub(started).Round(time.Second), at, total)
		}
		<-tick.C
	}
}

// fresh applies a topic to an empty ledger with so many workers, and leaves the workers
// running.
func (b *bench) fresh(kafka *testkit.KafkaCluster, topic, url string, total, processes int, env ...string) (*system, []*testkit.KillableProcess, drain) {
	b.tb.Helper()
	s := b.newSystem(kafka, topic, url)
	b.checkpoint()
	ps, d := b.drained(url, oursDone, total, func() (ps []*testkit.KillableProcess) {
		for range processes {
			ps = append(ps, s.launch("consume", env...))
		}
		return ps
	})
	return s, ps, d
}

func kill(ps []*testkit.KillableProcess) {
	for _, p := range ps {
		p.Kill()
	}
}

// once applies a topic to an empty ledger and clears up.
func (b *bench) once(kafka *testkit.KafkaCluster, topic, template string, total, processes int, env ...string) drain {
	b.tb.Helper()
	url := b.database(template)
	_, ps, d := b.fresh(kafka, topic, url, total, processes, env...)
	kill(ps)
	b.drop(url)
	return d
}

// bareOnce has the bare loop do the same.
func (b *bench) bareOnce(kafka *testkit.KafkaCluster, topic string, total, workers int) drain {
	b.tb.Helper()
	url := b.database("bare")
	b.checkpoint()
	ps, d := b.drained(url, bareDone, total, func() []*testkit.KillableProcess {
		return []*testkit.KillableProcess{b.startFloor("apply", order{Brokers: kafka.Brokers(), Topic: topic, Database: url, Workers: workers})}
	})
	kill(ps)
	b.drop(url)
	return d
}

// again has one worker apply the records of a system, whose workers were stopped, once
// more: all are known.
func (b *bench) again(s *system, total int) drain {
	b.tb.Helper()
	exec1(b.tb, s.database, `update consumer_progress set next_offset = 0, from_offset = 0`)
	s.commitZero()
	b.checkpoint()
	ps, d := b.drained(s.database, oursDone, total, func() []*testkit.KillableProcess {
		return []*testkit.KillableProcess{s.launch("consume")}
	})
	stop(b, ps)
	return d
}

// stop ends workers in good order, so that their group is empty.
func stop(b *bench, ps []*testkit.KillableProcess) {
	b.tb.Helper()
	for _, p := range ps {
		if code := p.Stop(time.Minute); code != 0 {
			b.tb.Fatalf("worker ended with %d", code)
		}
	}
}

// commitZero moves the group, which must have no members, to the start of the topic.
func (s *system) commitZero() {
	s.b.tb.Helper()
	offsets := kadm.Offsets{}
	for p := range int32(partitions) {
		offsets.Add(kadm.Offset{Topic: s.topic, Partition: p, At: 0, LeaderEpoch: -1})
	}
	adm := kadm.NewClient(s.b.client(s.kafka))
	// The first group of a broker waits until the topic of commits is there.
	testkit.Eventually(s.b.tb, time.Minute, func() error { return adm.CommitAllOffsets(s.b.tb.Context(), s.consumerGroup, offsets) })
}

// measureApply works off backlogs: events nobody knows, and known ones.
func measureApply(b *bench) {
	kafka := testkit.Kafka(b.tb)
	b.shared.postgres()
	b.say("producing %d records twice", b.backlog)
	topic := b.backlogOf(kafka, 0, b.backlog, uniform)
	hotTopic := b.backlogOf(kafka, b.backlog, b.backlog, hot)
	b.sixGenerations()

	const bare = "bare COPY loop, 2 workers"
	const uniformRun = "one generation, uniform accounts"
	fresh := b.add(line{name: "new records", unit: "records/s", floorName: bare, want: least(0.75)})
	cpu := b.add(line{name: "processor time, worker and Postgres", unit: "µs/record", floorName: bare})
	memory := b.add(line{name: "most memory of the worker", unit: "MiB", floorName: bare, want: below(150)})
	byHand := b.add(line{name: "new records beside a usual consumer", unit: "records/s", floorName: "a transaction for each record", want: least(10)})
	replay := b.add(line{name: "known records", unit: "records/s", floorName: "new records", want: least(1.5)})
	hotLine := b.add(line{name: "90 % of events on one account", unit: "records/s", floorName: uniformRun, want: least(1 / 1.3)})
	six := b.add(line{name: "six generations in use", unit: "records/s", floorName: uniformRun})
	third := b.backlog / 3
	for rep := range b.reps {
		var ours, floor drain
		runOurs := func() {
			url := b.database("ledger")
			s, ps, d := b.fresh(kafka, topic, url, b.backlog, 1)
			ours = d
			stop(b, ps)
			known := b.again(s, b.backlog)
			replay.ours, replay.floor = append(replay.ours, known.rate), append(replay.floor, d.rate)
			replay.note = fmt.Sprintf("µs/record: worker %.1f, Postgres %.1f", known.own, known.postgres)
			b.drop(url)
		}
		runFloor := func() { floor = b.bareOnce(kafka, topic, b.backlog, 2) }
		if rep%2 == 0 {
			runOurs()
			runFloor()
		} else {
			runFloor()
			runOurs()
		}
		fresh.ours, fresh.floor = append(fresh.ours, ours.rate), append(fresh.floor, floor.rate)
		cpu.ours, cpu.floor = append(cpu.ours, ours.own+ours.postgres), append(cpu.floor, floor.own+floor.postgres)
		memory.ours, memory.floor = append(memory.ours, ours.peakMiB), append(memory.floor, floor.peakMiB)
		hotRun := b.once(kafka, hotTopic, "ledger", third, 1)
		sixRun := b.once(kafka, topic, "six", third, 1)
		hotLine.ours, hotLine.floor = append(hotLine.ours, hotRun.early), append(hotLine.floor, ours.early)
		six.ours, six.floor = append(six.ours, sixRun.early), append(six.floor, ours.early)
		hand := b.handOnce(kafka, topic)
		byHand.ours, byHand.floor = append(byHand.ours, ours.rate), append(byHand.floor, hand)
		cpu.note = fmt.Sprintf("worker %.1f and %.1f, Postgres %.1f and %.1f", ours.own, floor.own, ours.postgres, floor.postgres)
		b.say("new %s, bare %s, known %s, hot %s, six %s, by hand %s records/s; µs/record %s", figure(ours.rate), figure(floor.rate),
			figure(replay.ours[rep]), figure(hotRun.early), figure(sixRun.early), figure(hand), cpu.note)
	}
	b.scaling(kafka, topic, third)
}

// scaling shows what more appliers and more processes give.
func (b *bench) scaling(kafka *testkit.KafkaCluster, topic string, total int) {
	one := b.once(kafka, topic, "ledger", total, 1, "HOOKLEDGER_CONSUME_APPLIERS=1")
	bare := b.bareOnce(kafka, topic, total, 1)
	b.add(line{name: "1 applier", unit: "records/s", floorName: "bare COPY loop, 1 worker", ours: []float64{one.rate}, floor: []float64{bare.rate}})
	more := []struct {
		name                string
		processes, appliers int
	}{{"2 processes of 2 appliers", 2, 2}, {"2 appliers", 1, 2}, {"4 appliers", 1, 4}}
	if b.tiny() {
		more = more[:1]
	}
	for _, c := range more {
		d := b.once(kafka, topic, "ledger", total, c.processes, fmt.Sprintf("HOOKLEDGER_CONSUME_APPLIERS=%d", c.appliers))
		b.add(line{name: c.name, unit: "records/s", floorName: "1 applier", ours: []float64{d.rate}, floor: []float64{one.rate}})
		b.say("%s: %s records/s, 1 applier %s", c.name, figure(d.rate), figure(one.rate))
	}
}

// handOnce is the rate of the usual consumer, of as many records as it does in a while.
func (b *bench) handOnce(kafka *testkit.KafkaCluster, topic string) float64 {
	b.tb.Helper()
	url := b.database("bare")
	p := b.startFloor("consumer", order{Brokers: kafka.Brokers(), Topic: topic, Group: testkit.UniqueName("hand"), Database: url})
	defer p.Kill()
	conn := connect(b.tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	count := func() (n int) {
		if err := conn.QueryRow(b.tb.Context(), handDone).Scan(&n); err != nil {
			b.tb.Fatal(err)
		}
		return n
	}
	testkit.Eventually(b.tb, time.Minute, func() error {
		if count() == 0 {
			return errors.New("nothing is applied yet")
		}
		return nil
	})
	from, begin := count(), time.Now()
	for time.Since(begin) < b.span || count() == from {
		<-time.After(b.span / 4)
	}
	return float64(count()-from) / time.Since(begin).Seconds()
}

// sixGenerations makes a template of a ledger whose memory spans six generations, five
// of them as full as the backlog would make one.
func (b *bench) sixGenerations() {
	b.tb.Helper()
	pg := b.shared.postgres()
	exec1(b.tb, pg.URL("postgres"), `create database six template ledger`)
	b.tb.Cleanup(func() { exec1(b.shared.tb, pg.URL("postgres"), `drop database if exists six with (force)`) })
	for g := range 5 {
		exec1(b.tb, pg.URL("six"), fillEvents(g, b.backlog))
	}
	exec1(b.tb, pg.URL("six"), `update event_ring set open_generation = 5, opened_at = array[now(), now(), now(), now(), now(), now(), null, null]::timestamptz[]`)
	exec1(b.tb, pg.URL("six"), `vacuum analyze processed_events`)
}

// fillEvents fills a generation with n events of long ago.
func fillEvents(generation, n int) string {
	return fmt.Sprintf(`
insert into processed_events (generation, processed_at, topic, partition, event_key, source, event_id, type, outcome, meaning, "offset", occurred_at, received_at, body_sha256)
select %[1]d, now(), 'old', 0, sha_key, 'stripe', 'old_%[1]d_' || n, 'payment_intent.succeeded', 'applied', sha_key, n, now(), now(), sha256(n::text::bytea)
  from generate_series(1, %[2]d) n, lateral (select md5('%[1]d:' || n)::uuid as sha_key) k`, generation, n)
}
