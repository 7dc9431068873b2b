package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"hookledger/internal/e2e/checker"
	"hookledger/internal/testkit"
)

// Postgres dies under load, comes back, and then freezes with its connections open:
// webhooks are accepted as before, the workers say that they wait for it, and apply
// everything once it is back.
func TestPostgres_AwayWebhooksAreAcceptedAndAppliedLater(t *testing.T) {
	t.Parallel()
	pg := testkit.NewPostgres(t)
	s := newSystem(t, testkit.Kafka(t), options{database: pg.URL("postgres")})
	s.startIngest()
	s.startConsume()
	s.startConsume()
	s.startSampler()
	l := s.startLoad(7, workload(7, 6000), 1, 12, 60)
	l.at(100)

	for _, fault := range []struct {
		name      string
		away, due func()
	}{
		{"killed", pg.Kill, pg.Start},
		{"frozen", pg.Pause, pg.Resume},
	} {
		fault.away()
		away := time.Now()
		for _, r := range s.consume {
			testkit.Eventually(t, wait, r.wantStatus("/readyz", 503))
			if err := r.wantStatus("/livez", 200)(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("Postgres %s: both workers not ready after %s", fault.name, time.Since(away).Round(time.Millisecond))
		l.at(int(l.acks.Load()) + 150)
		if err := s.ingest[0].wantStatus("/readyz", 200)(); err != nil {
			t.Error(err)
		}
		if got := s.history.since(away); got[checker.Unknown]+got[checker.Reject] != 0 {
			t.Errorf("answers while Postgres was %s: got %v, want ok alone", fault.name, got)
		}
		fault.due()
		back := time.Now()
		for _, r := range s.consume {
			testkit.Eventually(t, wait, r.wantStatus("/readyz", 200))
		}
		t.Logf("Postgres was %s for %s; both workers ready %s after its return", fault.name, back.Sub(away).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	}
	l.finish()
	s.settle(verdict{})
}

// Postgres is restored from an older copy of its files, behind the back of workers that
// keep running: what it forgot comes again from the topic, and an incident says so.
func TestPostgres_RestoredFromAnOlderCopyHealsFromTheTopic(t *testing.T) {
	t.Parallel()
	pg := testkit.NewPostgres(t)
	s := newSystem(t, testkit.Kafka(t), options{database: pg.URL("postgres"), partitions: 3})
	s.startIngest()
	s.startConsume()
	s.startSampler()
	folder := dataFolder(t, pg)

	first, second := workload(8, 150), workload(9, 150)
	s.startLoad(8, first, 1, 8, 0).wait()
	s.awaitDrained(wait)
	pg.Stop()
	shell(t, "cp", "-a", folder, folder+".copy")
	pg.Start()
	s.startLoad(9, second, 1, 8, 0).wait()
	s.awaitDrained(wait)
	// Until it has healed, Postgres knows less than Kafka was told: that is the fault.
	s.sampler.end()
	pg.Stop()
	shell(t, "rm", "-rf", folder)
	shell(t, "mv", folder+".copy", folder)
	pg.Start()
	restored := time.Now()

	want := len(entriesOf(first)) + len(entriesOf(second))
	testkit.Eventually(t, wait, func() error {
		if got := len(s.tables().Entries); got != want {
			return fmt.Errorf("%d entries, want %d", got, want)
		}
		return nil
	})
	s.startSampler()
	t.Logf("all entries are back %s after the restored Postgres accepts connections", time.Since(restored).Round(time.Millisecond))
	w := s.settle(verdict{incidents: []string{"progress_behind"}})
	if len(w.Tables.Incidents) == 0 {
		t.Error("got no incident, want progress_behind")
	}
}

// entriesOf lists the events that have to have an entry.
func entriesOf(events []event) []event {
	var all []event
	for _, e := range events {
		if e.amount != 0 {
			all = append(all, e)
		}
	}
	return all
}

// dataFolder asks the server where its files are.
func dataFolder(t *testing.T, pg *testkit.PostgresCluster) string {
	t.Helper()
	var dir string
	if err := pg.Pool("postgres").QueryRow(t.Context(), `show data_directory`).Scan(&dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
