package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"

	"hookledger/internal/cli/roles"
	"hookledger/internal/config"
	"hookledger/internal/observe"
	"hookledger/internal/observe/metricdoc"
)

const metricsFile = "../observe/METRICS.md"

const metricsHead = `# Metrics

Every metric of hookledger, from the code (` + "`go test ./internal/cli -run Metrics -args -update`" + `). Beside them are the
usual ones of the Go runtime and the process, ` + "`go_*` and `process_*`" + `. Accepted minus settled, what is on its way, is
` + "`sum(hookledger_ingest_events_accepted_total) - sum(hookledger_consumer_settled_records_total)`" + ` since both started.

`

// registered is every metric of the roles, made as the roles make them.
func registered(t *testing.T) []metricdoc.Doc {
	t.Helper()
	text := `
kafka: { brokers: ["127.0.0.1:1"], durability: single, replication: 1 }
database: { url: "postgres://nobody@127.0.0.1:1/none?connect_timeout=1" }
ingest: { listen: "127.0.0.1:0" }
payments: { listen: "127.0.0.1:0", durability: single, tokens: [{ client: c, value: 0123456789abcdef }] }
sources: [{ name: s, provider: stripe, account: a, secrets: [{ value: whsec_0123456789 }] }]
`
	cfg, err := config.Parse("test.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := metricdoc.NewRecorder()
	observe.RegisterBuild(rec, observe.Build())
	server, err := roles.NewServer(cfg, zerolog.Nop(), rec)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, pool, err := roles.NewWorker(t.Context(), cfg, zerolog.Nop(), rec)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	door, doorPool, err := roles.NewPayments(t.Context(), cfg, zerolog.Nop(), rec)
	if err != nil {
		t.Fatal(err)
	}
	defer doorPool.Close()
	defer door.Close()
	return rec.Docs()
}

func TestMetrics_AreDocumented(t *testing.T) {
	t.Parallel()
	docs := registered(t)
	if len(docs) < 20 {
		t.Fatalf("only %d metrics were found: see package metricdoc", len(docs))
	}
	want := metricsHead + metricdoc.Markdown(docs)
	if *update {
		if err := os.WriteFile(metricsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("METRICS.md differs from the code: go test ./internal/cli -run Metrics -args -update")
	}
	for _, d := range docs {
		if !regexp.MustCompile(`^hookledger_[a-z]+_[a-z_]+$`).MatchString(d.Name) {
			t.Errorf("%s: metrics are named hookledger_<package>_<thing>_<unit>", d.Name)
		}
		if !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: its help is not a sentence: %q", d.Name, d.Help)
		}
		if (d.Type == "counter") != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s is a %s", d.Name, d.Type)
		}
	}
}

// checkMetricsAreDocumented compares what running roles show with the document.
func checkMetricsAreDocumented(t *testing.T, admins ...string) {
	t.Helper()
	document, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, admin := range admins {
		code, body := get(t, admin, "/metrics")
		if code != 200 {
			t.Fatalf("/metrics of %s: %d", admin, code)
		}
		names := regexp.MustCompile(`(?m)^# TYPE (hookledger_\S+) (\S+)$`).FindAllStringSubmatch(body, -1)
		if len(names) < 5 {
			t.Errorf("/metrics of %s shows %d metrics of ours", admin, len(names))
		}
		for _, n := range names {
			if !strings.Contains(string(document), "| `"+n[1]+"` | "+n[2]+" |") {
				t.Errorf("%s, a %s, is not in METRICS.md", n[1], n[2])
			}
		}
		problems, err := promlint.New(strings.NewReader(body)).Lint()
		if err != nil {
			t.Errorf("lint metrics of %s: %v", admin, err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "hookledger_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	}
}
