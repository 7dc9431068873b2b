package sender

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Summary is what came of a run.
type Summary struct {
	Source string `json:"source"`
	URL    string `json:"url"`
	Seed   uint64 `json:"seed"`
	// Events were to be sent, Acknowledged of them were answered 2xx at least once,
	// Refused were answered 4xx, and nothing is known of the Unknown ones.
	Events       int `json:"events"`
	Acknowledged int `json:"acknowledged"`
	Refused      int `json:"refused"`
	Unknown      int `json:"unknown"`
	// Deliveries counts attempts, Retries those that followed an unknown answer.
	Deliveries int `json:"deliveries"`
	Retries    int `json:"retries"`
	// Answers counts attempts by HTTP status; "0" is no answer.
	Answers         map[int]int `json:"answers"`
	DurationSeconds float64     `json:"duration_seconds"`
	PerSecond       float64     `json:"deliveries_per_second"`
	LatencyMS       Latency     `json:"latency_ms"`
	// Acked is the money of acknowledged events, by currency, in minor units.
	Acked []Money `json:"acknowledged_money"`
	// FirstError is that of the first attempt without an answer.
	FirstError string `json:"first_error,omitempty"`
}

// Latency is that of answered attempts, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Money is a sum in minor units of one currency.
type Money struct {
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
}

// tally adds up attempts. It is safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	results   []string // by event: the best so far
	s         Summary
	latencies []time.Duration
	money     map[string]int64
}

func newTally(events int) *tally {
	return &tally{results: make([]string, events), s: Summary{Events: events, Answers: map[int]int{}}, money: map[string]int64{}}
}

func (t *tally) add(a answered, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Deliveries++
	if again {
		t.s.Retries++
	}
	t.s.Answers[a.HTTP]++
	if a.HTTP != 0 {
		t.latencies = append(t.latencies, a.latency)
	} else if t.s.FirstError == "" && a.err != nil {
		t.s.FirstError = a.err.Error()
	}
	if a.Result == ok && t.results[a.I] != ok {
		t.money[a.Currency] += a.Amount
	}
	if t.results[a.I] != ok {
		t.results[a.I] = a.Result
	}
}

func (t *tally) took(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.DurationSeconds = d.Seconds()
}

func (t *tally) summary(source, url string, o *Options) Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	s.Source, s.URL, s.Seed = source, url, o.Seed
	for _, r := range t.results {
		switch r {
		case ok:
			s.Acknowledged++
		case reject:
			s.Refused++
		default:
			s.Unknown++
		}
	}
	if s.DurationSeconds > 0 {
		s.PerSecond = float64(s.Deliveries) / s.DurationSeconds
	}
	slices.Sort(t.latencies)
	s.LatencyMS = Latency{P50: percentile(t.latencies, 50), P99: percentile(t.latencies, 99), Max: percentile(t.latencies, 100)}
	s.Acked = []Money{}
	for _, currency := range slices.Sorted(maps.Keys(t.money)) {
		s.Acked = append(s.Acked, Money{currency, t.money[currency]})
	}
	return s
}

// percentile is the p-th of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(len(sorted)*p/100, len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}
