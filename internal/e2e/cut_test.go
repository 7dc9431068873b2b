package e2e

import (
	"net/url"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// commitMessage is COMMIT on the wire: a statement, and the zero that ends it.
const commitMessage = "commit\x00"

// The connection to Postgres is cut right after COMMIT went through, again and again,
// so that the worker never hears what became of its batch. It applies the batch once
// more, and finds that it stands.
func TestConsume_UnknownCommitsMoveNoMoneyTwice(t *testing.T) {
	t.Parallel()
	direct, err := url.Parse(testkit.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := testkit.NewProxy(t, direct.Host)
	through := *direct
	through.Host = proxy.Addr()

	s := newSystem(t, testkit.Kafka(t), options{database: direct.String()})
	s.startIngest()
	s.startSampler()
	s.startConsume("HOOKLEDGER_DATABASE_URL=" + through.String())
	l := s.startLoad(14, workload(14, 6000), 2, 16, 100)
	const cuts = 10
	for range cuts {
		select {
		case <-proxy.CutAfterForwardOf(commitMessage):
		case <-time.After(wait):
			t.Fatalf("no transaction for %s", wait)
		}
	}
	l.finish()
	w := s.settle(verdict{})
	if got := s.consume[0].metric(t, "hookledger_consumer_retries_total"); int(got) < cuts {
		t.Errorf("retries in the metrics: got %.0f, want at least one for each of %d cuts", got, cuts)
	}
	t.Logf("%d connections were cut behind their COMMIT, %d entries", cuts, len(w.Tables.Entries))
}
