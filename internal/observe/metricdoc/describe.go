package metricdoc

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Doc describes one metric of the product.
type Doc struct {
	Name   string
	Type   string
	Labels []string
	Help   string
}

// Recorder is a Registerer that remembers what was registered, so that metrics can be
// documented before they have a single value.
type Recorder struct {
	mu   sync.Mutex
	docs map[string]Doc
	reg  *prometheus.Registry
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{docs: map[string]Doc{}, reg: prometheus.NewRegistry()}
}

// Register remembers what c describes and registers it.
func (r *Recorder) Register(c prometheus.Collector) error {
	if err := r.reg.Register(c); err != nil {
		return err
	}
	descs := make(chan *prometheus.Desc, 64)
	go func() { c.Describe(descs); close(descs) }() // ends with c's last description
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := typeOf(c)
	for d := range descs {
		if doc, ok := parseDesc(d.String()); ok {
			doc.Type = kind
			if kind == "" {
				doc.Type = typeByName(doc.Name)
			}
			r.docs[doc.Name] = doc
		}
	}
	return nil
}

// MustRegister is Register for several; it panics on an error.
func (r *Recorder) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister forgets nothing: what was registered once is part of the document.
func (r *Recorder) Unregister(c prometheus.Collector) bool { return r.reg.Unregister(c) }

// Docs lists what was registered, by name.
func (r *Recorder) Docs() []Doc {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Doc
	for _, d := range r.docs {
		all = append(all, d)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// Markdown writes docs as a table.
func Markdown(docs []Doc) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, d := range docs {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), strings.ReplaceAll(d.Help, "|", `\|`))
	}
	return b.String()
}

// descText is how client_golang (v1.24, v1.25) prints a Desc, whose fields it keeps to
// itself.
var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"),(?: unit: "[^"]*",)? constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func parseDesc(s string) (Doc, bool) {
	m := descText.FindStringSubmatch(s)
	if m == nil {
		return Doc{}, false
	}
	doc := Doc{Name: m[1], Help: strings.NewReplacer(`\"`, `"`, `\n`, " ", `\\`, `\`).Replace(m[2][1 : len(m[2])-1])}
	doc.Labels = append(doc.Labels, strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' })...)
	return doc, true
}

// typeOf finds the type of a metric, also of one without values.
func typeOf(c prometheus.Collector) string {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	case prometheus.Metric:
		var m dto.Metric
		if c.Write(&m) == nil {
			switch {
			case m.Counter != nil:
				return "counter"
			case m.Gauge != nil:
				return "gauge"
			case m.Histogram != nil:
				return "histogram"
			case m.Summary != nil:
				return "summary"
			}
		}
	}
	return ""
}

// typeByName guesses the type of a metric of a collector written by hand.
func typeByName(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}
