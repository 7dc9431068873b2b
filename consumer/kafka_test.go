package consumer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
)

// TestKafka_PositionsOnTheRealThing walks one topic of Apache Kafka through a life: read,
// reset by Kafka's own tool, expired, deleted and created again.
func TestKafka_PositionsOnTheRealThing(t *testing.T) {
	t.Parallel()
	k := testkit.Kafka(t)
	kafka := broker.DefaultConfig()
	kafka.Brokers, kafka.Topic, kafka.Group = k.Brokers(), testkit.UniqueName("events"), testkit.UniqueName("group")
	b := setupWith(t, 1, testkit.LedgerDB(t), kafka)
	b.cfg.SessionTimeout = 6 * time.Second // the broker's least
	b.cfg.InstanceID = "worker-1"
	empty := func() {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			gs, err := b.adm.DescribeGroups(t.Context(), kafka.Group)
			if err != nil {
				return err
			}
			if n := len(gs[kafka.Group].Members); n != 0 {
				return fmt.Errorf("the group has %d members", n)
			}
			return nil
		})
	}

	for _, sum := range []int64{3, 8} {
		b.pay(0, "anna", int(sum-b.balance("anna")))
		w := b.start()
		b.hasBalance("anna", sum)
		b.isCommitted(0, sum)
		w.halt()
		empty() // although the member is static
	}
	b.hasIncidents(0)

	out, err := k.Tool(t.Context(), testkit.ConsumerGroupCommand, "--group", kafka.Group, "--topic", kafka.Topic, "--reset-offsets", "--to-earliest", "--execute")
	if err != nil {
		t.Fatalf("reset offsets: %v\n%s", err, out)
	}
	w := b.start()
	b.hasIncidents(0, "rewind/info/0/8")
	b.isCommitted(0, 8)
	if got := w.records("duplicate"); got != 8 {
		t.Errorf("duplicates after the reset: got %v, want 8", got)
	}
	w.halt()

	b.pay(0, "anna", 4)
	offsets := kadm.Offsets{}
	offsets.AddOffset(kafka.Topic, 0, 10, -1)
	if _, err := b.adm.DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	w = b.start()
	b.hasIncidents(0, "rewind/info/0/8", "expired/loss/8/10")
	b.hasBalance("anna", 10)
	b.isCommitted(0, 12)

	// Deleted and created again under the running worker.
	if _, err := b.adm.DeleteTopic(t.Context(), kafka.Topic); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, func() error {
		if _, _, _, err := broker.Identity(t.Context(), b.client, kafka.Topic); !errors.Is(err, broker.ErrNoTopic) {
			return fmt.Errorf("the topic is still there: %w", err)
		}
		return nil
	})
	b.createTopic()
	b.client.PurgeTopicsFromClient(kafka.Topic)
	b.pay(0, "anna", 2)
	b.hasIncidents(0, "rewind/info/0/8", "expired/loss/8/10", "topic_recreated/warning/0/0")
	if got := b.balance("anna"); got != 10 {
		t.Errorf("balance before the acknowledgement: got %d, want 10", got)
	}
	id := query1[int64](t, b.pool, `select incident_id from incidents where kind = 'topic_recreated'`)
	if _, err := ledger.AcknowledgeIncident(t.Context(), b.pool, id, "test", "as the test wants"); err != nil {
		t.Fatal(err)
	}
	b.hasBalance("anna", 12)
	b.isCommitted(0, 2)
	w.halt()
	empty()
	if got := b.incidents(0); strings.Contains(fmt.Sprint(got), "progress_behind") {
		t.Errorf("incidents: got %q, want nothing more", got)
	}
	b.lawful()
}
