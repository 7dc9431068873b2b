package consumer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/broker"
	"hookledger/internal/testkit"
)

// An operator, or a tool, moves the group forward over records that nobody read. They
// are read all the same, and the move is on record.
func TestPosition_SkipForwardIsUndone(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 5)
	b.consumed(5)
	b.pay(0, "anna", 5)
	b.setCommit(0, 9)
	w := b.start()
	b.hasBalance("anna", 10)
	b.isCommitted(0, 10)
	b.hasIncidents(0, "progress_behind/warning/5/9")
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want none: the skip is undone from where Postgres stands", got)
	}
	b.lawful()
}

// An offset far beyond the end of the log is no place to wait at: the records that come
// next are below it.
func TestPosition_CommitBeyondTheLogEnd(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"known database": false, "new database": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			b.pay(0, "anna", 4)
			want := "progress_behind/warning/4/500"
			if fresh {
				want = "database_new/warning/0/500"
			} else {
				b.consumed(4)
			}
			b.setCommit(0, 500)
			b.start()
			b.hasIncidents(0, want)
			b.pay(0, "anna", 3)
			b.hasBalance("anna", 7)
			b.isCommitted(0, 7)
			b.lawful()
		})
	}
}

// A reset to an offset that the log no longer holds starts where the log does; nothing is
// lost by it, for all of it was applied before.
func TestPosition_ResetBelowTheLogStart(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 3)
	b.consumed(3)
	b.pay(0, "anna", 4)
	b.consumed(7)
	if err := b.cluster.DeleteRecords(b.kafka.Topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	b.setCommit(0, 0)
	w := b.start()
	b.hasIncidents(0, "rewind/info/2/7")
	b.isCommitted(0, 7)
	if got := w.records("duplicate"); got != 5 {
		t.Errorf("duplicates: got %v, want the 5 records from the start of the log", got)
	}
	if got := b.balance("anna"); got != 7 {
		t.Errorf("balance: got %d, want 7", got)
	}
	b.lawful()
}

// A coordinator that just took over was seen to answer an older offset for a moment.
// Nobody reset anything then: no incident, and the log is not read again.
func TestPosition_StaleCommitSeenOnceIsNoRewind(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 4)
	b.consumed(4)
	b.pay(0, "anna", 2)
	b.consumed(6)
	id := query1[[16]byte](t, b.pool, `select topic_id from consumer_progress`)
	stale, assigned, told := make(chan struct{}), false, false
	b.cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r := req.(*kmsg.OffsetFetchRequest)
		b.cluster.KeepControl()
		own := len(r.Groups) != 1 || len(r.Groups[0].Topics) > 0 // the client's, before the rules ask
		if assigned = assigned || own; own || !assigned || told {
			return nil, nil, false
		}
		told = true
		p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		p.Offset = 1
		st := kmsg.NewOffsetFetchResponseGroupTopic()
		st.Topic, st.TopicID, st.Partitions = b.kafka.Topic, id, append(st.Partitions, p)
		g := kmsg.NewOffsetFetchResponseGroup()
		g.Group, g.Topics = r.Groups[0].Group, append(g.Topics, st)
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		resp.Groups = append(resp.Groups, g)
		close(stale)
		return resp, nil, true
	})
	w := b.start()
	<-stale
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 7)
	b.isCommitted(0, 7)
	b.hasIncidents(0)
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want none", got)
	}
	b.lawful()
}

// Offsets that expired while nobody was there, and a group of another name, both leave
// Kafka without a position. Postgres has one: nothing is read again, nothing is skipped.
func TestPosition_WithoutACommitPostgresDecides(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*bundle){
		"offsets expired": func(b *bundle) {
			var all kadm.TopicsSet
			all.Add(b.kafka.Topic, 0, 1)
			rs, err := b.adm.DeleteOffsets(b.tb.Context(), b.kafka.Group, all)
			if err == nil {
				err = rs.Error()
			}
			if err != nil {
				b.tb.Fatal(err)
			}
		},
		"group renamed": func(b *bundle) { b.kafka.Group += "-renamed" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2)
			b.pay(0, "anna", 3)
			b.pay(1, "bert", 2)
			w := b.start()
			b.isCommitted(0, 3)
			b.isCommitted(1, 2)
			w.halt()
			b.groupIsEmpty()
			lose(b)
			b.pay(0, "anna", 4) // while nobody reads
			w = b.start()
			b.hasBalance("anna", 7)
			b.isCommitted(0, 7)
			b.isCommitted(1, 2)
			b.hasIncidents(0, "commit_missing/info/3/3")
			b.hasIncidents(1, "commit_missing/info/2/2")
			if got := w.records("duplicate"); got != 0 {
				t.Errorf("duplicates: got %v, want none", got)
			}
			w.halt()
			b.start().owns(2)
			b.hasIncidents(0, "commit_missing/info/3/3") // told once
			b.lawful()
		})
	}
}

