//go:build !gameday

package gameday

import (
	"testing"

	"hookledger/internal/testkit"
)

// Two of the incidents, so that pages, alerts and commands stay together; `make gameday`
// plays all eight.
func TestGameDay_TwoIncidents(t *testing.T) {
	t.Parallel()
	s := newStack(t, testkit.Kafka(t), nil)
	for i, one := range []incident{workerDead, otherAmount} {
		s.play(t, i+1, one)
	}
}

// The others are played by `make gameday` alone.
var _ = []incident{wrongReset, restoredBackup, mappingBug, truncatedTopic, brokerLost, duplicateSurge}
