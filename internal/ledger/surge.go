package ledger

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// More than surgeLimit of a source's last surgeWindow records in quarantine is no bad
// record but a wrong mapping.
const (
	surgeWindow = 1000
	surgeLimit  = 20
)

// kindSurge is the kind of the incident.
const kindSurge = "quarantine_surge"

// surge watches, for each source, the records that this process has settled. Other
// workers watch theirs: a wrong mapping shows everywhere. Replays of records that are
// in quarantine already do not count.
type surge struct {
	mu      sync.Mutex
	sources map[string]*window
}

// window is a ring of the last records: true means newly in quarantine.
type window struct {
	bad   [surgeWindow]bool
	at    int
	count int
}

func newSurge() *surge { return &surge{sources: make(map[string]*window)} }

func (w *window) add(bad bool) {
	if w.bad[w.at] {
		w.count--
	}
	w.bad[w.at] = bad
	if bad {
		w.count++
	}
	w.at = (w.at + 1) % surgeWindow
}

// after returns the incidents to raise if items are committed, with newQuarantined
// among them. It changes nothing.
func (s *surge) after(items []item, newQuarantined map[int64]bool) []Incident {
	if len(newQuarantined) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	trial := make(map[string]*window)
	var raised []Incident
	for i := range items {
		source := surgeSource(&items[i])
		w := trial[source]
		if w == nil {
			w = new(window)
			if now := s.sources[source]; now != nil {
				*w = *now
			}
			trial[source] = w
		}
		before := w.count
		w.add(newQuarantined[items[i].record.Offset])
		if w.count > surgeLimit && w.count > before {
			raised = append(raised, surgeIncident(source, w.count))
			w.count = -surgeWindow // once a batch is enough
		}
	}
	// Sorted, as everything that locks is.
	slices.SortFunc(raised, func(a, b Incident) int { return strings.Compare(a.Once, b.Once) })
	return raised
}

// record takes committed items into the windows.
func (s *surge) record(items []item, newQuarantined map[int64]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		source := surgeSource(&items[i])
		w := s.sources[source]
		if w == nil {
			w = new(window)
			s.sources[source] = w
		}
		w.add(newQuarantined[items[i].record.Offset])
	}
}

// surgeSource is the source that an item counts for. What is no event of ours names
// any source it likes, and counts for none.
func surgeSource(it *item) string {
	if it.decodeErr != nil {
		return ""
	}
	return it.event.Source
}

func surgeIncident(source string, count int) Incident {
	detail, err := json.Marshal(map[string]any{"source": source, "quarantined": count, "window": surgeWindow})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return Incident{Severity: Warning, Kind: kindSurge, Once: kindSurge + "/" + source, Detail: detail}
}

func (i *Incident) surgeArgs() []arg {
	return []arg{textArg(string(i.Severity)), textArg(i.Kind), textArg(i.Once), jsonbArg(i.Detail)}
}
