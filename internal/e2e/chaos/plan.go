package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
)

// What a run is against.
const (
	// TargetKafka is three brokers of real Apache Kafka.
	TargetKafka = "kafka"
	// TargetKfake is the embedded Kafka of development, on disk, a process of its own.
	TargetKfake = "kfake"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults. On names the process, the broker or the link.
const (
	Kill      Kind = "kill"       // kill -9, and started again after For
	Freeze    Kind = "freeze"     // SIGSTOP for For
	Terminate Kind = "terminate"  // SIGTERM, and started again after For
	CrashKill Kind = "crash_kill" // kill -9 at a crash point
	CrashStop Kind = "crash_stop" // SIGSTOP at a crash point, for For

	BrokerKill      Kind = "broker_kill"
	BrokerFreeze    Kind = "broker_freeze"
	LeaderMove      Kind = "leader_move"
	CoordinatorMove Kind = "coordinator_move"

	Stall Kind = "stall" // nothing passes the link, connections stay
	Reset Kind = "reset" // every connection of the link is reset
	Cut   Kind = "cut"   // a request passes, its answer does not

	PostgresTerminate Kind = "pg_terminate" // pg_terminate_backend of every session
	PostgresRestart   Kind = "pg_restart"   // immediate stop, and started again
	PostgresReadOnly  Kind = "pg_read_only"
	PostgresFull      Kind = "pg_full" // writes fail with disk_full (53100)

	Join   Kind = "join"   // a third worker comes, and leaves after For
	Rewind Kind = "rewind" // the offsets of the stopped group are moved back
	Rotate Kind = "rotate" // the next generation of the memory of events
	Forget Kind = "forget" // the oldest closed generation is emptied
	Mirror Kind = "mirror" // workers stand still for For, and what comes then is in two partitions
	Zombie Kind = "zombie" // a worker with records in hand is frozen, and wakes up when another has its partitions
	Clock  Kind = "clock"  // deliveries signed ahead of the clock, or behind
	Replay Kind = "replay" // after all: the whole topic again
)

// Links between parts, where TCP is hurt.
const (
	linkClientIngest     = "client-ingest"
	linkIngestKafka      = "ingest-kafka"
	linkWorkerKafka      = "worker-kafka"
	linkWorkerPostgres   = "worker-postgres"
	linkPaymentsPostgres = "payments-postgres"
)

var links = []string{linkClientIngest, linkIngestKafka, linkWorkerKafka, linkWorkerPostgres, linkPaymentsPostgres}

// The processes of a run.
var (
	ingestRoles = []string{"ingest-1", "ingest-2"}
	workerRoles = []string{"worker-1", "worker-2"}
	allRoles    = slices.Concat(ingestRoles, workerRoles, []string{rolePayments})
)

const (
	rolePayments = "payments"
	roleExtra    = "worker-3" // of Join
)

// Step is one fault of a plan.
type Step struct {
	// At is the acknowledgement before which it does not come. If the load comes to a
	// stand it comes all the same.
	At   int    `json:"at"`
	Kind Kind   `json:"kind"`
	On   string `json:"on,omitempty"`
	// For is how long it lasts, in milliseconds.
	For int `json:"for_ms,omitempty"`
	// Point and Nth are of crashes: the n-th time that the process is at the point.
	Point string `json:"point,omitempty"`
	Nth   int    `json:"nth,omitempty"`
	// Arg chooses among what is only known when it comes, such as a partition.
	Arg int `json:"arg,omitempty"`
}

// Plan is everything that a seed decides, made before the run.
type Plan struct {
	Seed   uint64 `json:"seed"`
	Target string `json:"target"`
	// Static gives workers an identity that outlives them (consume.instance_id).
	Static bool `json:"static"`
	// Deliveries is how many the clients make, at PerSecond together.
	Deliveries int `json:"deliveries"`
	PerSecond  int `json:"per_second"`
	// Crashes are in the order in which the lives of a process take them; the other
	// faults are by At.
	Crashes []Step `json:"crashes,omitempty"`
	Steps   []Step `json:"steps,omitempty"`
}

// String is the plan as JSON.
func (p *Plan) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and words cannot fail
	}
	return string(text)
}

// ParsePlan reads what String wrote.
func ParsePlan(text []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read plan: %w", err)
	}
	return p, nil
}

// Streams of random numbers of one seed, so that changing one does not shift another.
const (
	streamPlan = iota + 1
	streamEvents
	streamOrder
	streamPayments
	streamZombies
)

