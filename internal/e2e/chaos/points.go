package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// reached is about how often a process is at each crash point in a plan's load: the n-th
// time is drawn from that. A test compares the names with the source.
var reached = map[string]int{
	"ingest.read": 200, "ingest.verified": 190, "ingest.produce": 180, "ingest.produced": 180,
	"ingest.acknowledged": 180, "ingest.answered": 180,

	"consumer.assign": 2, "consumer.positioned": 2, "consumer.revoked": 2,
	"consumer.taken": 60, "consumer.applied": 60,
	"consumer.commit": 12, "consumer.committed": 12, "consumer.acknowledged": 12,

	"ledger.begin": 60, "ledger.looked": 60, "ledger.locked": 60, "ledger.written": 60,
	"ledger.sent": 180, "ledger.commit": 60, "ledger.committed": 60,

	"payments.claim": 80, "payments.claimed": 40, "payments.sent": 120, "payments.worked": 40, "payments.answered": 60,
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
