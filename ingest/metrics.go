package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
)

// unknownSource is the label of deliveries to a path that names no source. No source
// can have this name.
const unknownSource = "_unknown"

type metrics struct {
	deliveries  *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	accepted    *prometheus.CounterVec
	matches     *prometheus.CounterVec
	lastMatch   *prometheus.GaugeVec
	covered     *prometheus.GaugeVec
	unknown     prometheus.Counter
	late        *prometheus.CounterVec
	ackDuration *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hookledger_ingest_" + name, Help: help}, labels)
	}
	m := &metrics{
		deliveries: counter("deliveries_total", "Deliveries answered, by source and HTTP status.", "source", "code"),
		refusals:   counter("refusals_total", "Deliveries not answered with success, by source and reason.", "source", "reason"),
		accepted:   counter("events_accepted_total", "Events acknowledged by the broker and answered with success, duplicates among them.", "source"),
		matches:    counter("secret_matches_total", "Deliveries whose signature a secret matched, by the ID of the secret.", "source", "key_id"),
		lastMatch: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookledger_ingest_secret_last_match_timestamp_seconds",
			Help: "Unix time at which a secret last matched. A secret that has not matched for long can be removed.",
		}, []string{"source", "key_id"}),
		covered: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookledger_ingest_source_body_authenticated",
			Help: "1 if the signature of a source covers the whole body of its deliveries, else 0.",
		}, []string{"source"}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hookledger_ingest_events_unknown_total",
			Help: "Events answered 503 while their record was on its way: stored or not, nobody knows.",
		}),
		late: counter("events_late_total", "Events of unknown fate whose fate became known after the answer, by result.", "result"),
		ackDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hookledger_ingest_ack_duration_seconds",
			Help:    "Time from producing a delivery's records to the broker's acknowledgement, or to giving up, by result.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
	}
	for _, r := range []string{"acknowledged", "failed"} {
		m.late.WithLabelValues(r)
		m.ackDuration.WithLabelValues(r)
	}
	return m, registerAll(reg, m.deliveries, m.refusals, m.accepted, m.matches, m.lastMatch, m.covered, m.unknown, m.late, m.ackDuration)
}

func registerAll(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// registerGauges adds the gauges that are read from the server when asked for.
func (s *Server) registerGauges(reg prometheus.Registerer) error {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookledger_ingest_" + name, Help: help}, read)
	}
	return registerAll(reg,
		gauge("certificate_not_after_timestamp_seconds", "Unix time at which the certificate of the public listener ends; -1 without ingest.tls.", func() float64 {
			if s.certificate == nil {
				return -1
			}
			return float64(s.certificate.notAfter().Unix())
		}),
		gauge("inflight_bytes", "Bytes of bodies being received and checked.", func() float64 { return float64(s.budget.used.Load()) }),
		gauge("buffered_records", "Records waiting for the broker.", func() float64 { return float64(s.client.BufferedProduceRecords()) }),
		gauge("buffered_bytes", "Bytes of records waiting for the broker.", func() float64 { return float64(s.client.BufferedProduceBytes()) }),
		gauge("circuit_open", "1 while deliveries are answered 503 because the broker acknowledges nothing, else 0.", func() float64 {
			if s.health.isOpen() {
				return 1
			}
			return 0
		}),
		gauge("partition_circuits_open", "Partitions for which deliveries are answered 503 because the broker acknowledges nothing there.", func() float64 { return float64(s.health.openParts()) }),
	)
}
