package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/verify"
	"hookledger/schema"
)

// fill produces n applied events of 1 KiB over all partitions and writes their rows in bulk.
func (w *world) fill(n int, partitions int32) {
	w.tb.Helper()
	pad := strings.Repeat("x", 1000)
	rows := make([][]any, 0, n)
	entries := make([][]any, 0, n)
	type at struct {
		e   schema.Event
		rec *kgo.Record
	}
	sent := make([]at, n)
	for i := range n {
		e := w.event(fmt.Sprintf("evt_%08d", i), fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, pad))
		rec := &kgo.Record{Topic: w.topic, Partition: int32(i) % partitions, Key: e.RecordKey(), Value: e.Body, Timestamp: e.ReceivedAt}
		for _, h := range e.Headers() {
			rec.Headers = append(rec.Headers, kgo.RecordHeader(h))
		}
		sent[i] = at{e, rec}
		w.cl.Produce(context.Background(), rec, func(_ *kgo.Record, err error) {
			if err != nil {
				w.tb.Error(err)
			}
		})
	}
	must(w.tb, w.cl.Flush(w.tb.Context()))
	for i, s := range sent {
		key := [16]byte(s.e.Key())
		rows = append(rows, []any{key, int16(0), s.e.Source, s.e.ID, s.e.Type, "applied", [16]byte(meaning(s.e.ID, fmt.Sprintf("user_%d", i%1000), 1)), w.topic, s.rec.Partition, s.rec.Offset,
			w.now, w.now, s.e.BodySHA256[:]})
		entries = append(entries, []any{int64(1), w.now, effectKey(s.e.Source, "paid", s.e.ID, 0), key, int32(0), "EUR", fmt.Sprintf("user_%d", i%1000), s.e.Source, s.e.ID, "external:stripe", "paid", s.e.ID})
		w.next[s.rec.Partition] = max(w.next[s.rec.Partition], s.rec.Offset+1)
	}
	_, err := w.pool.CopyFrom(w.tb.Context(), pgx.Identifier{"processed_events"}, []string{"event_key", "generation", "source", "event_id", "type",
		"outcome", "meaning", "topic", "partition", "offset", "received_at", "processed_at", "body_sha256"}, pgx.CopyFromRows(rows))
	must(w.tb, err)
	_, err = w.pool.CopyFrom(w.tb.Context(), pgx.Identifier{"ledger_entries"}, []string{"amount", "applied_at", "effect_key", "event_key", "line",
		"currency", "account_id", "source", "event_id", "contra", "rule", "movement_id"}, pgx.CopyFromRows(entries))
	must(w.tb, err)
	w.exec(`insert into accounts (account_id, currency, balance, entry_count, updated_at)
		select account_id, currency, sum(amount), count(*), now() from ledger_entries group by 1, 2`)
	w.commit()
}

// Environment of the process that verifies by itself, so that its memory is its own.
const (
	envBrokers  = "HOOKLEDGER_VERIFY_BROKERS"
	envTopic    = "HOOKLEDGER_VERIFY_TOPIC"
	envDatabase = "HOOKLEDGER_VERIFY_DATABASE"
)

// maxResident is what a process that verifies may take for a topic of any size. It
// took 64 MiB for 100,000 records of 1 KiB and 76 MiB for 200,000.
const maxResident = 128 << 20

func TestRun_HundredThousandRecordsInBoundedMemory(t *testing.T) {
	n := 100_000
	if s := os.Getenv("HOOKLEDGER_VERIFY_RECORDS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		must(t, err)
	}
	w := setup(t, 12)
	w.fill(n, 12)
	w.exec(`delete from processed_events where event_id = 'evt_00054321'`)
	w.exec(`delete from ledger_entries where event_id = 'evt_00054321'`)
	w.exec(`update accounts set balance = balance - 1, entry_count = entry_count - 1 where account_id = 'user_321'`)

	cmd := exec.Command(os.Args[0], "-test.run=^TestVerifyAlone$", "-test.v")
	cmd.Env = append(os.Environ(), envBrokers+"="+w.brokers, envTopic+"="+w.topic, envDatabase+"="+w.url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	for line := range strings.Lines(string(out)) {
		if kib, ok := strings.CutPrefix(strings.TrimSpace(line), "resident KiB "); ok {
			got, err := strconv.Atoi(kib)
			must(t, err)
			if got<<10 > maxResident*raceFactor {
				t.Errorf("got %d KiB resident, want at most %d", got, maxResident*raceFactor>>10)
			}
		}
	}
	if !bytes.Contains(out, []byte("1 record below the committed offset is nowhere on record: stripe/evt_00054321")) {
		t.Fatalf("the one that is missing was not found: %s", out)
	}
}

// TestVerifyAlone is the process that the test above starts.
func TestVerifyAlone(t *testing.T) {
	if os.Getenv(envTopic) == "" {
		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var read time.Duration
	rep, err := verify.Run(t.Context(), verify.Options{
		Pool: pool(t, os.Getenv(envDatabase)), KafkaOpts: []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Getenv(envBrokers), ",")...)},
		Topic: os.Getenv(envTopic), Group: group,
		Progress: func(done, total int64) {
			if done == total {
				read = time.Since(began)
			}
		},
	})
	must(t, err)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	fmt.Printf("records %d in %v (topic read after %v): %.0f records/s, %d bytes allocated per record\n", rep.Records, took.Round(time.Millisecond),
		read.Round(time.Millisecond), float64(rep.Records)/took.Seconds(), int64(after.TotalAlloc-before.TotalAlloc)/max(rep.Records, 1))
	fmt.Println(strings.Join(strings.Fields(check(rep, verify.CheckRecords).Found), " "))
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // not Linux: no figure
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			fmt.Println("resident KiB", f[1])
		}
	}
}
