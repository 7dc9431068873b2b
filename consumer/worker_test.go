package consumer

import (
	"testing"
)

func TestWorker_AppliesAndCommitsTheNextOffset(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	w := b.start()
	w.ready()
	b.pay(0, "anna", 3)
	b.pay(1, "anna", 4)
	b.hasBalance("anna", 7)
	b.isCommitted(0, 3)
	b.isCommitted(1, 4)
	w.halt()
	if w.err != nil {
		t.Errorf("Run: got %v, want nil after a graceful stop", w.err)
	}
	b.groupIsEmpty()
	if got := w.records("applied"); got != 7 {
		t.Errorf("applied: got %v, want 7", got)
	}
	if got := w.records("duplicate"); got != 0 {
		t.Errorf("duplicates: got %v, want 0", got)
	}
	b.hasIncidents(0)
	b.lawful()
}
