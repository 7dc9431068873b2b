package chaos_test

import (
	"testing"

	"hookledger/internal/e2e/chaos"
)

// A few plans on each target, in which between them most kinds of faults are. What they
// are for is in the package's page; `make chaos` runs as many as there is time for.
func TestRun_FewSeedsOnEachTarget(t *testing.T) {
	t.Parallel()
	for target, seeds := range map[string][]uint64{
		chaos.TargetKafka: {431, 182},
		chaos.TargetKfake: {1603, 388, 1426},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			stage := chaos.NewStage(t, target, "")
			for _, seed := range seeds {
				report, err := chaos.Run(t.Context(), chaos.Options{Stage: stage, Seed: seed, Log: t.Logf})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				t.Logf("seed %d: %d deliveries, %d acknowledged, %d payments, faults %v, after %s",
					seed, report.Deliveries, report.Acknowledged, report.Payments, report.Faults, report.Took)
				for _, v := range report.Violations {
					t.Errorf("seed %d violated %s\nplan: %s\nkept in %s", seed, v, &report.Plan, report.Dir)
				}
				if report.Acknowledged == 0 || len(report.Faults) == 0 {
					t.Errorf("seed %d: got %d acknowledged, faults %v: it proves nothing", seed, report.Acknowledged, report.Faults)
				}
			}
		})
	}
}
