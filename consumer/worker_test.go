package consumer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
)

func TestWorker_AppliesAndCommitsTheNextOffset(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	w := b.start()
	w.ready()
	b.pay(0, "anna", 3)
	b.pay(1, "anna", 4)
	b.hasBalance("anna", 7)
	b.isCommitted(0, 3)
	b.isCommitted(1, 4)
	w.halt()
	if w.err != nil {
		t.Errorf("Run: got %v, want nil after a graceful stop", w.err)
	}
	b.groupIsEmpty()
	if got := w.records("applied"); got != 7 {
		t.Errorf("applied: got %v, want 7", got)
	}
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want 0", got)
	}
	b.hasIncidents(0)
	b.lawful()
}

func TestWorker_StartsWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	proxy := testkit.NewProxy(t, b.kafka.Brokers[0])
	proxy.Reset()
	b.extra = []kgo.Opt{kgo.Dialer(proxy.Dial)}
	b.pay(0, "anna", 2)
	w := b.start()
	if err := w.notReady(); err == nil {
		t.Error("ready without a broker")
	}
	proxy.Pass()
	b.hasBalance("anna", 2)
	w.ready()
}

func TestWorker_WithoutPartitionsIsReady(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	first := b.start()
	first.owns(1)
	second := b.start()
	second.ready()
	second.owns(0)
}

// A partition that was settled before it was assigned is known to be, although no record
// of it comes: lag is not -1 for as long as it is idle.
func TestWorker_IdlePartitionTellsItsLag(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 3)
	first := b.start()
	b.isCommitted(0, 3)
	first.halt()
	second := b.start()
	second.owns(1)
	for _, p := range second.session.Load().queues.standings() {
		if records, seconds := p.lag(time.Now()); records != 0 || seconds != 0 {
			t.Errorf("lag of partition %d: got %v records and %v s, want none", p.id, records, seconds)
		}
	}
}

// TestWorker_DuplicateInOneBatchAndAcrossPartitions: two workers get the same events in
// opposite orders at the same time, each twice in a batch.
func TestWorker_SameEventsInOppositeOrders(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	const events = 300
	var forth, back []*kgo.Record
	for i := range events {
		account := fmt.Sprintf("user_%d", i%7)
		f := b.record(0, "acme", fmt.Sprintf("evt_%d", i), told{Account: account, Amount: 1})
		r := b.record(1, "acme", fmt.Sprintf("evt_%d", events-1-i), told{Account: fmt.Sprintf("user_%d", (events-1-i)%7), Amount: 1})
		twice := *f
		forth, back = append(forth, f, &twice), append(back, r)
	}
	first, second := b.start(), b.start()
	first.owns(1)
	second.owns(1)
	b.produce(append(forth, back...)...)
	b.isCommitted(0, 2*events)
	b.isCommitted(1, events)
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); got != events {
		t.Errorf("balances: got %d, want %d", got, events)
	}
	if got := first.records("duplicate") + second.records("duplicate"); got != 2*events {
		t.Errorf("duplicates: got %v, want %d", got, 2*events)
	}
	b.lawful()
}

func TestMetrics_NamesUnitsAndStartingValues(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	w := b.start()
	w.owns(1)
	b.pay(0, "anna", 1)
	b.isCommitted(0, 1)
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		seen[f.GetName()] = true
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
	}
	for _, name := range []string{"records_total", "settled_records_total", "settle_delay_seconds", "lag_records", "lag_seconds", "batch_records",
		"apply_seconds", "position_rules_total", "assigned_partitions", "last_progress_timestamp_seconds", "buffered_bytes"} {
		if !seen["hookledger_consumer_"+name] {
			t.Errorf("metric hookledger_consumer_%s is missing", name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: got %v, %v", problems, err)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	good := DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	if good.StatementTimeout() >= good.SessionTimeout || good.LockTimeout() >= good.StatementTimeout() ||
		good.batchTimeout() >= good.rebalanceTimeout()/2 || 2*good.finishTimeout() >= good.rebalanceTimeout() || 3*good.heartbeatInterval() > good.SessionTimeout {
		t.Error("the timeouts do not nest")
	}
	bad := Config{}
	err := bad.Validate()
	for _, key := range []string{"session_timeout", "batch_max_records", "batch_max_bytes", "buffer_bytes", "check_interval"} {
		if err == nil || !strings.Contains(err.Error(), "consume."+key) {
			t.Errorf("an empty configuration: got %v, want consume.%s among the reasons", err, key)
		}
	}
}
