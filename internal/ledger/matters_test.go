package ledger_test

import (
	"testing"

	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
)

func TestOpenMatters_CountsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	pool := testkit.LedgerDB(t)
	l := ledger.New(pool, nil, ledger.Options{})
	want := func(want ledger.Matters) {
		t.Helper()
		got, err := l.OpenMatters(t.Context())
		if err != nil || got != want {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
	want(ledger.Matters{})
	for _, sql := range []string{
		`insert into incidents (raised_at, severity, kind, acknowledged_at, acknowledged_by) values
			(now(), 'info', 'rewind', null, null), (now(), 'warning', 'a', null, null), (now(), 'warning', 'a', null, null),
			(now(), 'loss', 'b', null, null), (now(), 'loss', 'b', now(), 'me')`,
		`insert into quarantined_events (topic_id, partition, "offset", topic, reason, detail, quarantined_at, record_time, headers, body, resolved_at, resolution)
			select gen_random_uuid(), 0, n, 't', 'bad_body', '', now(), now(), '{}', '', case n when 1 then now() end, case n when 1 then 'discarded' end from generate_series(1, 4) n`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	want(ledger.Matters{Quarantined: 3, Warnings: 2, Losses: 1})
}
