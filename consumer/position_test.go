package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// consumed runs a worker until n events of 1 are settled and committed, and stops it.
func (b *bundle) consumed(n int64) {
	b.tb.Helper()
	w := b.start()
	b.hasBalance("anna", n)
	b.isCommitted(0, n)
	w.halt()
	b.groupIsEmpty()
}

func TestPosition_AnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.exec(`insert into consumer_progress (cluster_id, topic, topic_id, partition, from_offset, next_offset, leader_epoch, updated_at)
		values ('staging', $1, gen_random_uuid(), 0, 5, 5, 0, now())`, b.kafka.Topic)
	w := b.start()
	<-w.done
	var other *OtherClusterError
	if !errors.Is(w.err, ErrRefused) || !errors.As(w.err, &other) || other.Database != "staging" {
		t.Errorf("Run: got %v, want a refusal naming both clusters", w.err)
	}
	if got := b.balance("anna"); got != 0 {
		t.Errorf("balance: got %d, want 0", got)
	}
}

func TestPosition_RecreatedTopicWaitsUntilAcknowledged(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 5)
	w := b.start()
	b.isCommitted(0, 5)
	if err := b.cluster.DeleteTopic(b.kafka.Topic); err != nil {
		t.Fatal(err)
	}
	b.createTopic()
	b.client.PurgeTopicsFromClient(b.kafka.Topic)
	b.pay(0, "anna", 2)
	b.hasIncidents(0, "topic_recreated/warning/0/0")
	w.owns(0)
	if got := b.balance("anna"); got != 5 {
		t.Errorf("balance before the acknowledgement: got %d, want 5", got)
	}
	// Nor does a new worker read on, or tell again.
	w.halt()
	w = b.start()
	w.ready()
	testkit.Eventually(t, soon, func() error {
		if s := w.session.Load(); s == nil || len(s.waiting.list()) != 1 {
			return errors.New("the partition does not wait")
		}
		return nil
	})
	id := query1[int64](t, b.pool, `select incident_id from incidents`)
	if _, err := ledger.AcknowledgeIncident(context.Background(), b.pool, id, "test", "as the test wants"); err != nil {
		t.Fatal(err)
	}
	b.hasBalance("anna", 7)
	b.isCommitted(0, 2)
	b.hasIncidents(0, "topic_recreated/warning/0/0")
	b.lawful()
}

func TestPosition_TruncatedLogIsALoss(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 5)
	b.consumed(5)
	// What a log that lost its end looks like to a worker.
	b.exec(`update consumer_progress set from_offset = 9, next_offset = 9`)
	w := b.start()
	b.hasIncidents(0, "truncated/loss/5/9")
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 6)
	b.isCommitted(0, 6)
	if got := w.records("duplicate"); got != 5 {
		t.Errorf("duplicates: got %v, want the whole log of 5 again", got)
	}
	b.lawful()
}

func TestPosition_LostRecordsReportedTwiceAreALoss(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 5)
	b.consumed(5)
	// The log answers that the epoch of our last record ended below our position.
	b.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, rt := range req.(*kmsg.OffsetForLeaderEpochRequest).Topics {
			st := kmsg.NewOffsetForLeaderEpochResponseTopic()
			st.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				sp.Partition, sp.LeaderEpoch, sp.EndOffset = rp.Partition, rp.LeaderEpoch, 3
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	w := b.start()
	b.hasIncidents(0, "truncated/loss/3/5")
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 6)
	if got := value(t, w.metrics.reopens.WithLabelValues("data_loss")); got != 2 {
		t.Errorf("reopened for lost records: got %v times, want 2", got)
	}
	b.lawful()
}

func TestPosition_ExpiredRecordsAreALossWithTheExactRange(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.consumed(2)
	b.pay(0, "anna", 5)
	if err := b.cluster.DeleteRecords(b.kafka.Topic, 0, 4); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.hasIncidents(0, "expired/loss/2/4")
	b.hasBalance("anna", 5)
	b.isCommitted(0, 7)
	b.lawful()
}

func TestPosition_ExpiredWhileRunning(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	w := b.start()
	b.isCommitted(0, 2)
	// Hold the worker's transactions, so that records expire that it has not read.
	lock := b.lockProgress()
	b.pay(0, "anna", 1)
	testkit.Eventually(t, soon, func() error {
		if s := w.session.Load(); s == nil || len(s.queues.standings()) != 1 || s.queues.standings()[0].bytes == 0 {
			return errors.New("not read yet")
		}
		return nil
	})
	lock.release()
	b.hasBalance("anna", 3)
	b.isCommitted(0, 3)
	w.halt()
	b.pay(0, "anna", 5)
	if err := b.cluster.DeleteRecords(b.kafka.Topic, 0, 8); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.hasIncidents(0, "expired/loss/3/8")
}

func TestPosition_NewDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.pay(0, "anna", 4)
	b.setCommit(0, 3)
	b.start()
	b.hasBalance("anna", 4)
	b.hasIncidents(0, "database_new/warning/0/3")
	b.hasIncidents(1)
	b.isCommitted(0, 4)
	b.isCommitted(1, 0) // an idle partition has a commit too, so that its loss shows
}

func TestPosition_MissingCommit(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 4)
	b.consumed(4)
	if _, err := b.adm.DeleteGroups(t.Context(), b.kafka.Group); err != nil {
		t.Fatal(err)
	}
	w := b.start()
	b.hasIncidents(0, "commit_missing/info/4/4")
	b.isCommitted(0, 4)
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want none", got)
	}
}

func TestPosition_DatabaseThatLostCommitsHealsFromTheTopic(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 3)
	b.consumed(3)
	b.pay(0, "anna", 4)
	b.consumed(7)
	b.forgetFrom(3)
	b.start()
	b.hasBalance("anna", 7)
	b.hasIncidents(0, "progress_behind/warning/3/7")
	b.isCommitted(0, 7)
	b.lawful()
}

