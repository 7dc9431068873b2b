package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// World is all that can be seen of a run from outside, after it has drained.
type World struct {
	History []Delivery
	// Tries are the payments that clients asked for, every attempt.
	Tries   []Try
	Records []Record
	Tables  Tables
	Group   Group

	// Before holds the tables before a replay of the whole topic; nil if there was none.
	Before *Tables
	// Samples were taken while it ran, in order.
	Samples []Sample
	// Texts is whatever the processes wrote: logs, metrics, answers, by name.
	Texts map[string]string

	// Secrets must be nowhere.
	Secrets []string
	// Incidents are the kinds that the run caused; any other is a violation.
	Incidents []string
	// CoordinatorMoved says that the group's coordinator was moved or ended. The next one
	// tells, for a moment, offsets older than those acknowledged: it answers by its own
	// high watermark, which lags behind that of the leader before (seen with Kafka 4.3.1).
	CoordinatorMoved bool
	// Forgot says that generations of the memory of events were emptied: what has no entry
	// of its own may be gone, and come again.
	Forgot bool
	// RequestLimit is the longest that a request may take. Zero: not judged.
	RequestLimit time.Duration
}

// Sample is what was committed at a moment of the run.
type Sample struct {
	// At is after Committed was read and before Progress was.
	At        time.Time
	Committed map[int32]int64
	// Progress is empty where Postgres could not be read.
	Progress map[int32]Progress
}

// Violation is a broken invariant.
type Violation struct {
	// Invariant is I1 to I15.
	Invariant string
	// What went wrong, in words.
	What string
	// Events names the events concerned, in order; not all of them if More > 0.
	Events []string
	More   int
}

// String is one line.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Invariant, v.What)
	if len(v.Events) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(v.Events, ", "))
	}
	if v.More > 0 {
		fmt.Fprintf(&b, " and %d more", v.More)
	}
	return b.String()
}

// Check judges the world. It returns nothing if every invariant holds, otherwise
// each violation, by number of the invariant.
func Check(w World) []Violation {
	j := newJudge(w)
	for _, check := range []func(){
		j.nothingLost,     // I1
		j.nothingInvented, // I2
		j.appliedOnce,     // I3
		j.balances,        // I4
		j.bodies,          // I5
		j.rejects,         // I6
		j.offsetsNeverLead,
		j.replay,
		j.conservation,
		j.inTopicBeforeAnswer,
		j.liveness,
		j.secrets, // I13
		j.jumps,
		j.progress,
		j.states,   // S1
		j.payments, // P1 to P3
	} {
		check()
	}
	return j.found
}

// judge holds the world and what is looked up in it again and again.
type judge struct {
	World

	sent      map[Ref]*sent
	records   map[Ref][]*Record
	end       map[int32]int64
	start     map[int32]int64
	events    map[Ref]*Event
	entries   map[Ref][]*Entry
	held      map[Ref][]*Held
	conflicts map[Ref][]*Held
	// aside has the places of records in quarantine or conflict. A record that is no
	// event of ours may have no name there, or another.
	aside map[string]bool

	found []Violation
}

// sent is what the clients tell of one event.
type sent struct {
	first          *Delivery
	ok             bool
	unknown        bool
	bodies         map[string]bool
	answered       time.Time // the first ok answer
	contradictions bool      // one ID was sent with several meanings
}

// taken says that the event may have been taken.
func (s *sent) taken() bool { return s != nil && (s.ok || s.unknown) }

func newJudge(w World) *judge {
	j := &judge{
		World: w, sent: map[Ref]*sent{}, records: map[Ref][]*Record{},
		end: map[int32]int64{}, start: map[int32]int64{},
		events: map[Ref]*Event{}, entries: map[Ref][]*Entry{}, held: map[Ref][]*Held{}, conflicts: map[Ref][]*Held{}, aside: map[string]bool{},
	}
	for i := range w.History {
		j.learn(&w.History[i])
	}
	for i := range w.Records {
		r := &w.Records[i]
		j.records[r.Ref()] = append(j.records[r.Ref()], r)
		j.end[r.Partition] = max(j.end[r.Partition], r.Offset+1)
		if first, ok := j.start[r.Partition]; !ok || r.Offset < first {
			j.start[r.Partition] = r.Offset
		}
	}
	for i := range w.Tables.Events {
		e := &w.Tables.Events[i]
		j.events[e.Ref()] = e
	}
	for i := range w.Tables.Entries {
		// Those of payments are no event's, least of all one without a name.
		if e := &w.Tables.Entries[i]; e.EventID != "" {
			j.entries[e.Ref()] = append(j.entries[e.Ref()], e)
		}
	}
	for i := range w.Tables.Quarantined {
		h := &w.Tables.Quarantined[i]
		j.held[h.Ref()] = append(j.held[h.Ref()], h)
		j.aside[at(h.Partition, h.Offset)] = true
	}
	for i := range w.Tables.Conflicts {
		h := &w.Tables.Conflicts[i]
		j.conflicts[h.Ref()] = append(j.conflicts[h.Ref()], h)
		j.aside[at(h.Partition, h.Offset)] = true
	}
	return j
}

func (j *judge) learn(d *Delivery) {
	s := j.sent[d.Ref()]
	if s == nil {
		s = &sent{first: d, bodies: map[string]bool{}}
		j.sent[d.Ref()] = s
	}
	if d.Account != s.first.Account || d.Amount != s.first.Amount || d.Currency != s.first.Currency || d.movement() != s.first.movement() {
		s.contradictions = true
	}
	switch d.Result {
	case OK:
		if !s.ok || d.T1.Before(s.answered) {
			s.answered = d.T1
		}
		s.ok = true
	case Unknown:
		s.unknown = true
	case Reject:
		return // its body was not taken
	}
	s.bodies[d.SHA256] = true
}

// sampleSize is how many event IDs a violation names.
const sampleSize = 20

// violated records a violation if any events are concerned.
func (j *judge) violated(invariant, what string, events []string) {
	if len(events) == 0 {
		return
	}
	slices.Sort(events)
	events = slices.Compact(events)
	j.found = append(j.found, Violation{
		Invariant: invariant, What: what,
		Events: events[:min(len(events), sampleSize)], More: max(0, len(events)-sampleSize),
	})
}

// violatedf records a violation that concerns no event by name.
func (j *judge) violatedf(invariant, format string, args ...any) {
	j.found = append(j.found, Violation{Invariant: invariant, What: fmt.Sprintf(format, args...)})
}

// refs lists what was sent, in order.
func (j *judge) refs() []Ref {
	return slices.SortedFunc(maps.Keys(j.sent), func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.ID, b.ID))
	})
}

// taken says that the event has to be on record: its answer was ok, or it is in
// the topic although its answer was never read.
func (j *judge) taken(ref Ref) bool {
	s := j.sent[ref]
	return s.taken() && (s.ok || len(j.records[ref]) > 0)
}

// mayBeForgotten says that the event left nothing that is never forgotten: it moves no
// money, or another event moved it.
func (j *judge) mayBeForgotten(ref Ref) bool {
	s := j.sent[ref]
	if !j.Forgot || !s.taken() || len(j.entries[ref]) > 0 {
		return false
	}
	if s.first.expect() != ExpectMoney {
		return s.first.expect() == ExpectNothing
	}
	for other, t := range j.sent {
		if len(j.entries[other]) > 0 && t.first.movement() == s.first.movement() {
			return true
		}
	}
	return false
}

func at(partition int32, offset int64) string { return fmt.Sprintf("%d@%d", partition, offset) }
