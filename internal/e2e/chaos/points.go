package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// reached is about how often a process is at each crash point in the first half of a
// plan's load: the n-th time is drawn from that. A test compares the names with the source.
var reached = map[string]int{
	"ingest.read": 90, "ingest.verified": 90, "ingest.produce": 90, "ingest.produced": 90,
	"ingest.acknowledged": 90, "ingest.answered": 90,

	"consumer.assign": 2, "consumer.positioned": 2, "consumer.revoked": 2,
	"consumer.taken": 40, "consumer.applied": 40,
	"consumer.commit": 8, "consumer.committed": 8, "consumer.acknowledged": 8,

	"ledger.begin": 40, "ledger.looked": 40, "ledger.locked": 40, "ledger.written": 40,
	"ledger.sent": 100, "ledger.commit": 40, "ledger.committed": 40,

	"payments.claim": 40, "payments.claimed": 20, "payments.sent": 60, "payments.worked": 20, "payments.answered": 30,
}

// points are the names of the crash points, in order.
func points() []string { return slices.Sorted(maps.Keys(reached)) }

func pointsReached(point string) int { return reached[point] }

// roleOf is a process that comes to the point.
func roleOf(rnd *rand.Rand, point string) string {
	pkg, _, _ := strings.Cut(point, ".")
	switch pkg {
	case "ingest":
		return pick(rnd, ingestRoles)
	case "payments":
		return rolePayments
	}
	return pick(rnd, workerRoles)
}
