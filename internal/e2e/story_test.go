package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// 400 events, each delivered three times by 24 concurrent callers; a worker is killed
// twice under load; then the group is reset to the earliest offset with Kafka's own
// tool and everything is read again. Balances are exact, each event has one entry, the
// topic holds what was sent, byte by byte, and offsets end at the end of the log.
func TestStory_KilledWorkersAndResetOffsetsMoveNoMoneyTwice(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{logLevel: "debug"})
	s.startIngest()
	s.startIngest()
	s.startConsume()
	s.startConsume()
	s.startSampler()

	events := workload(1, 400)
	l := s.startLoad(1, events, 3, 24, 200)
	for i, at := range []int{300, 700} {
		l.at(at)
		s.consume[i].Kill()
		s.consume[i].Restart()
		if acked := int(l.acks.Load()); acked >= 3*len(events) {
			t.Errorf("a worker was killed at the %d-th acknowledgement and the load is over: it was not under load", at)
		}
	}
	l.wait()
	s.awaitDrained(time.Minute)
	before := s.tables()

	s.stopConsume()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// At the first attempt: a graceful stop leaves the group empty.
	if err := checker.ResetToEarliest(ctx, s.kafka.Tool, s.group, s.topic); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.consume {
		r.Restart()
	}
	w := s.settle(verdict{before: &before, incidents: []string{"rewind"}})

	oneEntryEach(t, events, w.Tables)
	bytesAsSent(t, events, w.Records)
	sameByPython(t, s, w.Records)
	if len(w.Records) < 3*len(events) {
		t.Errorf("got %d records, want at least %d: one for each acknowledged delivery", len(w.Records), 3*len(events))
	}
	if len(w.Tables.Incidents) == 0 {
		t.Error("the reset is not on record: got no incident, want rewind")
	}
	var duplicates float64
	for _, r := range s.consume {
		duplicates += r.metric(t, "hookledger_consumer_records_total", `outcome="duplicate"`)
	}
	if int(duplicates) != len(w.Records) {
		t.Errorf("duplicates in the metrics of the workers that read the topic again: got %.0f, want %d", duplicates, len(w.Records))
	}
}

// oneEntryEach compares the ledger with the workload directly.
func oneEntryEach(t *testing.T, events []event, tables checker.Tables) {
	t.Helper()
	entries := map[checker.Ref]int{}
	for i := range tables.Entries {
		entries[tables.Entries[i].Ref()]++
	}
	for i := range events {
		e := &events[i]
		want := 1
		if e.amount == 0 {
			want = 0
		}
		if got := entries[checker.Ref{Source: e.source, ID: e.id}]; got != want {
			t.Errorf("entries of %s/%s: got %d, want %d", e.source, e.id, got, want)
		}
	}
}

// bytesAsSent compares keys and values, as kcat read them, with the bytes that were
// sent.
func bytesAsSent(t *testing.T, events []event, records []checker.Record) {
	t.Helper()
	sent := map[checker.Ref][]byte{}
	for i := range events {
		sent[checker.Ref{Source: events[i].source, ID: events[i].id}] = events[i].body
	}
	for i := range records {
		r := &records[i]
		if want, ok := sent[r.Ref()]; !ok || !bytes.Equal(r.Value, want) {
			t.Errorf("record %d@%d of %s: got %q, want %q", r.Partition, r.Offset, r.Ref(), r.Value, want)
		}
	}
}

// readTopic prints each record as a line of JSON, bytes in hex.
const readTopic = `
import json, sys
from confluent_kafka import Consumer, TopicPartition

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "outside", "enable.auto.commit": False})
partitions = consumer.list_topics(sys.argv[2], timeout=30).topics[sys.argv[2]].partitions
for p in partitions:
    low, high = consumer.get_watermark_offsets(TopicPartition(sys.argv[2], p), timeout=30)
    if low == high:
        continue
    consumer.assign([TopicPartition(sys.argv[2], p, low)])
    last = low - 1
    while last < high - 1:
        record = consumer.poll(30)
        if record is None or record.error():
            sys.exit("partition %d stops at %d: %s" % (p, last, record and record.error()))
        last = record.offset()
        print(json.dumps({"partition": p, "offset": last, "key": record.key().hex(), "value": record.value().hex(),
                          "headers": [[k, v.decode("utf-8")] for k, v in record.headers()]}))
consumer.close()
`

// sameByPython reads the topic with a Python client and compares with kcat.
func sameByPython(t *testing.T, s *system, records []checker.Record) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "read_topic.py")
	if err := os.WriteFile(script, []byte(readTopic), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, testkit.Python(t), script, strings.Join(s.kafka.Brokers(), ","), s.topic)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("read topic with Python: %v: %s", err, complaints.String())
	}
	type place struct {
		partition int32
		offset    int64
	}
	byPlace := map[place]*checker.Record{}
	for i := range records {
		byPlace[place{records[i].Partition, records[i].Offset}] = &records[i]
	}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var got struct {
			Partition  int32
			Offset     int64
			Key, Value hexText
			Headers    [][2]string
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := byPlace[place{got.Partition, got.Offset}]
		if want == nil || string(got.Key) != string(want.Key) || string(got.Value) != string(want.Value) || len(got.Headers) != len(want.Headers) {
			t.Fatalf("record %d@%d: got %q %q by Python, want %v as by kcat", got.Partition, got.Offset, got.Key, got.Value, want)
		}
		for i, h := range want.Headers {
			if got.Headers[i] != [2]string{h.Key, h.Value} {
				t.Errorf("record %d@%d: got header %q by Python, want %q", got.Partition, got.Offset, got.Headers[i], h)
			}
		}
	}
	if err := lines.Err(); err != nil || n != len(records) {
		t.Errorf("got %d records by Python (%v), want %d as by kcat", n, err, len(records))
	}
}
