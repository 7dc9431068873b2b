package consumer

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hookledger/internal/ledger"
)

// metrics are what a Worker counts. Labels are from bounded sets; none is an id.
type metrics struct {
	records        *prometheus.CounterVec
	settledRecords prometheus.Counter
	bodyChanged    prometheus.Counter
	delaySeconds   prometheus.Histogram
	batchRecords   prometheus.Histogram
	applySeconds   *prometheus.HistogramVec
	retries        *prometheus.CounterVec
	rules          *prometheus.CounterVec
	incidents      *prometheus.CounterVec
	commitFailures *prometheus.CounterVec
	reopens        *prometheus.CounterVec
	assigned       prometheus.Gauge
	lastProgress   prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, w *Worker) *metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "hookledger", Subsystem: "consumer", Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "hookledger", Subsystem: "consumer", Name: name, Help: help, Buckets: buckets}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "hookledger", Subsystem: "consumer", Name: name, Help: help}
	}
	m := &metrics{
		records:        prometheus.NewCounterVec(counter("records_total", "Records settled in Postgres, by what became of them."), []string{"outcome"}),
		settledRecords: prometheus.NewCounter(counter("settled_records_total", "Records settled in Postgres with any outcome. Accepted events minus this is what is on its way.")),
		bodyChanged:    prometheus.NewCounter(counter("body_changed_records_total", "Duplicates whose bytes differ from the first while the meaning is the same.")),
		delaySeconds: prometheus.NewHistogram(histogram("settle_delay_seconds", "Seconds from receiving an event to its commit in Postgres; duplicates are left out.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400})),
		batchRecords: prometheus.NewHistogram(histogram("batch_records", "Records of one batch given to Postgres.", []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000})),
		applySeconds: prometheus.NewHistogramVec(histogram("apply_seconds", "Seconds of one attempt to apply a batch, by result.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}), []string{"result"}),
		retries:        prometheus.NewCounterVec(counter("retries_total", "Attempts that failed and are repeated, by class of error."), []string{"class"}),
		rules:          prometheus.NewCounterVec(counter("position_rules_total", "Partitions assigned, by the rule that found the position."), []string{"rule"}),
		incidents:      prometheus.NewCounterVec(counter("position_incidents_total", "Incidents raised by the position rules, by kind."), []string{"kind"}),
		commitFailures: prometheus.NewCounterVec(counter("commit_failures_total", "Offset commits that Kafka refused or did not answer, by code; they are repeated and lose nothing."), []string{"code"}),
		reopens:        prometheus.NewCounterVec(counter("reopens_total", "Times the worker left the group to look up positions again, by reason."), []string{"reason"}),
		assigned:       prometheus.NewGauge(gauge("assigned_partitions", "Partitions this worker reads.")),
		lastProgress:   prometheus.NewGauge(gauge("last_progress_timestamp_seconds", "When Postgres last settled a record of this worker, in Unix seconds; -1 before the first.")),
	}
	m.lastProgress.Set(-1)
	for _, o := range ledger.Outcomes() {
		m.records.WithLabelValues(o.String())
	}
	for _, r := range ruleNames {
		m.rules.WithLabelValues(r)
	}
	for _, result := range []string{"ok", "error"} {
		m.applySeconds.WithLabelValues(result)
	}
	reg.MustRegister(m.records, m.settledRecords, m.bodyChanged, m.delaySeconds, m.batchRecords, m.applySeconds, m.retries, m.rules,
		m.incidents, m.commitFailures, m.reopens, m.assigned, m.lastProgress, newLag(w))
	return m
}

// settled counts what became durable.
func (m *metrics) settled(done ledger.Committed, now time.Time) {
	for _, o := range ledger.Outcomes() {
		m.records.WithLabelValues(o.String()).Add(float64(done.Count(o)))
	}
	m.settledRecords.Add(float64(done.Records()))
	m.bodyChanged.Add(float64(done.BodyChanged()))
	for _, t := range done.ReceivedAt() {
		m.delaySeconds.Observe(max(now.Sub(t).Seconds(), 0))
	}
	m.lastProgress.Set(float64(now.UnixMilli()) / 1000)
}

// lag shows where each of our partitions stands, at the moment of the scrape.
type lag struct {
	w                        *Worker
	records, seconds, buffer *prometheus.Desc
}

func newLag(w *Worker) *lag {
	return &lag{
		w:       w,
		records: prometheus.NewDesc("hookledger_consumer_lag_records", "Records of the partition that are not settled yet; -1 while unknown.", []string{"partition"}, nil),
		seconds: prometheus.NewDesc("hookledger_consumer_lag_seconds", "Age of the oldest record of the partition that was read and is not settled; 0 when all is settled, -1 while unknown.", []string{"partition"}, nil),
		buffer:  prometheus.NewDesc("hookledger_consumer_buffered_bytes", "Bytes of records that were read and wait to be applied.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (l *lag) Describe(ch chan<- *prometheus.Desc) {
	ch <- l.records
	ch <- l.seconds
	ch <- l.buffer
}

// Collect implements prometheus.Collector.
func (l *lag) Collect(ch chan<- prometheus.Metric) {
	var all []standing
	if s := l.w.session.Load(); s != nil {
		all = s.queues.standings()
	}
	bytes, now := 0, time.Now()
	for _, p := range all {
		records, seconds := p.lag(now)
		id := strconv.Itoa(int(p.id))
		ch <- prometheus.MustNewConstMetric(l.records, prometheus.GaugeValue, records, id)
		ch <- prometheus.MustNewConstMetric(l.seconds, prometheus.GaugeValue, seconds, id)
		bytes += p.bytes
	}
	ch <- prometheus.MustNewConstMetric(l.buffer, prometheus.GaugeValue, float64(bytes))
}

// lag returns how far p is behind, in records and seconds, -1 where it is not known.
func (p standing) lag(now time.Time) (records, seconds float64) {
	if p.end < 0 {
		return -1, -1
	}
	behind := max(p.end-p.next, 0)
	switch {
	case behind == 0:
		return 0, 0
	case p.oldest.IsZero():
		return float64(behind), -1
	}
	return float64(behind), max(now.Sub(p.oldest).Seconds(), 0)
}
