package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// onRecord says that the record has an outcome, and since when; a zero time says
// that the when is not known.
func (j *judge) onRecord(r *Record) (time.Time, bool) {
	ref := r.Ref()
	if e := j.events[ref]; e != nil {
		return e.ProcessedAt, true
	}
	if j.aside[at(r.Partition, r.Offset)] {
		return time.Time{}, true
	}
	if entries := j.entries[ref]; len(entries) > 0 {
		return entries[0].AppliedAt, true
	}
	// The same event was put into quarantine at another place.
	return time.Time{}, j.heldElsewhere(ref) || j.mayBeForgotten(ref)
}

// heldElsewhere says that another record of the event is in quarantine.
func (j *judge) heldElsewhere(ref Ref) bool { return ref.Source != "" && len(j.held[ref]) > 0 }

// offsetsNeverLead is I7: at the end, and at each sample. Samples before Postgres
// lost commits are no evidence: what was applied then was applied again later.
func (j *judge) offsetsNeverLead() {
	var end, early []string
	rolledBack := j.last("progress_behind", "database_new")
	for i := range j.Records {
		r := &j.Records[i]
		since, ok := j.onRecord(r)
		if j.mayBeForgotten(r.Ref()) {
			since = time.Time{} // its row may be of the second time
		}
		if !ok && r.Offset < j.Group.Committed[r.Partition] {
			end = append(end, r.Ref().String()+" at "+at(r.Partition, r.Offset))
		}
		for _, s := range j.Samples {
			if ok && r.Offset < s.Committed[r.Partition] && s.At.After(rolledBack) && since.After(s.At) {
				early = append(early, r.Ref().String()+" at "+at(r.Partition, r.Offset))
			}
		}
	}
	j.violated("I7", "below the committed offset and nowhere on record", end)
	j.violated("I7", "the offset was committed before the event was on record", early)
}

// conservation is I9: below the committed offset, each record is the first of its
// event, a repeat of it, in quarantine or in conflict; and no two events claim one
// record.
func (j *judge) conservation() {
	claims := map[string][]string{}
	for i := range j.Tables.Events {
		e := &j.Tables.Events[i]
		claims[at(e.Partition, e.Offset)] = append(claims[at(e.Partition, e.Offset)], e.Ref().String())
	}
	for i := range j.Tables.Quarantined {
		h := &j.Tables.Quarantined[i]
		if j.events[h.Ref()] == nil || !h.Resolved {
			claims[at(h.Partition, h.Offset)] = append(claims[at(h.Partition, h.Offset)], h.Ref().String()+" (quarantine)")
		}
	}
	var twice, beyond []string
	for place, by := range claims {
		if len(by) > 1 {
			twice = append(twice, place+" by "+strings.Join(by, " and "))
		}
	}
	for i := range j.Tables.Events {
		if e := &j.Tables.Events[i]; e.Offset >= j.Group.Committed[e.Partition] {
			beyond = append(beyond, e.Ref().String()+" at "+at(e.Partition, e.Offset))
		}
	}
	j.violated("I9", "one record is claimed by several outcomes", twice)
	j.violated("I9", "on record, and the committed offset is still below it", beyond)

	for _, p := range slices.Sorted(maps.Keys(j.end)) {
		var records, firsts, repeats, set int64
		for i := range j.Records {
			r := &j.Records[i]
			if r.Partition != p || r.Offset >= j.Group.Committed[p] {
				continue
			}
			records++
			event := j.events[r.Ref()]
			switch {
			case event != nil && event.Partition == p && event.Offset == r.Offset:
				firsts++
			case j.aside[at(p, r.Offset)]:
				set++
			case event != nil || len(j.entries[r.Ref()]) > 0 || j.heldElsewhere(r.Ref()) || j.mayBeForgotten(r.Ref()):
				repeats++
			}
		}
		if sum := firsts + repeats + set; sum != records {
			j.violatedf("I9", "partition %d: %d records are below the committed offset, but %d firsts + %d repeats + %d set aside = %d",
				p, records, firsts, repeats, set, sum)
		}
	}
}

