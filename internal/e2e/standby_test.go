package e2e

import (
	"fmt"
	"testing"
	"time"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/standby"
)

// Postgres waits for a synchronous standby that is away. The worker gives up on its COMMIT
// and must not cancel it: a wait that is cancelled counts as committed, on one machine. So
// as long as no standby has it, no balance moves and no offset does; once one has, each
// event counts once.
func TestPostgres_StandbyAwayNoCommitIsCancelled(t *testing.T) {
	t.Parallel()
	pg := testkit.NewPostgres(t)
	s := newSystem(t, testkit.Kafka(t), options{database: pg.URL("postgres"), partitions: 2, sessionTimeout: 2 * time.Second})
	s.startIngest()
	w := s.startConsume()
	s.startSampler()
	first, second := workload(31, 40), workload(32, 40)
	s.startLoad(31, first, 1, 4, 0).wait()
	s.awaitDrained(wait)
	before := len(s.tables().Entries)
	if want := len(entriesOf(first)); before != want {
		t.Fatalf("got %d entries, want %d", before, want)
	}

	standby.Want(t, pg.URL("postgres"), "nowhere")
	s.startLoad(32, second, 1, 4, 0).wait()
	testkit.Eventually(t, wait, w.wantStatus("/readyz", 503))
	testkit.Eventually(t, 2*wait, func() error {
		if got := len(s.tables().Entries); got != before {
			t.Fatalf("%d entries can be seen that no standby has", got-before)
		}
		// The first is that it gave up on its COMMIT, the others are that this still holds its locks.
		if n := w.metric(t, "hookledger_consumer_retries_total", `class="timeout"`); n < 6 {
			return fmt.Errorf("the worker gave up %.0f times", n)
		}
		return nil
	})
	if err := s.drained(); err == nil {
		t.Error("offsets are committed of what no standby has")
	}
	w.mustStop(t) // waits for no COMMIT
	standby.Want(t, pg.URL("postgres"), "")
	s.startConsume()
	s.settle(verdict{})
}
