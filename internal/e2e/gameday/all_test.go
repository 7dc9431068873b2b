//go:build gameday

package gameday

import (
	"testing"
	"time"

	"hookledger/internal/testkit"
)

func TestGameDay(t *testing.T) {
	began := time.Now()
	say("GAME DAY\nEight incidents, on Apache Kafka and Postgres as real processes. Minutes of the alert rules are seconds here.")
	s := newStack(t, testkit.Kafka1(t), testkit.NewPostgres(t))
	for i, one := range []incident{workerDead, wrongReset, restoredBackup, otherAmount, mappingBug, truncatedTopic, brokerLost, duplicateSurge} {
		s.play(t, i+1, one)
	}
	if t.Failed() {
		say("\nNOT ALL WENT AS THE RUNBOOK SAYS, after %s", time.Since(began).Round(time.Second))
	} else {
		say("\nall eight were seen, mended by the runbook and proved right, in %s", time.Since(began).Round(time.Second))
	}
}
