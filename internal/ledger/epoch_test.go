package ledger

import "testing"

// A batch that comes again after a crash ends below the row. Its leader epoch beside
// the row's offset would make the next assignment report a cut log.
func TestApply_RowAheadKeepsItsLeaderEpoch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.batch(0, paid(t, "evt_1", "anna", 1), paid(t, "evt_2", "anna", 1))
	first.Records[0].LeaderEpoch, first.Records[1].LeaderEpoch = 3, 5
	b.applyBatch(first)
	again := first
	again.Records = first.Records[:1]
	b.applyBatch(again)
	if got := query1[int32](t, b.pool, `select leader_epoch from consumer_progress`); got != 5 {
		t.Errorf("leader epoch: got %d, want that of the record before next_offset, 5", got)
	}
}