// liveness is I11.
func (j *judge) liveness() {
	for _, p := range slices.Sorted(maps.Keys(j.end)) {
		if committed, ok := j.Group.Committed[p]; !ok {
			j.violatedf("I11", "partition %d has records up to %d and no committed offset", p, j.end[p])
		} else if committed != j.end[p] {
			j.violatedf("I11", "partition %d: committed offset is %d, the log ends at %d", p, committed, j.end[p])
		}
	}
	if j.RequestLimit == 0 {
		return
	}
	var slow []string
	for i := range j.History {
		d := &j.History[i]
		if took := d.T1.Sub(d.T0); took > j.RequestLimit {
			slow = append(slow, fmt.Sprintf("%s (delivery %d took %s)", d.Ref(), d.I, took.Round(time.Millisecond)))
		}
	}
	j.violated("I11", "a request took longer than "+j.RequestLimit.String(), slow)
}

// jumps is I14: a commit that moved back is an incident of its partition, unless no
// further back than a crash may go; and each incident was caused by the run.
func (j *judge) jumps() {
	progress := map[int32]Progress{} // as last seen: Postgres may be away when an offset moves
	for k := 1; k < len(j.Samples); k++ {
		before, after := j.Samples[k-1], j.Samples[k]
		maps.Copy(progress, before.Progress)
		for _, p := range slices.Sorted(maps.Keys(before.Committed)) {
			was, is := before.Committed[p], after.Committed[p]
			pos, known := progress[p]
			if is >= was || (known && is >= pos.From) {
				continue
			}
			if j.CoordinatorMoved && j.stale(k, p, was) {
				continue
			}
			if !j.raised(p, "rewind", "commit_missing", "progress_behind", "truncated", "expired", "topic_recreated") {
				j.violatedf("I14", "partition %d: the committed offset went from %d back to %d without an incident", p, was, is)
			}
		}
	}
	for _, i := range j.Tables.Incidents {
		if !slices.Contains(j.Incidents, i.Kind) {
			j.violatedf("I14", "incident %d (%s, %s) of partition %d has no cause in this run", i.ID, i.Kind, i.Severity, i.Partition)
		}
	}
}

// stale says that sample k told an older offset than was acknowledged: a later sample has
// it again, and Postgres never stood below it.
func (j *judge) stale(k int, partition int32, was int64) bool {
	for _, s := range j.Samples[k:] {
		if p, known := s.Progress[partition]; known && p.Next < was {
			return false
		}
		if s.Committed[partition] >= was {
			return true
		}
	}
	return j.Group.Committed[partition] >= was
}

// progress is I15: Postgres knows at least what was committed to Kafka.
func (j *judge) progress() {
	final := map[int32]Progress{}
	for _, p := range j.Tables.Progress {
		if other, ok := final[p.Partition]; ok && other.Next > p.Next {
			continue
		}
		final[p.Partition] = p
	}
	for _, p := range slices.Sorted(maps.Keys(j.Group.Committed)) {
		if committed, next := j.Group.Committed[p], final[p].Next; committed > next {
			j.violatedf("I15", "partition %d: committed offset is %d, progress only %d", p, committed, next)
		}
	}
	for _, s := range j.Samples {
		for _, p := range slices.SortedFunc(maps.Keys(s.Progress), func(a, b int32) int { return cmp.Compare(a, b) }) {
			if s.Committed[p] > s.Progress[p].Next && !j.raised(p, "progress_behind", "database_new") {
				j.violatedf("I15", "partition %d: at %s the committed offset was %d and progress only %d, and no incident says so",
					p, s.At.Format(time.RFC3339Nano), s.Committed[p], s.Progress[p].Next)
			}
		}
	}
}

func (j *judge) raised(partition int32, kinds ...string) bool {
	return slices.ContainsFunc(j.Tables.Incidents, func(i Incident) bool {
		return i.Partition == partition && slices.Contains(kinds, i.Kind)
	})
}

// last is when the last incident of these kinds was raised, zero if none was.
func (j *judge) last(kinds ...string) time.Time {
	var at time.Time
	for _, i := range j.Tables.Incidents {
		if slices.Contains(kinds, i.Kind) && i.RaisedAt.After(at) {
			at = i.RaisedAt
		}
	}
	return at
}
