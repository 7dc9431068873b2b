package chaos

import (
	"slices"
	"testing"
)

// A plan of many faults fails when two of them meet; nothing else is left of it.
func TestShrink_FindsTheFaultsThatMatter(t *testing.T) {
	t.Parallel()
	plan := NewPlan(3, TargetKafka)
	plan.Steps, plan.Crashes = nil, nil
	for i := range 12 {
		plan.Steps = append(plan.Steps, Step{At: i, Kind: Kill, On: "worker-1"})
	}
	plan.Steps[9].Kind = Rotate
	plan.Crashes = []Step{{Kind: CrashKill, Point: "ledger.sent", Nth: 1}, {Kind: CrashKill, Point: "ledger.commit", Nth: 2}}
	runs := 0
	small := Shrink(plan, func(p Plan) bool {
		runs++
		return p.has(Rotate) && slices.ContainsFunc(p.Crashes, func(s Step) bool { return s.Point == "ledger.commit" })
	})
	if len(small.Steps) != 1 || small.Steps[0].Kind != Rotate || len(small.Crashes) != 1 || small.Crashes[0].Point != "ledger.commit" {
		t.Errorf("got %s, want the rotation and the crash at ledger.commit", &small)
	}
	if small.Seed != plan.Seed || small.Deliveries != plan.Deliveries {
		t.Errorf("got %s, want the load of %s", &small, &plan)
	}
	if runs > 60 {
		t.Errorf("got %d runs for 14 faults, want at most 60", runs)
	}
}

func TestShrink_OfAPlanThatFailsByItselfLeavesNoFault(t *testing.T) {
	t.Parallel()
	small := Shrink(NewPlan(4, TargetKafka), func(Plan) bool { return true })
	if len(small.Steps)+len(small.Crashes) != 0 {
		t.Errorf("got %s, want no fault", &small)
	}
}

func TestShrink_LeavesAloneWhatFailsOnlyWhole(t *testing.T) {
	t.Parallel()
	plan := NewPlan(5, TargetKafka)
	small := Shrink(plan, func(Plan) bool { return false })
	if len(small.Steps) != len(plan.Steps) || len(small.Crashes) != len(plan.Crashes) {
		t.Errorf("got %s, want %s", &small, &plan)
	}
}

// Kafka's own hash, as `java.lang.String.hashCode` gives it, checked by hand: "hello" is
// 99162322, and "polygenelubricants" the smallest number there is.
func TestCoordinatorOf_IsJavasHash(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]int32{"hello": 99162322 % offsetsPartitions, "polygenelubricants": 0} {
		if got := coordinatorOf(group); got != want {
			t.Errorf("group %s: got partition %d, want %d", group, got, want)
		}
	}
}
