package ledger

import "testing"

func TestApply_AppliesAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.apply(paid(t, "evt_1", "alice", 500), paid(t, "evt_2", "alice", -200), paid(t, "evt_3", "bob", 7))
	b.outcomes(c, map[Outcome]int64{Applied: 3})
	if got := b.balance("alice"); got != 300 {
		t.Errorf("balance: got %d, want 300", got)
	}
	if c.Next() != 3 || len(c.ReceivedAt()) != 3 {
		t.Errorf("got next %d and %d times, want 3 and 3", c.Next(), len(c.ReceivedAt()))
	}
	b.lawful()
}
