package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

// measureVerify proves a ledger of many records, beside one that only reads and hashes.
func measureVerify(b *bench) {
	kafka := testkit.Kafka(b.tb)
	url := b.database("ledger")
	b.say("applying %d records", b.verified)
	topic := b.backlogOf(kafka, 0, b.verified, uniform)
	s, ps, _ := b.fresh(kafka, topic, url, b.verified, 1)
	stop(b, ps) // it commits what it has applied
	exec1(b.tb, url, `vacuum analyze`)
	rate := b.add(line{name: fmt.Sprintf("verify of %s records", figure(float64(b.verified))), unit: "records/s", floorName: "read and hash each, one ordered pass over the tables", want: least(0.5)})
	memory := b.add(line{name: "most memory of verify", unit: "MiB", floorName: rate.floorName, want: below(200)})
	b.alternate(
		func(int) {
			f := s.run("verify", "--json")
			if v := decode[struct{ OK bool }](b.tb, f.stdout); !v.OK {
				b.tb.Fatalf("the books are not right: %s", f.stdout)
			}
			rate.ours, memory.ours = append(rate.ours, float64(b.verified)/f.seconds), append(memory.ours, f.peakMiB)
			rate.note = fmt.Sprintf("%.1f s of processor time", f.cpu.Seconds())
		},
		func(int) {
			f := b.floorCommand("read", order{Brokers: kafka.Brokers(), Topic: topic, Database: url})
			if got := strings.TrimSpace(string(f.stdout)); got != fmt.Sprint(b.verified) {
				b.tb.Fatalf("the bare reader read %q, want %d", got, b.verified)
			}
			rate.floor, memory.floor = append(rate.floor, float64(b.verified)/f.seconds), append(memory.floor, f.peakMiB)
		},
	)
	replay := b.add(line{name: "replay run of known records", unit: "records/s", floorName: "the worker, the same records", want: least(0.8)})
	replayMemory := b.add(line{name: "most memory of replay run", unit: "MiB", floorName: replay.floorName, want: below(200)})
	b.alternate(
		func(rep int) {
			plan := filepath.Join(s.dir, fmt.Sprintf("replay-%d.plan", rep))
			s.run("replay", "plan", "--out", plan)
			f := s.run("replay", "run", plan, "--reason", "benchmark", "--json")
			if v := decode[struct {
				Records int  `json:"records"`
				Matches bool `json:"matches_plan"`
			}](b.tb, f.stdout); !v.Matches || v.Records != b.verified {
				b.tb.Fatalf("the replay is not what was planned: %s", f.stdout)
			}
			replay.ours, replayMemory.ours = append(replay.ours, float64(b.verified)/f.seconds), append(replayMemory.ours, f.peakMiB)
		},
		func(int) {
			d := b.again(s, b.verified)
			replay.floor, replayMemory.floor = append(replay.floor, d.rate), append(replayMemory.floor, d.peakMiB)
		},
	)
	b.say("replay run %s, worker %s records/s", figure(median(replay.ours)), figure(median(replay.floor)))
	b.say("verify %s, bare reader %s records/s, memory %s MiB", figure(median(rate.ours)), figure(median(rate.floor)), figure(median(memory.ours)))
}

// floorCommand runs a floor to its end.
func (b *bench) floorCommand(role string, o order) finished {
	b.tb.Helper()
	return b.command(self(), b.tb.TempDir(), b.floorEnv(role, o))
}

// bareRead reads the topic to its end, hashes each value, and reads the tables once in
// order. It compares nothing.
func bareRead(ctx context.Context, o order) error {
	n, err := hashTopic(ctx, o)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, o.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range []string{
		`select event_key, body_sha256, outcome from processed_events order by event_key`,
		`select event_key, account_id, currency, amount from ledger_entries order by event_key`,
		`select account_id, currency, balance from accounts order by account_id, currency`,
	} {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return err
		}
		for rows.Next() {
			_ = rows.RawValues()
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	fmt.Println(n)
	return nil
}

func hashTopic(ctx context.Context, o order) (n int64, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.ConsumeTopics(o.Topic))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, o.Topic)
	if err != nil {
		return 0, err
	}
	var total int64
	ends.Each(func(l kadm.ListedOffset) { total += l.Offset })
	for n < total {
		fetches := cl.PollRecords(ctx, 10_000)
		if err := fetches.Err(); err != nil {
			return n, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if sha256.Sum256(r.Value) != [32]byte{} {
				n++
			}
		})
	}
	return n, nil
}

// measureLag asks how far behind the workers are when they are far behind.
func measureLag(b *bench) {
	kafka := testkit.Kafka(b.tb)
	topic := b.newTopic(kafka)
	b.say("producing %d records", b.lagging)
	cl := b.client(kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(200_000), kgo.ProducerLinger(5*time.Millisecond))
	for i := range b.lagging {
		cl.Produce(b.tb.Context(), &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: []byte("x")}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.tb.Errorf("produce: %v", err)
			}
		})
	}
	if err := cl.Flush(b.tb.Context()); err != nil {
		b.tb.Fatal(err)
	}
	s := b.newSystem(kafka, topic, b.database("ledger"))
	s.commitZero()
	l := b.add(line{name: fmt.Sprintf("answer with %s records behind", figure(float64(b.lagging))), unit: "s", floorName: "bare list of ends and commits", want: below(1)})
	b.alternate(
		func(int) {
			f := s.run("lag", "--json")
			if v := decode[struct {
				Behind int64 `json:"records_behind"`
			}](b.tb, f.stdout); v.Behind != int64(b.lagging) {
				b.tb.Fatalf("lag says %d records, want %d", v.Behind, b.lagging)
			}
			l.ours = append(l.ours, f.seconds)
		},
		func(int) {
			l.floor = append(l.floor, b.floorCommand("lag", order{Brokers: kafka.Brokers(), Topic: topic, Group: s.consumerGroup}).seconds)
		},
	)
	b.say("lag %s s, bare list %s s", figure(median(l.ours)), figure(median(l.floor)))
}

// bareLag lists where the log ends and what the group has committed.
func bareLag(ctx context.Context, o order) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(ctx, o.Topic)
	if err != nil {
		return err
	}
	if _, err := adm.FetchOffsets(ctx, o.Group); err != nil {
		return err
	}
	if len(ends) == 0 {
		return errors.New("the topic has no end")
	}
	return nil
}
