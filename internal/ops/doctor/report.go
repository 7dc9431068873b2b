package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/config"
)

// Verdict says how bad a finding is.
type Verdict string

// Verdicts, the worst last.
const (
	OK      Verdict = "ok"
	Note    Verdict = "note"
	Warning Verdict = "warning"
	Problem Verdict = "problem"
)

// Finding is what came of one check.
type Finding struct {
	// Check is a stable name, such as topic_replication.
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	// Reason says why it matters, Repair what to do. Both are empty when all is well.
	Reason string `json:"reason"`
	Repair string `json:"repair"`
}

// Report is what came of all checks.
type Report struct {
	// OK says that there is neither a problem nor a warning.
	OK       bool      `json:"ok"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Deps is what an examination works on.
type Deps struct {
	Config *config.Loaded
	// Kafka is a client for questions. Nil: KafkaError says why there is none.
	Kafka      *kgo.Client
	KafkaError error
	// Connect opens a connection to Postgres. Nil: no database is configured.
	Connect func(context.Context) (*pgx.Conn, error)
	// CheckSchema says whether the schema is this program's.
	CheckSchema func(context.Context) error
	// Now is the clock of this machine. Nil: time.Now.
	Now func() time.Time
	Log zerolog.Logger
}

// examination collects findings.
type examination struct {
	Deps
	findings []Finding
}

// Examine looks at everything and returns what it found, the worst first.
func Examine(ctx context.Context, d Deps) Report {
	if d.Now == nil {
		d.Now = time.Now
	}
	e := &examination{Deps: d}
	e.secrets()
	e.tokens()
	e.certificates()
	identity := e.kafka(ctx)
	e.postgres(ctx, identity)

	r := Report{Findings: e.findings}
	severity := []Verdict{Problem, Warning, Note, OK}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severity, a.Verdict), slices.Index(severity, b.Verdict))
	})
	for _, f := range r.Findings {
		switch f.Verdict {
		case Problem:
			r.Problems++
		case Warning:
			r.Warnings++
		}
	}
	r.OK = r.Problems+r.Warnings == 0
	return r
}

func (e *examination) ok(check, found string) {
	e.findings = append(e.findings, Finding{Check: check, Verdict: OK, Found: found})
}

func (e *examination) add(v Verdict, check, found, reason, repair string) {
	e.findings = append(e.findings, Finding{check, v, found, reason, repair})
}

// unless adds a finding if holds is false, and says that all is well otherwise.
func (e *examination) unless(holds bool, v Verdict, check, found, reason, repair string) {
	if holds {
		e.ok(check, found)
		return
	}
	e.add(v, check, found, reason, repair)
}
