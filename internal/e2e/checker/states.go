package checker

import "fmt"

// states is S1: each object has the state with the latest time, then the highest rank,
// of all that were told of it and taken.
func (j *judge) states() {
	want := map[Ref]State{}
	for i := range j.History {
		d := &j.History[i]
		if d.State == (State{}) || !j.taken(d.Ref()) {
			continue
		}
		object := Ref{d.Source, d.State.Object}
		if best, ok := want[object]; !ok || d.State.At > best.At || d.State.At == best.At && d.State.Rank > best.Rank {
			want[object] = d.State
		}
	}
	if len(want) == 0 {
		return
	}
	var wrong []string
	got := map[Ref]bool{}
	for _, s := range j.Tables.States {
		object := Ref{s.Source, s.Object}
		got[object] = true
		w, ok := want[object]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s is %s, and nobody said so", object, s.Status))
		} else if s.Status != w.Status || s.Rank != w.Rank || s.OccurredAt.Unix() != w.At {
			wrong = append(wrong, fmt.Sprintf("%s is %s of %d, want %s of %d", object, s.Status, s.OccurredAt.Unix(), w.Status, w.At))
		}
	}
	for object := range want {
		if !got[object] {
			wrong = append(wrong, object.String()+" has no state")
		}
	}
	j.violated("S1", "the state of an object is not the latest", wrong)
}
