package payments

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// unknownClient is the label of requests whose token is not known. No client can have
// this name.
const unknownClient = "_unknown"

type metrics struct {
	responses   *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	matches     *prometheus.CounterVec
	lastMatch   *prometheus.GaugeVec
	replays     *prometheus.CounterVec
	reused      *prometheus.CounterVec
	duplicates  *prometheus.CounterVec
	takeovers   *prometheus.CounterVec
	lockRetries prometheus.Counter
	unknown     prometheus.Counter
	abandoned   prometheus.Gauge
	removed     prometheus.Counter
	claimToDone prometheus.Histogram
}

// Operations, as labels.
const (
	opPay     = "pay"
	opPayment = "payment"
	opAccount = "account"
	opOther   = "other"
)

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hookledger_payments_" + name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "hookledger_payments_" + name, Help: help})
	}
	m := &metrics{
		responses: counters("responses_total", "Requests answered, by operation, client and HTTP status. How often a key is busy is the share of 409 among pay.", "operation", "client", "code"),
		refusals:  counters("refusals_total", "Requests not answered with success, by operation and the name of the problem.", "operation", "reason"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookledger_payments_request_duration_seconds",
			Help:    "Time from the headers of a request to its answer, by operation and HTTP status.",
			Buckets: durations,
		}, []string{"operation", "code"}),
		matches: counters("token_matches_total", "Requests whose token matched, by client and the ID of the token.", "client", "token_id"),
		lastMatch: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookledger_payments_token_last_match_timestamp_seconds",
			Help: "Unix time at which a token last matched. A token that has not matched for long can be removed.",
		}, []string{"client", "token_id"}),
		replays:    counters("replays_total", "Requests answered with what their key had been answered before, by client.", "client"),
		reused:     counters("fingerprint_conflicts_total", "Requests whose key had been used with another request, by client.", "client"),
		duplicates: counters("duplicates_total", "Payments made here that mean the same as an earlier one of their client within the duplicate window, under another key.", "client"),
		takeovers:  counters("takeovers_total", "Keys taken over, by cause: abandoned while being processed, released after a rollback, or expired.", "cause"),
		lockRetries: counter("lock_retries_total",
			"Transactions of payments begun again because a lock, of an account or of the table of keys, was not had in time."),
		unknown: counter("unknown_outcomes_total",
			"Payments whose COMMIT was not answered: done or not, the next request with the key finds out."),
		abandoned: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookledger_payments_abandoned_claims",
			Help: "Keys being processed for longer than the TTL of claims, in the whole database: their worker died, and nobody has asked again.",
		}),
		removed: counter("expired_keys_removed_total", "Keys removed by this process after they expired."),
		claimToDone: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "hookledger_payments_claim_to_done_seconds",
			Help:    "Time from the claim of a key to the commit of its result.",
			Buckets: durations,
		}),
	}
	for _, cause := range []string{"abandoned", "released", "expired"} {
		m.takeovers.WithLabelValues(cause)
	}
	return m, registerAll(reg, m.responses, m.refusals, m.duration, m.matches, m.lastMatch, m.replays, m.reused, m.duplicates,
		m.takeovers, m.lockRetries, m.unknown, m.abandoned, m.removed, m.claimToDone)
}

var durations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// zero makes the series of a client, so that a rate over them is right from the first.
func (m *metrics) zero(client string) {
	for _, code := range []int{201, 409} {
		m.responses.WithLabelValues(opPay, client, strconv.Itoa(code))
	}
	m.replays.WithLabelValues(client)
	m.reused.WithLabelValues(client)
	m.duplicates.WithLabelValues(client)
}

// registerPool adds the gauges that are read from the pool when asked for.
func (d *database) registerPool(reg prometheus.Registerer) error {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookledger_payments_" + name, Help: help}, read)
	}
	return registerAll(reg,
		gauge("connections", "Connections to Postgres that the door has.", func() float64 { return float64(d.pool.Stat().TotalConns()) }),
		gauge("connections_in_use", "Connections to Postgres that a request holds.", func() float64 { return float64(d.pool.Stat().AcquiredConns()) }),
		gauge("connections_max", "Connections to Postgres that the door may have.", func() float64 { return float64(d.pool.Stat().MaxConns()) }),
	)
}

func registerAll(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}