// forgetFrom makes Postgres what it was when partition 0 stood at next, as a restored
// backup or an asynchronous standby does.
func (b *bundle) forgetFrom(next int64) {
	b.tb.Helper()
	b.exec(`delete from processed_events where "offset" >= $1`, next)
	b.exec(`delete from ledger_entries e where not exists (select from processed_events p where p.event_key = e.event_key)`)
	b.exec(`update accounts a set (balance, entry_count) = (select sum(amount), count(*) from ledger_entries e where e.account_id = a.account_id)`)
	b.exec(`update consumer_progress set next_offset = $1, from_offset = least(from_offset, $1)`, next)
}

func TestPosition_IdlePartitionNoticesRestoredDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 3)
	w := b.start()
	b.isCommitted(0, 3)
	b.forgetFrom(1)
	// No record arrives; the check finds out.
	b.hasBalance("anna", 3)
	b.hasIncidents(0, "progress_behind/warning/1/3")
	if got := value(t, w.metrics.reopens.WithLabelValues("progress_check")); got < 1 {
		t.Errorf("reopened by the check: got %v times, want at least 1", got)
	}
	b.lawful()
}

func TestPosition_MissingRowIsNoticedByTheTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.cfg.CheckInterval = soon // not the check
	b.pay(0, "anna", 3)
	b.start()
	b.isCommitted(0, 3)
	b.exec(`delete from consumer_progress`)
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 4)
	b.hasIncidents(0, "database_new/warning/0/3")
	b.lawful()
}

func TestPosition_ResetToEarliestChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.consumed(2)
	b.pay(0, "anna", 4)
	b.consumed(6)
	b.setCommit(0, 0)
	w := b.start()
	b.hasIncidents(0, "rewind/info/0/6")
	b.isCommitted(0, 6)
	if got := w.records("duplicate"); got != 6 {
		t.Errorf("duplicates: got %v, want 6", got)
	}
	if got := b.balance("anna"); got != 6 {
		t.Errorf("balance: got %d, want 6", got)
	}
	w.halt()
	b.start()
	b.hasIncidents(0, "rewind/info/0/6") // told once
	b.lawful()
}

func TestPosition_CrashBetweenTheCommitsRepeatsTheLastBatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.consumed(2)
	// Kafka never hears of what comes next.
	refuse := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.UnknownMemberID, Count: -1})
	b.pay(0, "anna", 3)
	w := b.start()
	b.hasBalance("anna", 5)
	w.halt()
	refuse.Remove()
	if got := b.committed(0); got != 2 {
		t.Fatalf("committed: got %d, want 2", got)
	}
	w = b.start()
	b.isCommitted(0, 5)
	if got := w.records("duplicate"); got != 3 {
		t.Errorf("duplicates: got %v, want 3", got)
	}
	if got := b.balance("anna"); got != 5 {
		t.Errorf("balance: got %d, want 5", got)
	}
	b.hasIncidents(0)
	b.lawful()
}

func TestPosition_AnErrorOfAListCallIsRetriedNeverZero(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.ListOffsets, kmsg.OffsetFetch} {
		t.Run(key.Name(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			b.pay(0, "anna", 3)
			b.consumed(3)
			fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: kerr.UnknownServerError, Count: 3})
			w := b.start()
			if err := fault.Wait(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			b.pay(0, "anna", 1)
			b.hasBalance("anna", 4)
			b.hasIncidents(0)
			if got := w.records("duplicate"); got != 0 {
				t.Errorf("duplicates: got %v, want none", got)
			}
		})
	}
}

func TestPosition_AddedPartitionStartsAtItsBeginning(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.consumed(2)
	b.kafka.Partitions = 3
	if _, err := broker.ApplyTopic(t.Context(), b.client, b.kafka, 1<<20, false); err != nil {
		t.Fatal(err)
	}
	b.client.PurgeTopicsFromClient(b.kafka.Topic)
	b.pay(2, "anna", 5)
	b.start()
	b.hasBalance("anna", 7)
	b.isCommitted(2, 5)
	b.hasIncidents(2)
}

// The brokers' bounds are theirs to set: 6 s to 30 min by default, in kfake to 5 min.
func TestWorker_RefusesASessionTimeoutThatTheBrokersRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	w := b.start(func(d *Deps) { d.Config.SessionTimeout = 30 * time.Minute })
	select {
	case <-w.done:
	case <-time.After(soon):
		t.Fatal("still trying")
	}
	if !errors.Is(w.err, ErrRefused) || !strings.Contains(w.err.Error(), "consume.session_timeout") {
		t.Errorf("got %v, want ErrRefused with the key to set", w.err)
	}
}

func TestWorker_RefusesATopicThatIsMissingOrUnsafe(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	w := b.start(func(d *Deps) { d.Kafka.Topic = "elsewhere" })
	<-w.done
	if !errors.Is(w.err, ErrRefused) || !errors.Is(w.err, broker.ErrNoTopic) || !strings.Contains(w.err.Error(), "topics apply") {
		t.Errorf("missing topic: got %v", w.err)
	}
	w = b.start(func(d *Deps) { d.Kafka.Durability = broker.Replicated })
	<-w.done
	var refused *broker.RefusedError
	if !errors.As(w.err, &refused) || len(refused.Reasons) < 2 {
		t.Errorf("unsafe topic: got %v", w.err)
	}
	var _ kadm.Offsets // the group was never joined
	if g := b.cluster.GroupInfo(b.kafka.Group); g != nil && len(g.Members) > 0 {
		t.Errorf("a refused worker joined the group: %s", fmt.Sprint(g.Members))
	}
}
