package e2e

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// A receiver is killed twice under load. Clients repeat what they have no answer to;
// what was answered 2xx is there, and nothing counts twice.
func TestIngest_KilledUnderLoadLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{})
	s.startIngest()
	s.startIngest()
	s.startConsume()
	s.startSampler()
	l := s.startLoad(2, workload(2, 400), 2, 24, 250)
	for i, at := range []int{200, 450} {
		l.at(at)
		s.ingest[i].Kill()
		s.ingest[i].Restart()
	}
	l.wait()
	s.settle(verdict{})
}

// The product's own client keeps a history that the outside checker accepts, through a
// kill -9 of the receiver and of the worker.
func TestSend_HistoryHoldsAgainstTheChecker(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{})
	s.startIngest()
	s.startConsume()
	s.startSampler()
	path := filepath.Join(s.dir, "sent.jsonl")
	for _, source := range []string{sourceStripe, sourceAcme} {
		send := testkit.StartHookledger(t, testkit.ProcessOptions{
			Env: s.env(), Dir: s.dir,
			Args: []string{"--config", s.config, "send", "--source", source, "--count", "300", "--duplicates", "0.3", "--debits", "0.4", "--accounts", "5",
				"--concurrency", "8", "--rate", "150", "--seed", "10", "--url", s.ingest[0].public, "--history", path},
		})
		s.awaitLines(path, 60)
		s.ingest[0].Kill()
		s.consume[0].Kill()
		s.ingest[0].Restart()
		s.consume[0].Restart()
		if code := send.Wait(wait); code != 0 {
			t.Errorf("send --source %s: got exit code %d, want 0", source, code)
		}
	}
	s.history.read(t, path)
	w := s.settle(verdict{noDeadline: true})
	if got := len(w.Tables.Entries); got != 600 {
		t.Errorf("got %d entries, want 600", got)
	}
}

// The same events stand in two partitions, in opposite orders, and two workers take
// them at the same time.
func TestConsume_SameEventsFromTwoPartitionsByTwoWorkers(t *testing.T) {
	t.Parallel()
	// Longer than the workers stand still below.
	s := newSystem(t, testkit.Kafka(t), options{partitions: 2, sessionTimeout: 20 * time.Second})
	s.startIngest()
	// Small batches, so that their transactions meet again and again.
	s.startConsume("HOOKLEDGER_CONSUME_BATCH_MAX_RECORDS=10")
	s.startConsume("HOOKLEDGER_CONSUME_BATCH_MAX_RECORDS=10")
	s.startSampler()
	testkit.Eventually(t, wait, s.partitionsShared)
	events := workload(3, 300)
	s.signalConsume(syscall.SIGSTOP)
	s.startLoad(3, events, 1, 16, 0).wait()
	copies := s.copyToOtherPartition()
	s.signalConsume(syscall.SIGCONT)
	w := s.settle(verdict{})
	oneEntryEach(t, events, w.Tables)
	var duplicates float64
	for _, r := range s.consume {
		did := r.metric(t, "hookledger_consumer_records_total", `outcome="duplicate"`)
		applied := r.metric(t, "hookledger_consumer_records_total", `outcome="applied"`)
		t.Logf("%s: %.0f duplicates, %.0f applied", r.name, did, applied)
		if did+applied == 0 {
			t.Errorf("%s did nothing: the test needs two workers", r.name)
		}
		duplicates += did
	}
	if int(duplicates) != copies {
		t.Errorf("got %.0f duplicates in the metrics, want %d", duplicates, copies)
	}
}

// A worker stands still for longer than the session timeout, in the middle of its work.
// Others take over; when it wakes up it may neither apply nor commit what is no longer
// its own.
func TestConsume_FrozenWorkerWakesUpWithoutHarm(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{sessionTimeout: 3 * time.Second})
	s.startIngest()
	s.startConsume()
	s.startConsume()
	s.startSampler()
	testkit.Eventually(t, wait, s.partitionsShared)
	l := s.startLoad(15, workload(15, 4000), 2, 16, 80)
	for i, at := range []int{100, 500} {
		l.at(at)
		frozen, other := s.consume[i], s.consume[1-i]
		frozen.Signal(syscall.SIGSTOP)
		testkit.Eventually(t, wait, func() error {
			if n := other.metric(t, "hookledger_consumer_assigned_partitions"); int(n) != s.opts.partitions {
				return fmt.Errorf("%s has %.0f of %d partitions", other.name, n, s.opts.partitions)
			}
			return nil
		})
		frozen.Signal(syscall.SIGCONT)
		testkit.Eventually(t, wait, s.partitionsShared)
	}
	l.finish()
	s.settle(verdict{})
}

// Both roles answer probes; both drain on SIGTERM under load with exit code 0, no 2xx
// is lost, the group is empty afterwards and committed to the end.
func TestRoles_ProbesAndGracefulStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.Kafka(t), options{})
	s.startIngest()
	s.startIngest()
	s.startConsume()
	s.startConsume()
	s.startSampler()
	for _, r := range append(append([]*role{}, s.ingest...), s.consume...) {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			if err := r.wantStatus(path, 200)(); err != nil {
				t.Error(err)
			}
		}
	}
	for path, want := range map[string]int{"/metrics": 404, "/readyz": 404, "/debug/pprof/": 404, "/": 404} {
		if got, err := statusOf(t, s.ingest[0].public+path); err != nil || got != want {
			t.Errorf("%s on the public listener: got %d %v, want %d", path, got, err, want)
		}
	}

	l := s.startLoad(4, workload(4, 500), 2, 24, 250)
	l.at(200)
	s.ingest[0].mustStop(t)
	s.ingest[0].Restart()
	l.at(400)
	s.consume[0].mustStop(t)
	s.consume[0].Restart()
	l.at(600)
	s.ingest[1].mustStop(t)
	s.ingest[1].Restart()
	l.wait()

	s.awaitDrained(wait)
	testkit.Eventually(t, wait, s.partitionsShared) // lag is told by who reads the partition
	s.wantMetrics()
	s.stopConsume()
	if state, members := s.groupState(); state != "Empty" || members != 0 {
		t.Errorf("group after both workers stopped: got %s with %d members, want Empty with none", state, members)
	}
	w := s.settle(verdict{})
	if w.Group.Members != 0 {
		t.Errorf("members by Kafka's own tool: got %d, want 0", w.Group.Members)
	}
	for _, r := range s.ingest {
		r.mustStop(t)
	}
}
