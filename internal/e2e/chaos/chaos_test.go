package chaos_test

import (
	"os"
	"path/filepath"
	"testing"

	"hookledger/internal/e2e/chaos"
)

// A few plans on each target, kept as files, in which between them every kind of fault
// is. `make chaos` runs as many seeds as there is time for.
func TestRun_KeptPlans(t *testing.T) {
	t.Parallel()
	for _, target := range []string{chaos.TargetKafka, chaos.TargetKfake} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join("testdata", target+"-*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("list plans: got %v (%v), want some", files, err)
			}
			stage := chaos.NewStage(t, target, "")
			for _, path := range files {
				plan := keptPlan(t, path)
				report, err := chaos.Run(t.Context(), chaos.Options{Stage: stage, Plan: &plan, Log: t.Logf})
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				t.Logf("%s: %d deliveries, %d acknowledged, %d payments, faults %v, after %s",
					path, report.Deliveries, report.Acknowledged, report.Payments, report.Faults, report.Took)
				for _, v := range report.Violations {
					t.Errorf("%s violated %s\nkept in %s", path, v, report.Dir)
				}
				if report.Acknowledged == 0 || len(report.Faults) == 0 {
					t.Errorf("%s: got %d acknowledged, faults %v: it proves nothing", path, report.Acknowledged, report.Faults)
				}
			}
		})
	}
}

func keptPlan(t *testing.T, path string) chaos.Plan {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := chaos.ParsePlan(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return plan
}

// The kept plans leave out no kind of fault.
func TestKeptPlans_HaveEveryKind(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[chaos.Kind]bool{}
	for _, path := range files {
		plan := keptPlan(t, path)
		for _, s := range append(plan.Steps, plan.Crashes...) {
			kept[s.Kind] = true
		}
	}
	for _, kind := range chaos.Kinds() {
		if !kept[kind] {
			t.Errorf("no kept plan has %s", kind)
		}
	}
}
