package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// bareTables hold as much as one needs to apply each event once: no second wall, no
// meaning, no generations, no conflicts, no quarantine.
const bareTables = `
create table bare_events (
	partition_offset bigint not null, received_at timestamptz not null, processed_at timestamptz not null default now(), occurred_at timestamptz,
	partition integer not null, body_sha256 bytea not null, event_id text collate "C" primary key, type text not null);
create table bare_entries (
	entry_id bigint generated always as identity primary key, amount bigint not null, applied_at timestamptz not null default now(),
	event_id text collate "C" not null, account_id text collate "C" not null, currency text collate "C" not null, movement_id text collate "C" not null);
create table bare_accounts (
	balance bigint not null, entry_count bigint not null, account_id text collate "C", currency text collate "C", primary key (account_id, currency)) with (fillfactor = 70);
create table bare_progress (next_offset bigint not null, partition integer primary key) with (fillfactor = 50);`

const (
	bareStage = `create temp table stage (like bare_events) on commit delete rows;
		alter table stage alter processed_at drop not null, add account_id text collate "C", add currency text collate "C", add amount bigint, add movement_id text collate "C"`
	bareWrite = `
with fresh as (
	insert into bare_events (partition_offset, received_at, occurred_at, partition, body_sha256, event_id, type)
	select partition_offset, received_at, occurred_at, partition, body_sha256, event_id, type from stage order by event_id
	    on conflict do nothing returning event_id),
entries as (
	insert into bare_entries (amount, event_id, account_id, currency, movement_id)
	select s.amount, s.event_id, s.account_id, s.currency, s.movement_id from stage s join fresh using (event_id)
	returning amount, account_id, currency)
insert into bare_accounts as a (account_id, currency, balance, entry_count)
select account_id, currency, sum(amount), count(*) from entries group by 1, 2 order by 1, 2
    on conflict (account_id, currency) do update set balance = a.balance + excluded.balance, entry_count = a.entry_count + excluded.entry_count`
	bareAdvance = `insert into bare_progress as p (partition, next_offset) values ($1, $2) on conflict (partition) do update set next_offset = excluded.next_offset`
)

// payment is what a floor reads of a body.
type payment struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"`
	Data    struct {
		Object struct {
			ID       string `json:"id"`
			Amount   int64  `json:"amount_received"`
			Currency string `json:"currency"`
			Metadata struct {
				Account string `json:"account_id"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"data"`
}

// bareApply is the fast loop that one writes by hand: each worker reads some of the
// partitions, parses, hashes, COPYs a thousand records at a time into a temporary table
// and writes events, entries, balances and progress from there in one transaction. It is
// no member of a group, commits nothing to Kafka, checks no hash and no position, retries
// nothing, and stops at the first record that it does not understand.
func bareApply(ctx context.Context, o order) error {
	pool, err := pgxpool.New(ctx, o.Database+"&pool_max_conns=8")
	if err != nil {
		return err
	}
	defer pool.Close()
	all, ctx := errgroup.WithContext(ctx)
	for w := range o.Workers {
		offsets := map[int32]kgo.Offset{}
		for p := w; p < partitions; p += o.Workers {
			offsets[int32(p)] = kgo.NewOffset().AtStart()
		}
		all.Go(func() error { return bareWorker(ctx, o, pool, offsets) })
	}
	return all.Wait()
}

func bareWorker(ctx context.Context, o order, pool *pgxpool.Pool, offsets map[int32]kgo.Offset) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: offsets}))
	if err != nil {
		return err
	}
	defer cl.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, bareStage, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for {
		fetches := cl.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := bareBatch(ctx, conn.Conn(), fetches.Records()); err != nil {
			return err
		}
	}
}

func bareBatch(ctx context.Context, conn *pgx.Conn, records []*kgo.Record) error {
	rows := make([][]any, len(records))
	next := map[int32]int64{}
	for i, r := range records {
		var p payment
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return err
		}
		sum := sha256.Sum256(r.Value)
		d := &p.Data.Object
		rows[i] = []any{r.Offset, r.Timestamp, time.Unix(p.Created, 0), r.Partition, sum[:], p.ID, p.Type, d.Metadata.Account, d.Currency, d.Amount, d.ID}
		next[r.Partition] = r.Offset + 1
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"stage"}, []string{"partition_offset", "received_at", "occurred_at", "partition", "body_sha256",
			"event_id", "type", "account_id", "currency", "amount", "movement_id"}, pgx.CopyFromRows(rows))
		if err != nil || n != int64(len(rows)) {
			return fmt.Errorf("copied %d of %d: %w", n, len(rows), err)
		}
		var b pgx.Batch
		b.Queue(bareWrite)
		for p, at := range next {
			b.Queue(bareAdvance, p, at)
		}
		return tx.SendBatch(ctx, &b).Close()
	})
}

// handWritten is the consumer that one finds in examples: a group, a goroutine for each
// partition of a poll, a transaction for each record, offsets committed after the poll.
func handWritten(ctx context.Context, o order) error {
	pool, err := pgxpool.New(ctx, o.Database+"&pool_max_conns=16")
	if err != nil {
		return err
	}
	defer pool.Close()
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...), kgo.ConsumeTopics(o.Topic), kgo.ConsumerGroup(o.Group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(10 * time.Second),
	}
	if o.Instance != "" {
		opts = append(opts, kgo.InstanceID(o.Instance))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			return err
		}
		var all errgroup.Group
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			all.Go(func() error {
				for _, r := range p.Records {
					if err := applyOne(ctx, pool, r); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err := all.Wait(); err != nil {
			return err
		}
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
	}
}

func applyOne(ctx context.Context, pool *pgxpool.Pool, r *kgo.Record) error {
	var p payment
	if err := json.Unmarshal(r.Value, &p); err != nil {
		return err
	}
	sum := sha256.Sum256(r.Value)
	d := &p.Data.Object
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into bare_events (partition_offset, received_at, occurred_at, partition, body_sha256, event_id, type)
			values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`, r.Offset, r.Timestamp, time.Unix(p.Created, 0), r.Partition, sum[:], p.ID, p.Type)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into bare_entries (amount, event_id, account_id, currency, movement_id) values ($1, $2, $3, $4, $5)`,
			d.Amount, p.ID, d.Metadata.Account, d.Currency, d.ID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into bare_accounts as a (account_id, currency, balance, entry_count) values ($1, $2, $3, 1)
			on conflict (account_id, currency) do update set balance = a.balance + excluded.balance, entry_count = a.entry_count + 1`,
			d.Metadata.Account, d.Currency, d.Amount)
		return err
	})
}
