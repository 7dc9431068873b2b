package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// wait is the longest that a story waits for something that should take seconds.
const wait = time.Minute

// copyToOtherPartition appends each record of a topic of two partitions to the other
// partition, the last one first, and returns how many there were.
func (s *system) copyToOtherPartition() int {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	records, err := checker.ReadTopic(ctx, s.kafka.Brokers(), s.topic)
	if err != nil {
		s.tb.Fatal(err)
	}
	slices.Reverse(records)
	cl := s.kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var copies []*kgo.Record
	for i := range records {
		r := &records[i]
		c := &kgo.Record{Topic: s.topic, Partition: 1 - r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			c.Headers = append(c.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
		}
		copies = append(copies, c)
	}
	if err := cl.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		s.tb.Fatalf("copy records: %v", err)
	}
	return len(copies)
}

// signalConsume sends a signal to every worker.
func (s *system) signalConsume(sig syscall.Signal) {
	s.tb.Helper()
	for _, r := range s.consume {
		r.Signal(sig)
	}
}

// partitionsShared is for Eventually: each worker reads a partition.
func (s *system) partitionsShared() error {
	for _, r := range s.consume {
		if n := r.metric(s.tb, "hookledger_consumer_assigned_partitions"); n == 0 {
			return fmt.Errorf("%s has no partition", r.name)
		}
	}
	return nil
}

// awaitLines waits until a file has grown by n lines.
func (s *system) awaitLines(path string, n int) {
	s.tb.Helper()
	count := func() int {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.tb.Fatal(err)
		}
		return bytes.Count(text, []byte("\n"))
	}
	before := count()
	testkit.Eventually(s.tb, wait, func() error {
		if got := count() - before; got < n {
			return fmt.Errorf("%s has %d more lines, want %d", path, got, n)
		}
		return nil
	})
}

// groupState asks the coordinator.
func (s *system) groupState() (state string, members int) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	groups, err := kadm.NewClient(s.kafka.Client()).DescribeGroups(ctx, s.group)
	if err == nil {
		err = groups[s.group].Err
	}
	if err != nil {
		s.tb.Fatalf("describe group: %v", err)
	}
	return groups[s.group].State, len(groups[s.group].Members)
}

func statusOf(tb testing.TB, url string) (int, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// wantMetrics wants the metrics that operators steer by, and that they say what is
// known otherwise: nothing is wrong and nothing is behind.
func (s *system) wantMetrics() {
	s.tb.Helper()
	for _, r := range s.ingest {
		if open := r.metric(s.tb, "hookledger_ingest_circuit_open"); open != 0 {
			s.tb.Errorf("circuit_open of %s: got %v, want 0", r.name, open)
		}
	}
	lag := 0.0
	for _, r := range s.consume {
		lag += r.metric(s.tb, "hookledger_consumer_lag_records")
		r.metric(s.tb, "hookledger_consumer_lag_seconds")
		r.metric(s.tb, "hookledger_consumer_settle_delay_seconds_count")
		r.metric(s.tb, "hookledger_consumer_settled_records_total")
	}
	if lag != 0 {
		s.tb.Errorf("lag in the metrics of the workers: got %v, want 0", lag)
	}
}
