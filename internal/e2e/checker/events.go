package checker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// nothingLost is I1: each event that was answered 2xx became what it had to.
func (j *judge) nothingLost() {
	var lost, heldBack, ignored, applied []string
	for _, ref := range j.refs() {
		s := j.sent[ref]
		if !s.ok || s.first.expect() == ExpectRefused {
			continue
		}
		event, entries, held := j.events[ref], j.entries[ref], j.held[ref]
		if s.first.expect() == ExpectQuarantine {
			if len(held) == 0 && event == nil {
				lost = append(lost, ref.String())
			} else if event != nil {
				applied = append(applied, fmt.Sprintf("%s (%s)", ref, event.Outcome))
			}
			continue
		}
		switch {
		case event == nil && len(entries) > 0:
			// Its row may have been forgotten; the ledger never forgets.
		case event == nil && len(held) > 0:
			heldBack = append(heldBack, fmt.Sprintf("%s (%s)", ref, held[0].Reason))
		case event == nil && j.mayBeForgotten(ref):
		case event == nil:
			lost = append(lost, ref.String())
		case s.first.expect() == ExpectMoney && event.Outcome != "applied" && event.Outcome != "same_effect":
			ignored = append(ignored, fmt.Sprintf("%s (%s)", ref, event.Outcome))
		case s.first.expect() == ExpectNothing && (event.Outcome == "applied" || len(entries) > 0):
			applied = append(applied, ref.String())
		}
	}
	j.violated("I1", "acknowledged and nowhere on record", lost)
	j.violated("I1", "acknowledged and in quarantine without cause", heldBack)
	j.violated("I1", "acknowledged and its money did not move", ignored)
	j.violated("I1", "acknowledged and applied although it moves no money", applied)
}

// nothingInvented is I2: whatever is on record was sent, and not only refused.
func (j *judge) nothingInvented() {
	var topic, events, entries, held []string
	for i := range j.Records {
		if r := &j.Records[i]; j.sent[r.Ref()] == nil {
			topic = append(topic, r.Ref().String()+" at "+at(r.Partition, r.Offset))
		}
	}
	for i := range j.Tables.Events {
		if ref := j.Tables.Events[i].Ref(); !j.sent[ref].taken() {
			events = append(events, ref.String())
		}
	}
	for i := range j.Tables.Entries {
		e := &j.Tables.Entries[i]
		if e.EventID != "" && !j.sent[e.Ref()].taken() {
			entries = append(entries, e.Ref().String())
		}
	}
	for i := range j.Tables.Quarantined {
		if h := &j.Tables.Quarantined[i]; !j.sent[h.Ref()].taken() {
			held = append(held, h.Ref().String()+" at "+at(h.Partition, h.Offset))
		}
	}
	for i := range j.Tables.Conflicts {
		if h := &j.Tables.Conflicts[i]; !j.sent[h.Ref()].taken() {
			held = append(held, h.Ref().String()+" at "+at(h.Partition, h.Offset))
		}
	}
	j.violated("I2", "in the topic and never sent", topic)
	j.violated("I2", "on record as processed and never sent or only refused", events)
	j.violated("I2", "has an entry and was never sent or only refused", entries)
	j.violated("I2", "in quarantine or conflict and never sent or only refused", held)
}

// bodies is I5: bytes and hashes are those that were sent.
func (j *judge) bodies() {
	var foreign, key, header, row, place []string
	byPlace := map[string]*Record{}
	for i := range j.Records {
		r := &j.Records[i]
		byPlace[at(r.Partition, r.Offset)] = r
		name := r.Ref().String() + " at " + at(r.Partition, r.Offset)
		sum := sha256.Sum256(r.Value)
		hash := hex.EncodeToString(sum[:])
		if s := j.sent[r.Ref()]; s.taken() && !s.bodies[hash] {
			foreign = append(foreign, name)
		}
		if r.Header("hl_body_sha256") != hash {
			header = append(header, name)
		}
		if r.Header("ce_id") != string(r.Key) || r.Header("ce_source") != "/webhooks/"+r.Header("hl_source") {
			key = append(key, name)
		}
	}
	for i := range j.Tables.Events {
		e := &j.Tables.Events[i]
		if s := j.sent[e.Ref()]; s.taken() && !s.bodies[hex.EncodeToString(e.BodySHA256)] {
			row = append(row, e.Ref().String())
		}
		r := byPlace[at(e.Partition, e.Offset)]
		if r == nil {
			place = append(place, fmt.Sprintf("%s says %s, where there is no record", e.Ref(), at(e.Partition, e.Offset)))
			continue
		}
		sum := sha256.Sum256(r.Value)
		if r.Ref() != e.Ref() || !bytes.Equal(sum[:], e.BodySHA256) {
			place = append(place, fmt.Sprintf("%s says %s, where %s is", e.Ref(), at(e.Partition, e.Offset), r.Ref()))
		}
	}
	j.violated("I5", "the topic holds other bytes than were sent", foreign)
	j.violated("I5", "key and CloudEvents headers disagree", key)
	j.violated("I5", "hl_body_sha256 is not the hash of the value", header)
	j.violated("I5", "the stored hash is of no body that was sent", row)
	j.violated("I5", "the row does not match the record it names", place)
}

// rejects is I6: what was refused each time is nowhere.
func (j *judge) rejects() {
	var topic []string
	for _, ref := range j.refs() {
		if s := j.sent[ref]; !s.taken() && len(j.records[ref]) > 0 {
			topic = append(topic, ref.String())
		}
	}
	j.violated("I6", "refused and in the topic all the same", topic)

	var believed []string
	for _, ref := range j.refs() {
		s := j.sent[ref]
		if s.first.expect() == ExpectRefused && (s.ok || len(j.records[ref]) > 0 || j.events[ref] != nil || len(j.entries[ref]) > 0) {
			believed = append(believed, ref.String())
		}
	}
	j.violated("I6", "its signature or its clock is wrong, and it was believed", believed)
}

// inTopicBeforeAnswer is I10: the record of an acknowledged event is there, and was
// made before the answer was read.
func (j *judge) inTopicBeforeAnswer() {
	var missing, late []string
	for _, ref := range j.refs() {
		s := j.sent[ref]
		if !s.ok || s.first.expect() == ExpectRefused {
			continue
		}
		records := j.records[ref]
		if len(records) == 0 {
			missing = append(missing, ref.String())
			continue
		}
		first := records[0].Time
		for _, r := range records {
			if r.Time.Before(first) {
				first = r.Time
			}
		}
		if first.After(s.answered) {
			late = append(late, ref.String())
		}
	}
	j.violated("I10", "acknowledged and not in the topic", missing)
	j.violated("I10", "acknowledged before its record was made", late)
}