func stream(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

// sessionTimeout is consume.session_timeout, in milliseconds.
const sessionTimeout = 3000

// Size of the load of a plan: about three seconds.
const (
	defaultDeliveries = 360
	defaultPerSecond  = 150
)

// zombieEvery is how many seeds have one zombie: it takes two session timeouts.
const zombieEvery = 6

// family is a kind of fault in plans: how often, and what it needs.
type family struct {
	kind   Kind
	weight int
	// kafkaOnly: of no meaning for a single broker.
	kafkaOnly bool
}

// families weighs what plans are made of. What takes seconds to mend comes less often.
var families = []family{
	{Kill, 10, false}, {Freeze, 5, false}, {Terminate, 6, false}, {CrashKill, 16, false}, {CrashStop, 4, false},
	{BrokerKill, 4, false}, {BrokerFreeze, 3, false}, {LeaderMove, 6, true}, {CoordinatorMove, 6, true},
	{Stall, 8, false}, {Reset, 8, false}, {Cut, 14, false},
	{PostgresTerminate, 6, false}, {PostgresRestart, 4, false}, {PostgresReadOnly, 4, false}, {PostgresFull, 4, false},
	{Join, 5, false}, {Rewind, 4, false}, {Rotate, 6, false}, {Forget, 4, false}, {Mirror, 6, false}, {Clock, 4, false}, {Replay, 4, false},
	{Zombie, 0, false}, // has a stream of its own
}

// Kinds are all kinds of faults, in the order of the table.
func Kinds() []Kind {
	var all []Kind
	for _, f := range families {
		all = append(all, f.kind)
	}
	return all
}

// NewPlan makes the plan of a seed: a pure function. Each plan is of a few kinds of
// faults, a random subset, so that kinds meet in every combination over many seeds.
func NewPlan(seed uint64, target string) Plan {
	rnd := stream(seed, streamPlan)
	p := Plan{Seed: seed, Target: target, Static: rnd.IntN(2) == 0, Deliveries: defaultDeliveries, PerSecond: defaultPerSecond}
	var enabled []family
	for len(enabled) < 2 {
		enabled = enabled[:0]
		for _, f := range families {
			if f.weight > 0 && (target == TargetKafka || !f.kafkaOnly) && rnd.IntN(100) < 35 {
				enabled = append(enabled, f)
			}
		}
	}
	faults := 3 + rnd.IntN(4)
	if rnd.IntN(8) == 0 {
		faults = 10 // a storm
	}
	kinds := []Kind{CrashKill, CrashKill}[:rnd.IntN(3)] // cheap, and there are many points
	for range faults {
		kinds = append(kinds, draw(rnd, enabled))
	}
	for _, kind := range kinds {
		s := newStep(rnd, kind)
		if target == TargetKfake && s.Kind == BrokerKill {
			s.Arg = 0
		}
		if s.Point != "" {
			p.Crashes = append(p.Crashes, s)
		} else {
			p.Steps = append(p.Steps, s)
		}
	}
	if z := stream(seed, streamZombies); seed%zombieEvery == 0 {
		p.Steps = append(p.Steps, Step{Kind: Zombie, On: pick(z, workerRoles), At: 1 + z.IntN(defaultDeliveries/2), For: 2 * sessionTimeout})
	}
	p.Steps = once(p.Steps, Rewind, Replay, Join, Clock)
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return p
}

func draw(rnd *rand.Rand, from []family) Kind {
	total := 0
	for _, f := range from {
		total += f.weight
	}
	n := rnd.IntN(total)
	for _, f := range from {
		if n -= f.weight; n < 0 {
			return f.kind
		}
	}
	panic("unreachable")
}

// newStep draws what a fault of the kind needs.
func newStep(rnd *rand.Rand, kind Kind) Step {
	s := Step{Kind: kind, At: 1 + rnd.IntN(defaultDeliveries*9/10), Arg: rnd.IntN(1 << 16)}
	switch kind {
	case Kill, Terminate:
		s.On, s.For = pick(rnd, allRoles), 50+rnd.IntN(900)
	case Freeze:
		s.On = pick(rnd, allRoles)
		s.For = pick(rnd, []int{400, sessionTimeout * 2 / 3, sessionTimeout * 6 / 5})
	case CrashKill, CrashStop:
		s.At = 0
		s.Point = pick(rnd, points())
		s.On = roleOf(rnd, s.Point)
		s.Nth = 1 + rnd.IntN(pointsReached(s.Point))
		s.For = 50 + rnd.IntN(300)
		if kind == CrashStop {
			s.For = pick(rnd, []int{300, sessionTimeout * 6 / 5})
		}
	case BrokerKill, BrokerFreeze:
		s.On, s.For = fmt.Sprintf("broker-%d", 1+s.Arg%3), 300+rnd.IntN(2500)
	case Stall:
		s.On = pick(rnd, links)
		s.For = pick(rnd, []int{200, 800, 2500})
	case Reset:
		s.On, s.For = pick(rnd, links), pick(rnd, []int{1, 300, 1200})
	case Cut:
		s.On = pick(rnd, links)
	case PostgresRestart, PostgresReadOnly, PostgresFull:
		s.For = 100 + rnd.IntN(1200)
	case Mirror:
		s.For = 600 + rnd.IntN(1000)
	case Join:
		s.For = 300 + rnd.IntN(2000)
	}
	return s
}

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }

// once keeps the first of each of these kinds.
func once(steps []Step, kinds ...Kind) []Step {
	seen := map[Kind]bool{}
	return slices.DeleteFunc(steps, func(s Step) bool {
		again := seen[s.Kind]
		seen[s.Kind] = true
		return again && slices.Contains(kinds, s.Kind)
	})
}

// has tells whether the plan has a fault of the kind.
func (p *Plan) has(kind Kind) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == kind })
}

// Shrink returns a smallest plan that still fails, by fails' word: no fault of it can be
// left out. fails should run the plan a few times, since a plan fails only sometimes; it
// is not asked about the whole plan, which is known to fail.
func Shrink(p Plan, fails func(Plan) bool) Plan {
	faults := append(slices.Clone(p.Crashes), p.Steps...)
	with := func(kept []Step) Plan {
		q := p
		q.Crashes, q.Steps = nil, nil
		for _, s := range kept {
			if s.Point != "" {
				q.Crashes = append(q.Crashes, s)
			} else {
				q.Steps = append(q.Steps, s)
			}
		}
		return q
	}
	// Delta debugging: leave out halves, then quarters, down to single faults.
	for parts := 2; len(faults) > 0; {
		size := (len(faults) + parts - 1) / parts
		smaller := false
		for at := 0; at < len(faults); at += size {
			rest := slices.Concat(faults[:at], faults[min(at+size, len(faults)):])
			if fails(with(rest)) {
				faults, smaller = rest, true
				break
			}
		}
		switch {
		case smaller:
			parts = max(parts-1, 2)
		case size == 1:
			return with(faults)
		default:
			parts = min(2*parts, len(faults))
		}
	}
	return with(faults)
}
