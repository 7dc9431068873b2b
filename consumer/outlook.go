package consumer

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hookledger/internal/broker"
)

const (
	// outlookInterval is how often what alerts need beyond our own work is looked up.
	outlookInterval = 30 * time.Second
	outlookTimeout  = 5 * time.Second
)

// outlook is what the alerts of a whole stack need and no partition knows: what waits
// for a person, and how long the topic keeps what is unread. Every worker shows the
// same; -1 is not known.
type outlook struct {
	matters   *prometheus.GaugeVec
	retention prometheus.Gauge
}

// Kinds of open matters.
const (
	matterQuarantine = "quarantine"
	matterConflict   = "conflict"
	matterWarning    = "incident_warning"
	matterLoss       = "incident_loss"
)

func newOutlook(reg prometheus.Registerer) *outlook {
	o := &outlook{
		matters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookledger_consumer_open_matters", Help: "Records in quarantine, conflicts and unacknowledged incidents that wait for a person, by kind; -1 while unknown. Every worker shows the same.",
		}, []string{"kind"}),
		retention: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookledger_consumer_topic_retention_seconds", Help: "How long the topic keeps a record, read or not; -1 while unknown or for ever.",
		}),
	}
	o.unknown()
	o.retention.Set(-1)
	reg.MustRegister(o.matters, o.retention)
	return o
}

func (o *outlook) unknown() {
	for _, kind := range []string{matterQuarantine, matterConflict, matterWarning, matterLoss} {
		o.matters.WithLabelValues(kind).Set(-1)
	}
}

// watchOutlook keeps the outlook fresh until ctx ends.
func (w *Worker) watchOutlook(ctx context.Context) {
	for {
		w.lookOut(ctx)
		if sleep(ctx, min(outlookInterval, 3*w.cfg.CheckInterval)) != nil {
			return
		}
	}
}

func (w *Worker) lookOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, outlookTimeout)
	defer cancel()
	open, err := w.ledger.OpenMatters(ctx)
	if err != nil {
		w.outlook.unknown()
		w.log.Debug().Err(err).Msg("open matters are not known")
	} else {
		for kind, n := range map[string]int{
			matterQuarantine: open.Quarantined, matterConflict: open.Conflicts, matterWarning: open.Warnings, matterLoss: open.Losses,
		} {
			w.outlook.matters.WithLabelValues(kind).Set(float64(n))
		}
	}
	topic, err := broker.ReadTopic(ctx, w.admin, w.kafka)
	if err != nil {
		return // the last known one still holds
	}
	if ms, err := strconv.ParseInt(topic.Config["retention.ms"], 10, 64); err == nil && ms > 0 {
		w.outlook.retention.Set((time.Duration(ms) * time.Millisecond).Seconds())
	} else {
		w.outlook.retention.Set(-1)
	}
}
