package consumer

import (
	"fmt"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// Two workers rotate and forget many times around the ring while they apply, and every
// event counts once, also when the whole topic is read again afterwards.
func TestTend_RotatesAndForgetsUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	hurry := func(d *Deps) { d.Memory = Memory{Rotate: 150 * time.Millisecond, Keep: 300 * time.Millisecond} }
	one, two := b.start(hurry), b.start(hurry)
	one.ready()
	two.ready()
	events := 0
	testkit.Eventually(t, soon, func() error {
		b.pay(int32(events/50%2), "anna", 50)
		events += 50
		if n := query1[int64](t, b.pool, `select forgotten_count from event_ring`); n < 20 {
			return fmt.Errorf("%d generations were forgotten, want 20", n)
		}
		return nil
	})
	b.hasBalance("anna", int64(events))
	if n := one.metric("hookledger_consumer_memory_rotations_total") + two.metric("hookledger_consumer_memory_rotations_total"); n < 20 {
		t.Errorf("rotations: got %v, want 20 or more", n)
	}
	if n := one.metric("hookledger_consumer_memory_forgotten_generations_total") + two.metric("hookledger_consumer_memory_forgotten_generations_total"); n < 20 {
		t.Errorf("forgotten generations: got %v, want 20 or more", n)
	}
	if n := one.metric("hookledger_consumer_memory_generations"); n < 1 || n > 8 {
		t.Errorf("generations in use: got %v", n)
	}
	one.halt()
	two.halt()
	// A new worker reads everything again; hardly anything of it is remembered.
	b.exec(`update consumer_progress set next_offset = 0, from_offset = 0`)
	again := b.start(hurry)
	testkit.Eventually(t, soon, func() error {
		if n := query1[int64](t, b.pool, `select sum(next_offset)::bigint from consumer_progress`); n != int64(events) {
			return fmt.Errorf("read again up to %d of %d", n, events)
		}
		return nil
	})
	again.halt()
	if got := b.balance("anna"); got != int64(events) {
		t.Errorf("balance: got %d, want %d", got, events)
	}
	b.lawful()
}

// metric is the value of a counter or a gauge of the worker; with a label, of that one.
func (w *worker) metric(name string, label ...string) float64 {
	w.b.tb.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.b.tb.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	w.b.tb.Fatalf("there is no metric %s", name)
	return 0
}

// A transaction that stays open keeps its generation from being forgotten, and nothing
// else: rotation and applying go on, the failure is counted, and it is made up for.
func TestTend_SlowTransactionIsWaitedOut(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select count(*) from processed_events`); err != nil {
		t.Fatal(err)
	}
	w := b.start(func(d *Deps) { d.Memory = Memory{Rotate: 200 * time.Millisecond, Keep: 400 * time.Millisecond} })
	b.pay(0, "anna", 3)
	testkit.Eventually(t, soon, func() error {
		if n := w.metric("hookledger_consumer_memory_failures_total", "forget"); n < 2 {
			return fmt.Errorf("%v failures to forget, want 2", n)
		}
		return nil
	})
	// The ring fills, and then waits.
	testkit.Eventually(t, soon, func() error {
		if n := w.metric("hookledger_consumer_memory_generations"); n != 8 {
			return fmt.Errorf("%v generations in use, want 8", n)
		}
		return nil
	})
	b.pay(0, "anna", 4)
	b.hasBalance("anna", 7)
	w.ready()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, func() error {
		if n := query1[int64](t, b.pool, `select forgotten_count from event_ring`); n < 5 {
			return fmt.Errorf("%d generations were forgotten, want 5", n)
		}
		return nil
	})
	b.lawful()
}
