package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

func TestReadHistory_WhatWasWrittenAndNothingElse(t *testing.T) {
	t.Parallel()
	want := goodWorld().History
	var b bytes.Buffer
	for _, d := range want {
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	got, err := ReadHistory(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{`{"result":"fine"}`, `{"result":"ok","amuont":1}`, `{"result":"ok"`, `{"result":"ok","expect":"luck"}`} {
		if _, err := ReadHistory(strings.NewReader(bad)); err == nil {
			t.Errorf("history %s: got no error", bad)
		}
	}
}

// kcat and our undoing of its quotes give back every byte, and the tool's table the
// offsets, on a real broker.
func TestReadTopicAndGroup_RealKafka(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	k := testkit.Kafka(t)
	topic, group := testkit.UniqueName("checker"), testkit.UniqueName("group")
	cl := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	values := [][]byte{[]byte("{\"a\": \"\\u00e9\\\\/\"}\n"), every, {}, nil, []byte("ünï\u2028\xff\xfe"), bytes.Repeat([]byte(`x"`), 300_000)}
	for i, v := range values {
		r := &kgo.Record{Topic: topic, Partition: int32(i % 2), Key: every[i : i+3], Value: v, Headers: []kgo.RecordHeader{{Key: "h", Value: every}, {Key: "empty"}}}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	records, err := ReadTopic(ctx, k.Brokers(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != len(values) {
		t.Fatalf("got %d records, want %d", len(records), len(values))
	}
	for _, r := range records {
		i := int(r.Offset)*2 + int(r.Partition)
		if !bytes.Equal(r.Value, values[i]) || (r.Value == nil) != (values[i] == nil) {
			t.Errorf("record %d: got value %.40q (%d bytes), want %.40q (%d bytes)", i, r.Value, len(r.Value), values[i], len(values[i]))
		}
		if !bytes.Equal(r.Key, every[i:i+3]) || r.Header("h") != string(every) {
			t.Errorf("record %d: got key %q and headers %q", i, r.Key, r.Headers)
		}
	}

	var next kadm.Offsets
	next.Add(kadm.Offset{Topic: topic, Partition: 1, At: 2, LeaderEpoch: -1})
	if err := adm.CommitAllOffsets(ctx, group, next); err != nil {
		t.Fatal(err)
	}
	g, err := ReadGroup(ctx, k.Tool, group, topic)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Committed) != 1 || g.Committed[1] != 2 || g.End[1] != 3 || g.Members != 0 {
		t.Errorf("got group %+v, want partition 1 at 2 of 3", g)
	}
	byPython, err := ReadGroupByPython(ctx, testkit.Python(t), k.Brokers(), group, topic)
	if err != nil || !maps.Equal(byPython.Committed, g.Committed) || byPython.End[1] != 3 {
		t.Errorf("by Python: got group %+v (%v), want %+v", byPython, err, g)
	}
	if _, err := ReadGroupByPython(ctx, testkit.Python(t), k.Brokers(), group, topic+"_missing"); err == nil {
		t.Error("a topic that is missing, by Python: got no error")
	}
	if err := ResetToEarliest(ctx, k.Tool, group, topic); err != nil {
		t.Fatal(err)
	}
	if g, err = ReadGroup(ctx, k.Tool, group, topic); err != nil || len(g.Committed) != 2 || g.Committed[1] != 0 {
		t.Errorf("after the reset: got group %+v %v, want both partitions at 0", g, err)
	}
	if _, err := ReadTopic(ctx, k.Brokers(), topic+"_missing"); err == nil {
		t.Error("a topic that is missing: got no error")
	}
}

// SQL finds what was damaged in real tables.
func TestReadTables_RealPostgres(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := testkit.LedgerURL(t)
	execute(ctx, t, url,
		`insert into processed_events ("offset", received_at, processed_at, event_key, meaning, partition, generation, body_sha256, outcome, source, event_id, type, topic)
			values (4, now(), now(), gen_random_uuid(), gen_random_uuid(), 2, 0, '\x01', 'applied', 'acme', 'a1', 'paid', 'events')`,
		`insert into ledger_entries (amount, applied_at, effect_key, event_key, line, currency, account_id, source, event_id, contra, rule, movement_id)
			values (500, now(), gen_random_uuid(), gen_random_uuid(), 0, 'EUR', 'alice', 'acme', 'a1', 'external:acme', 'paid', 'a1')`,
		`insert into accounts (balance, entry_count, updated_at, account_id, currency) values (500, 1, now(), 'alice', 'EUR')`,
		`insert into quarantined_events ("offset", record_time, quarantined_at, topic_id, partition, topic, reason, detail, headers)
			values (7, now(), now(), gen_random_uuid(), 1, 'events', 'null_value', '', '[]')`,
		`insert into consumer_progress values (3, 5, now(), gen_random_uuid(), 2, 0, 'cluster', 'events')`,
		`insert into incidents (raised_at, severity, kind, partition) values (now(), 'info', 'rewind', 2)`,
		`insert into payment_states (rank, occurred_at, updated_at, event_key, source, object, status, event_id)
			values (30, to_timestamp(1000), now(), gen_random_uuid(), 'acme', 'order-1', 'paid', 'a1')`,
		`insert into payments (amount, created_at, payment_id, meaning, client, from_account, to_account, currency, reference, status, idempotency_key)
			values (20, now(), '00000000-0000-7000-8000-000000000001', gen_random_uuid(), 'shop', 'alice', 'bob', 'EUR', 'ref-1', 'succeeded', 'k1')`,
	)
	got, err := ReadTables(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Events) != 1 || got.Events[0].Ref() != (Ref{"acme", "a1"}) || got.Events[0].Offset != 4 || got.Events[0].Partition != 2 {
		t.Errorf("got events %+v", got.Events)
	}
	if len(got.Entries) != 1 || got.Entries[0].Amount != 500 || got.Entries[0].AccountID != "alice" {
		t.Errorf("got entries %+v", got.Entries)
	}
	if len(got.Accounts) != 1 || got.Accounts[0] != (Account{"alice", "EUR", 500, 1}) {
		t.Errorf("got accounts %+v", got.Accounts)
	}
	if len(got.Quarantined) != 1 || got.Quarantined[0] != (Held{Partition: 1, Offset: 7, Reason: "null_value"}) {
		t.Errorf("got quarantine %+v", got.Quarantined)
	}
	if len(got.Progress) != 1 || got.Progress[0] != (Progress{"cluster", "events", 2, 3, 5}) {
		t.Errorf("got progress %+v", got.Progress)
	}
	if len(got.Incidents) != 1 || got.Incidents[0].Kind != "rewind" || got.Incidents[0].Partition != 2 {
		t.Errorf("got incidents %+v", got.Incidents)
	}
	if len(got.States) != 1 || got.States[0].Object != "order-1" || got.States[0].Rank != 30 || got.States[0].OccurredAt.Unix() != 1000 {
		t.Errorf("got states %+v, want order-1 paid", got.States)
	}
	if want := (Payment{"00000000-0000-7000-8000-000000000001", "alice", "bob", 20, "EUR", "ref-1"}); len(got.Payments) != 1 || got.Payments[0] != want {
		t.Errorf("got payments %+v, want %+v", got.Payments, want)
	}
	if len(got.Unbalanced) != 0 || len(got.Unpaired) != 0 {
		t.Errorf("got unbalanced %+v and unpaired %+v, want none", got.Unbalanced, got.Unpaired)
	}

	for name, damage := range map[string]string{
		"balance off by one":     `update accounts set balance = balance + 1`,
		"entry count off by one": `update accounts set entry_count = entry_count + 1`,
		"account missing":        `delete from accounts`,
		"account without entry":  `update ledger_entries set currency = 'USD'`,
	} {
		if got := damaged(ctx, t, url, damage); len(got.Unbalanced) == 0 {
			t.Errorf("%s: got no unbalanced account", name)
		}
	}
	for name, damage := range map[string]string{
		"entry without event row": `delete from processed_events`,
		"event without entry":     `delete from ledger_entries`,
		"entry of ignored event":  `update processed_events set outcome = 'ignored'`,
	} {
		if got := damaged(ctx, t, url, damage); !slices.Equal(got.Unpaired, []Ref{{"acme", "a1"}}) {
			t.Errorf("%s: got unpaired %+v, want acme/a1", name, got.Unpaired)
		}
	}
}

// damaged reads the tables inside a transaction that is rolled back.
func damaged(ctx context.Context, t *testing.T, url, sql string) Tables {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(ctx, tx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func execute(ctx context.Context, t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
