package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// Records that are no events of ours stand between events: no headers, no key, no
// value, bytes that are not text, a hash that does not fit, a key of another event.
// Each is set aside with its place and reason, and every event around them is applied.
func TestConsume_ForeignRecordsAreSetAsideAndTheirNeighboursApplied(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{partitions: 1})
	s.startIngest()
	s.startSampler()
	s.startLoad(11, workload(11, 60), 1, 8, 0).wait()

	cl := s.kafka.Client()
	ours := []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_id", Value: []byte("forged")}, {Key: "ce_source", Value: []byte("/webhooks/acme")},
		{Key: "hl_version", Value: []byte("1")}, {Key: "hl_source", Value: []byte("acme")}, {Key: "hl_received_at", Value: []byte("2026-11-29T12:00:01.000005000Z")},
		{Key: "hl_body_sha256", Value: []byte(strings.Repeat("0", 64))},
	}
	foreign := []*kgo.Record{
		{Value: []byte("hello")},
		{Key: []byte("k"), Value: nil},
		{},
		{Key: []byte("\xff\x00\xfe"), Value: []byte("\x00\xff"), Headers: []kgo.RecordHeader{{Key: "\xff", Value: []byte("\x00\xff")}}},
		{Key: []byte("forged"), Value: []byte(`{"id":"forged","type":"payment.succeeded","amount":1,"currency":"EUR","user_id":"acct-00","payment_id":"p"}`), Headers: ours},
		{Key: []byte("other"), Value: []byte(`{}`), Headers: ours},
		{Key: []byte("forged"), Value: nil, Headers: ours},
	}
	for _, r := range foreign {
		r.Topic = s.topic
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.startLoad(12, workload(12, 60), 1, 8, 0).wait()
	s.startConsume()
	s.awaitDrained(wait)

	w := s.gather(verdict{})
	held := map[int64]checker.Held{}
	for _, h := range w.Tables.Quarantined {
		held[h.Offset] = h
	}
	for i, r := range foreign {
		h, ok := held[r.Offset]
		if !ok || h.Reason == "" || h.Resolved {
			t.Errorf("foreign record %d at offset %d: got %+v, want it in quarantine with a reason", i, r.Offset, h)
		}
		t.Logf("foreign record %d: %s", i, h.Reason)
	}
	if len(held) != len(foreign) {
		t.Errorf("got %d records in quarantine, want %d", len(held), len(foreign))
	}
	// What the clients did not send is known; everything else has to hold.
	for _, violation := range checker.Check(w) {
		if violation.Invariant == "I2" || violation.Invariant == "I5" {
			if n := len(violation.Events) + violation.More; n <= len(foreign) {
				continue
			}
		}
		t.Errorf("violated %s", violation)
	}
	s.verify() // what is in quarantine is a note, not a failure
}

// A worker whose configuration lacks a source does not judge its events: the partition
// waits, an incident says for what, and the right configuration goes on from there.
func TestConsume_UnknownSourceWaitsForTheRightConfiguration(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{partitions: 2})
	s.startIngest()
	s.startSampler()
	s.startLoad(13, workload(13, 80), 1, 8, 0).wait()

	complete := s.config
	s.config = filepath.Join(s.dir, "without-acme.yaml")
	head, _, _ := strings.Cut(s.configuration(), "  - name: acme")
	s.write(s.config, head)
	wrong := s.startConsume()
	testkit.Eventually(t, wait, func() error {
		for _, i := range s.tables().Incidents {
			if i.Kind == "unknown_source" {
				return nil
			}
		}
		return errors.New("no incident unknown_source")
	})
	if held := s.tables().Quarantined; len(held) != 0 {
		t.Errorf("got %d records in quarantine, want none: another configuration can read them", len(held))
	}
	// It waits for a person, so it stays ready for what it can do, and says so.
	if err := wrong.wantStatus("/readyz", 200)(); err != nil {
		t.Error(err)
	}
	if wrong.metric(t, "hookledger_consumer_retries_total", `class="unknown_source"`) == 0 {
		t.Error("got no retries of class unknown_source in the metrics")
	}
	if wrong.metric(t, "hookledger_consumer_lag_records") == 0 {
		t.Error("got no lag in the metrics while partitions wait")
	}
	wrong.mustStop(t)

	s.config = complete
	s.startConsume()
	s.settle(verdict{incidents: []string{"unknown_source"}})
}
