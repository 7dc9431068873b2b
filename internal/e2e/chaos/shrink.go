package chaos

import "slices"

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
