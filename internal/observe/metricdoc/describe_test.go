package metricdoc

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRecorder_DocumentsMetricsWithoutValues(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	r.MustRegister(
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "b_total", Help: `A "b" | c\d.`}, []string{"x", "y"}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "a_bytes", Help: "A."}, func() float64 { return 1 }),
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: "c_seconds", Help: "C."}),
	)
	want := []Doc{
		{Name: "a_bytes", Type: "gauge", Help: "A."},
		{Name: "b_total", Type: "counter", Labels: []string{"x", "y"}, Help: `A "b" | c\d.`},
		{Name: "c_seconds", Type: "histogram", Help: "C."},
	}
	if got := r.Docs(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	const table = "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n" +
		"| `b_total` | counter | x, y | A \"b\" \\| c\\d. |\n"
	if got := Markdown(want[1:2]); got != table {
		t.Errorf("got %q, want %q", got, table)
	}
	if err := r.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "a_bytes", Help: "A."})); err == nil {
		t.Error("a name registered twice: want an error")
	}
}