// Transactions leave records in the log that nobody is given: markers of commits and
// aborts, and what was aborted. Positions step over them, and nothing is told of them.
func TestPosition_ControlRecordsAreNoGap(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	tx, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers...), kgo.TransactionalID("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	write := func(id string, end kgo.TransactionEndTry) {
		t.Helper()
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := tx.ProduceSync(t.Context(), b.record(0, "acme", id, told{Account: "anna", Amount: 1})).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := tx.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	b.pay(0, "anna", 1)            // 0
	write("tx_1", kgo.TryCommit)   // 1, marker 2
	write("aborted", kgo.TryAbort) // 3, marker 4
	write("tx_2", kgo.TryCommit)   // 5, marker 6
	b.pay(0, "anna", 1)            // 7
	w := b.start()
	b.hasBalance("anna", 4)
	b.isCommitted(0, 8)
	write("aborted", kgo.TryAbort) // 8, marker 9
	w.halt()
	w = b.start()
	b.pay(0, "anna", 1) // 10
	b.hasBalance("anna", 5)
	b.isCommitted(0, 11)
	b.hasIncidents(0)
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want none", got)
	}
	b.lawful()
}

// Postgres loses commits under two workers at once. Both find out, both close and join
// again, and the rules run for the same partitions while they move between the two.
func TestPosition_TwoWorkersHealAtOnce(t *testing.T) {
	t.Parallel()
	const partitions, events = 4, 30
	b := setup(t, partitions)
	one, two := b.start(), b.start()
	one.owns(partitions / 2)
	two.owns(partitions / 2)
	for p := range int32(partitions) {
		b.pay(p, "anna", events)
	}
	for p := range int32(partitions) {
		b.isCommitted(p, events)
	}
	b.forgetFrom(10)
	b.hasBalance("anna", partitions*events)
	for p := range int32(partitions) {
		b.isCommitted(p, events)
		b.hasIncidents(p, "progress_behind/warning/10/30")
	}
	for i, w := range []*worker{one, two} {
		if got := value(t, w.metrics.reopens.WithLabelValues("progress_check")); got < 1 {
			t.Errorf("worker %d reopened %v times, want at least 1: the test needs both", i+1, got)
		}
	}
	// And they go on.
	for p := range int32(partitions) {
		b.pay(p, "anna", 1)
	}
	b.hasBalance("anna", partitions*(events+1))
	b.lawful()
}

// The group's coordinator is away for some seconds, while records are applied all the
// same, and then the worker dies without a word. That is an ordinary crash.
func TestPosition_CrashAfterSecondsWithoutACoordinator(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 2)
	b.consumed(2)
	away := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	proxy := testkit.NewProxy(t, b.kafka.Brokers[0])
	b.extra = []kgo.Opt{kgo.Dialer(proxy.Dial)}
	w := b.start()
	b.extra = nil
	b.pay(0, "anna", 1)
	for i := range 3 { // each waits for at least one more commit that is refused
		if err := away.Wait(t.Context(), away.Hits()+1); err != nil {
			t.Fatal(err)
		}
		b.pay(0, "anna", 1)
		b.hasBalance("anna", int64(4+i))
	}
	proxy.Stall() // what a killed process looks like from outside
	away.Remove()
	if got := b.committed(0); got != 2 {
		t.Fatalf("committed: got %d, want 2: the coordinator was away", got)
	}
	heir := b.start()
	b.isCommitted(0, 6)
	if got := heir.records("duplicate"); got != 4 {
		t.Errorf("duplicates: got %v, want 4", got)
	}
	if got := b.balance("anna"); got != 6 {
		t.Errorf("balance: got %d, want 6", got)
	}
	b.hasIncidents(0)
	b.lawful()
	proxy.Reset()
	w.stop()
}

// Without records, too, it takes 10 s at most until lost commits are noticed.
func TestConfig_PositionsAreCheckedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	if c := DefaultConfig(); c.CheckInterval > 10*time.Second {
		t.Errorf("check interval: got %s, want at most 10s", c.CheckInterval)
	}
}

// The brokers' disks come back from an older copy: the log ends before what Postgres
// holds, and what is written next has offsets that were used before.
func TestPosition_LogRestoredFromAnOlderCopy(t *testing.T) {
	t.Parallel()
	dir, older := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	kafka := broker.DefaultConfig()
	port := testkit.FreePort(t) // which stays the test's while no broker listens
	open := func() *kfake.Cluster {
		return testkit.Kfake(t, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites(), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	}
	cluster := open()
	kafka.Brokers = cluster.ListenAddrs()
	b := setupWith(t, 1, testkit.LedgerDB(t), kafka)
	b.cluster = cluster
	b.pay(0, "anna", 3)
	b.consumed(3)
	cluster.Close()
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	b.cluster = open()
	b.pay(0, "anna", 5)
	b.consumed(8)
	b.cluster.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	b.cluster = open()
	w := b.start()
	b.hasIncidents(0, "truncated/loss/3/8")
	b.pay(0, "anna", 1) // at offset 3, which was another event's
	b.hasBalance("anna", 9)
	b.isCommitted(0, 4)
	if got := w.records("duplicate"); got != 3 {
		t.Errorf("duplicates: got %v, want the 3 records that the log still holds", got)
	}
	b.lawful()
}

// One record, one restart: nothing comes again, nothing is left out.
func TestCommit_IsTheNextOffset(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.pay(0, "anna", 1)
	b.consumed(1)
	w := b.start()
	w.owns(1)
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 2)
	b.isCommitted(0, 2)
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates after a restart: got %v, want none", got)
	}
	b.hasIncidents(0)
}
