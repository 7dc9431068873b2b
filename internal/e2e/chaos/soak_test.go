package chaos_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"hookledger/internal/e2e/chaos"
)

// The environment of `make chaos`.
const (
	envTarget  = "CHAOS_TARGET"
	envSeed    = "CHAOS_SEED"
	envSeeds   = "CHAOS_SEEDS"
	envMinutes = "CHAOS_MINUTES"
	envPlan    = "CHAOS_PLAN"
	envBinary  = "CHAOS_BINARY" // built with -tags chaos; empty: a fresh one
	envVerbose = "CHAOS_VERBOSE"
)

// number reads a number of the environment.
func number(t *testing.T, env string, otherwise int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q: set a number", env, text)
	}
	return n
}

// TestSoak is `make chaos`; among the other tests it does nothing.
func TestSoak(t *testing.T) {
	target := os.Getenv(envTarget)
	if target == "" {
		return
	}
	stage := chaos.NewStage(t, target, os.Getenv(envBinary))
	if path := os.Getenv(envPlan); path != "" {
		plan := keptPlan(t, path)
		for range max(number(t, envSeeds, 1), 1) {
			report, err := chaos.Run(t.Context(), chaos.Options{Stage: stage, Plan: &plan, Log: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range report.Violations {
				t.Errorf("seed %d violated %s; see %s", report.Seed, v, report.Dir)
			}
		}
		return
	}
	summary, err := chaos.Soak(t.Context(), chaos.SoakOptions{
		Stage: stage, First: uint64(number(t, envSeed, 1)), Seeds: number(t, envSeeds, 0),
		For: time.Duration(number(t, envMinutes, 0)) * time.Minute, Out: os.Stdout, Tries: 3, Verbose: os.Getenv(envVerbose) != "",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Failed) > 0 {
		t.Errorf("%d of %d seeds violated an invariant", len(summary.Failed), summary.Runs)
	}
}
