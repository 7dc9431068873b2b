//go:build mutants

package mutants

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookledger/internal/e2e/chaos"
)

// Environment of `make mutants`.
const (
	envSeeds  = "MUTANTS_SEEDS"  // how many seeds a mutant is given
	envOnly   = "MUTANTS_ONLY"   // names of mutants, by commas; empty: all
	envTarget = "MUTANTS_TARGET" // as in `make chaos`
	envTable  = "MUTANTS_TABLE"  // a file that the table is written to
)

// defaultSeeds is how many seeds a mutant is given.
const defaultSeeds = 20

// TestMutants_EachIsCaught is `make mutants`. The program as it is survives the seeds;
// each mutant is caught by one of them.
func TestMutants_EachIsCaught(t *testing.T) {
	seeds, target := defaultSeeds, chaos.TargetKfake
	if text := os.Getenv(envSeeds); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: set a number", envSeeds, text)
		}
		seeds = n
	}
	if text := os.Getenv(envTarget); text != "" {
		target = text
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(os.Getenv(envOnly), ",") {
		if name = strings.TrimSpace(name); name != "" {
			wanted[name] = true
		}
	}
	stage := chaos.NewStage(t, target, "")
	var table strings.Builder
	table.WriteString("| mutant | caught by | seed | seconds |\n| --- | --- | --- | --- |\n")
	most := uint64(0)
	for _, m := range Table {
		if len(wanted) > 0 && !wanted[m.Name] {
			continue
		}
		binary, err := m.Build(t.Context(), root(t), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		began, caught := time.Now(), false
		for seed := uint64(1); seed <= uint64(seeds) && !caught; seed++ {
			report, err := chaos.Run(t.Context(), chaos.Options{Stage: stage, Binary: binary, Seed: seed})
			if err != nil {
				t.Logf("%s: seed %d: %v", m.Name, seed, err) // the harness gave up: no verdict
				continue
			}
			if len(report.Violations) == 0 {
				t.Logf("%s: seed %d survived %.0f s", m.Name, seed, report.Took.Seconds())
				continue
			}
			caught, most = true, max(most, seed)
			v := report.Violations[0]
			row := fmt.Sprintf("| %s | %s: %s | %d | %.0f |\n", m.Name, v.Invariant, brief(v.Detail), seed, time.Since(began).Seconds())
			t.Log(strings.TrimSpace(row))
			table.WriteString(row)
			_ = os.RemoveAll(report.Dir)
		}
		if !caught {
			t.Errorf("%s (%s) was not caught by %d seeds", m.Name, m.Breaks, seeds)
		}
	}
	for seed := uint64(1); seed <= most; seed++ {
		report, err := chaos.Run(t.Context(), chaos.Options{Stage: stage, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range report.Violations {
			t.Errorf("no mutant, seed %d: violated %s; see %s", seed, v, report.Dir)
		}
	}
	fmt.Fprintf(&table, "| none | nothing, as it has to be | 1 to %d | |\n", most)
	t.Logf("\n%s", table.String())
	if path := os.Getenv(envTable); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// brief is the first words of a violation, without what differs from run to run.
func brief(detail string) string {
	detail, _, _ = strings.Cut(strings.ReplaceAll(detail, "|", "/"), "\n")
	if words := strings.Fields(detail); len(words) > 14 {
		return strings.Join(words[:14], " ") + " …"
	}
	return detail
}
