package bench

import (
	"context"
	"fmt"

	"hookledger/internal/testkit"
)

// measureGrowth applies the same backlog to ledgers of which each holds more already.
// They are filled by SQL: to apply ten million events would take longer and end the same.
func measureGrowth(b *bench) {
	kafka := testkit.Kafka(b.tb)
	total := b.backlog / 3
	topic := b.backlogOf(kafka, 0, total, uniform)
	pg := b.shared.postgres()
	var lines []*line
	for _, n := range b.entries {
		name := fmt.Sprintf("grown_%d", n)
		exec1(b.tb, pg.URL("postgres"), `create database `+name+` template ledger`)
		b.tb.Cleanup(func() { exec1(b.shared.tb, pg.URL("postgres"), `drop database if exists `+name+` with (force)`) })
		b.say("filling in %d entries", n)
		exec1(b.tb, pg.URL(name), grow(n))
		sizes := indexSizes(b, pg.URL(name))
		lines = append(lines, b.add(line{name: fmt.Sprintf("new records on %s entries", figure(float64(n))), unit: "records/s",
			floorName: figure(float64(b.entries[0])) + " entries, a turn before", note: sizes}))
	}
	// The least is measured in front of each of the others, and once beside itself.
	for range b.reps {
		for i, l := range lines {
			least := b.grown(kafka, topic, b.entries[0], total)
			more := b.grown(kafka, topic, b.entries[i], total)
			l.floor, l.ours = append(l.floor, least.rate), append(l.ours, more.rate)
			b.say("%s: %s records/s, least %s; µs/record: worker %.1f, Postgres %.1f and %.1f", l.name, figure(more.rate), figure(least.rate), more.own, more.postgres, least.postgres)
		}
	}
}

// grown applies a topic on top of n entries.
func (b *bench) grown(kafka *testkit.KafkaCluster, topic string, n, total int) drain {
	b.tb.Helper()
	url := b.database(fmt.Sprintf("grown_%d", n))
	_, ps, d := b.fresh(kafka, topic, url, total, 1)
	kill(ps)
	b.drop(url)
	return d
}

// grow fills a ledger with n events of long ago and their entries, over ten thousand
// accounts. The walls are built when all is there, which is what they would be after
// some maintenance, and a little smaller than after years of inserts in random order.
func grow(n int) string {
	return fmt.Sprintf(`
alter table ledger_entries drop constraint ledger_entries_effect_once;
drop index ledger_entries_event_line_once;
insert into ledger_entries (applied_at, effect_key, event_key, line, source, event_id, account_id, contra, currency, amount, rule, movement_id, occurred_at)
select now(), md5('effect' || n)::uuid, md5('0:' || n)::uuid, 0, 'stripe', 'old_0_' || n, 'acct_' || lpad((n %% 10000)::text, 8, '0'), 'external:stripe', 'USD', 5000,
       'payment_intent.succeeded', 'pi_old_' || n, now()
  from generate_series(1, %[1]d) n;
alter table ledger_entries add constraint ledger_entries_effect_once primary key (effect_key);
create unique index ledger_entries_event_line_once on ledger_entries (event_key, line) where event_key is not null;
insert into accounts (account_id, currency, balance, entry_count, updated_at) select account_id, currency, sum(amount), count(*), now() from ledger_entries group by 1, 2;
%s;
analyze`, n, fillEvents(0, n))
}

// indexSizes says how large the indexes are that every new record walks.
func indexSizes(b *bench, url string) string {
	b.tb.Helper()
	conn := connect(b.tb, url)
	defer func() { _ = conn.Close(context.Background()) }()
	var effects, events, memory, table string
	if err := conn.QueryRow(b.tb.Context(), `select pg_size_pretty(pg_relation_size('ledger_entries_effect_once')), pg_size_pretty(pg_relation_size('ledger_entries_event_line_once')),
		pg_size_pretty(pg_relation_size('processed_events_0_pkey')), pg_size_pretty(pg_relation_size('ledger_entries'))`).Scan(&effects, &events, &memory, &table); err != nil {
		b.tb.Fatal(err)
	}
	return fmt.Sprintf("walls %s and %s, memory %s, entries %s", effects, events, memory, table)
}
