package deploy_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/alerts"
)

func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yaml"), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestAlerts_AreOfMetricsThatExistAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	rules := read(t, "alerts.yaml")
	if out, err := exec.Command(alerts.Tool(t, "promtool"), "check", "rules", "alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	metrics := read(t, filepath.Join(root, "internal/observe/METRICS.md"))
	for _, m := range regexp.MustCompile(`hookledger_(ingest|consumer|payments)_\w+`).FindAllString(rules, -1) {
		if !strings.Contains(metrics, "| `"+m+"` |") {
			t.Errorf("metric %s does not exist", m)
		}
	}
	n := len(alertNames(t))
	for _, field := range []string{"          runbook: ", "          summary: ", "severity: "} {
		if got := strings.Count(rules, field); got != n && field != "severity: " || got < n {
			t.Errorf("%d alerts have %d times %q", n, got, field)
		}
	}
}

// healthy is an hour of a stack with nothing wrong, in promtool's notation: a value each
// minute. 60 events are accepted and settled in each.
var healthy = map[string]string{
	`hookledger_consumer_assigned_partitions{instance="w"}`:                                      "12x120",
	`hookledger_ingest_circuit_open{instance="i"}`:                                               "0x120",
	`hookledger_ingest_partition_circuits_open{instance="i"}`:                                    "0x120",
	`hookledger_ingest_events_accepted_total{instance="i",source="stripe"}`:                      "0+60x120",
	`hookledger_ingest_deliveries_total{instance="i",source="stripe",code="200"}`:                "0+60x120",
	`hookledger_ingest_refusals_total{instance="i",source="stripe",reason="signature_mismatch"}`: "0+1x120",
	`hookledger_ingest_certificate_not_after_timestamp_seconds{instance="i"}`:                    "-1x120",
	`hookledger_consumer_settled_records_total{instance="w"}`:                                    "0+60x120",
	`hookledger_consumer_records_total{instance="w",outcome="applied"}`:                          "0+58x120",
	`hookledger_consumer_records_total{instance="w",outcome="duplicate"}`:                        "0+2x120",
	`hookledger_consumer_lag_seconds{instance="w",partition="0"}`:                                "0x120",
	`hookledger_consumer_lag_records{instance="w",partition="0"}`:                                "0x120",
	`hookledger_consumer_topic_retention_seconds{instance="w"}`:                                  "86400x120",
	`hookledger_consumer_open_matters{instance="w",kind="quarantine"}`:                           "0x120",
	`hookledger_consumer_open_matters{instance="w",kind="conflict"}`:                             "0x120",
	`hookledger_consumer_open_matters{instance="w",kind="incident_warning"}`:                     "0x120",
	`hookledger_consumer_open_matters{instance="w",kind="incident_loss"}`:                        "0x120",
	`hookledger_payments_responses_total{instance="p",operation="pay",client="shop",code="201"}`: "0+60x120",
	`hookledger_payments_responses_total{instance="p",operation="pay",client="shop",code="409"}`: "0+20x120",
	`hookledger_payments_responses_total{instance="p",operation="pay",client="shop",code="503"}`: "0+1x120",
	`hookledger_payments_abandoned_claims{instance="p"}`:                                         "0x120",
	`hookledger_payments_duplicates_total{instance="p",client="shop"}`:                           "3x120",
}

// stories are healthy but for some series, given by the start of their names. Empty
// values remove a series.
var stories = []struct {
	name    string
	changes map[string]string
	// fires are the labels of the alerts that fire, and no other does.
	fires []string
}{
	{"all is well", nil, nil},
	{"the worker stopped", map[string]string{"hookledger_consumer_": ""}, []string{`alertname="HookledgerNoWorker"`, `alertname="HookledgerSettlingFallsBehind"`}},
	{"a worker without partitions", map[string]string{"hookledger_consumer_assigned": "0x120"}, []string{`alertname="HookledgerNoWorker"`}},
	{"no receiver", map[string]string{"hookledger_ingest_": ""}, []string{`alertname="HookledgerNoReceiver"`}},
	{"the brokers acknowledge nothing", map[string]string{"hookledger_ingest_circuit_open": "1x120"}, []string{`alertname="HookledgerBrokerRefuses"`}},
	{"one partition is refused", map[string]string{"hookledger_ingest_partition_circuits": "1x120"}, []string{`alertname="HookledgerBrokerRefuses"`}},
	{"a worker that is too slow", map[string]string{"hookledger_consumer_settled": "0+40x120"}, []string{`alertname="HookledgerSettlingFallsBehind"`}},
	{"old events, with progress", map[string]string{"hookledger_consumer_lag_seconds": "400+6x120", "hookledger_consumer_lag_records": "9x120"}, []string{`alertname="HookledgerLagAge"`}},
	{"a partition that waits", map[string]string{"hookledger_consumer_lag_seconds": "0+60x120", "hookledger_consumer_lag_records": "9x120"},
		[]string{`alertname="HookledgerLagAge"`, `alertname="HookledgerPartitionStuck",instance="w",partition="0"`}},
	{"half of the retention passed", map[string]string{"hookledger_consumer_lag_seconds": "44000+6x120", "hookledger_consumer_lag_records": "9x120"},
		[]string{`alertname="HookledgerLagAge"`, `alertname="HookledgerRetentionNear"`}},
	{"retention without end", map[string]string{"hookledger_consumer_topic_retention": "-1x120", "hookledger_consumer_lag_seconds": "200x120"}, nil},
	{"the provider repeats itself", map[string]string{`hookledger_consumer_records_total{instance="w",outcome="duplicate"}`: "0+30x120"}, []string{`alertname="HookledgerDuplicateSurge"`}},
	{"a secret was rotated", map[string]string{"hookledger_ingest_refusals": "0+50x120"}, []string{`alertname="HookledgerRefusalSurge",source="stripe"`}},
	{"events were lost", map[string]string{`hookledger_consumer_open_matters{instance="w",kind="incident_loss"`: "1x120"}, []string{`alertname="HookledgerMoneyMayBeLost"`}},
	{"a record in quarantine", map[string]string{`hookledger_consumer_open_matters{instance="w",kind="quarantine"`: "2x120"}, []string{`alertname="HookledgerMattersOpen",kind="quarantine"`}},
	{"a conflict and an incident", map[string]string{`hookledger_consumer_open_matters{instance="w",kind="conflict"`: "1x120", `hookledger_consumer_open_matters{instance="w",kind="incident_warning"`: "1x120"},
		[]string{`alertname="HookledgerMattersOpen",kind="conflict"`, `alertname="HookledgerMattersOpen",kind="incident_warning"`}},
	{"Postgres does not answer", map[string]string{"hookledger_consumer_open_matters": "-1x120"}, []string{`alertname="HookledgerMattersUnknown"`}},
	{"the certificate ends", map[string]string{"hookledger_ingest_certificate": "864000x120"}, []string{`alertname="HookledgerCertificateEnds",instance="i"`}},
	{"Postgres takes no payments", map[string]string{`hookledger_payments_responses_total{instance="p",operation="pay",client="shop",code="503"`: "0+20x120"}, []string{`alertname="HookledgerPaymentsRefused"`}},
	{"no door for payments", map[string]string{"hookledger_payments_": ""}, nil},
	{"a door died", map[string]string{"hookledger_payments_abandoned": "2x120"}, []string{`alertname="HookledgerPaymentsAbandoned"`}},
	{"a client makes new keys", map[string]string{"hookledger_payments_duplicates": "0x60 0+1x60"}, []string{`alertname="HookledgerPaymentsTwice",client="shop"`}},
	{"the certificate lasts", map[string]string{"hookledger_ingest_certificate": "8640000x120"}, nil},
}

func TestAlerts_FireInTheirStoriesAlone(t *testing.T) {
	t.Parallel()
	severity := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+).*?severity: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yaml"), -1) {
		severity[m[1]] = m[2]
	}
	rules, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	fmt.Fprintf(&file, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n", rules)
	fired := map[string]bool{}
	for _, s := range stories {
		series := maps.Clone(healthy)
		for start, value := range s.changes {
			found := false
			for name := range series {
				if strings.HasPrefix(name, start) {
					found = true
					if series[name] = value; value == "" {
						delete(series, name)
					}
				}
			}
			if !found {
				t.Errorf("story %q changes %s, which is not there", s.name, start)
			}
		}
		fmt.Fprintf(&file, "  - name: %s\n    interval: 1m\n    input_series:\n", s.name)
		for _, name := range slices.Sorted(maps.Keys(series)) {
			fmt.Fprintf(&file, "      - { series: '%s', values: '%s' }\n", name, series[name])
		}
		fmt.Fprintf(&file, "    promql_expr_test:\n      - expr: ALERTS{alertstate=\"firing\"}\n        eval_time: 110m\n        exp_samples:\n")
		for _, labels := range s.fires {
			name := regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(labels)[1]
			fired[name] = true
			fmt.Fprintf(&file, "          - { labels: 'ALERTS{alertstate=\"firing\",severity=\"%s\",%s}', value: 1 }\n", severity[name], labels)
		}
	}
	for _, name := range alertNames(t) {
		if !fired[name] {
			t.Errorf("%s fires in no story", name)
		}
	}
	path := filepath.Join(t.TempDir(), "stories.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(alerts.Tool(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// TestAlerts_OfARealPrometheus lets one watch a real stack, with every time of the rules
// a thirtieth or less: minutes become seconds.
func TestAlerts_OfARealPrometheus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ingest, consume, listen := testkit.FreeAddr(t), testkit.FreeAddr(t), testkit.FreeAddr(t)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := write("secret", "whsec_alerts_0123456789abcdef")
	configuration := func(name, secret string) string {
		return write(name, fmt.Sprintf(`
kafka: { brokers: [%s], topic: payments.events, partitions: 3, replication: 1, durability: single }
database: { url: %q }
ingest: { listen: %q, admin: %q }
consume: { admin: %q, check_interval: 1s }
sources: [{ name: stripe, provider: stripe, account: data.object.metadata.account_id, secrets: [{ id: main, file: %q }] }]
`, strings.Join(testkit.Kfake(t).ListenAddrs(), ","), testkit.LedgerURL(t), listen, ingest, consume, secret))
	}
	config := configuration("right.yaml", secret)
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), testkit.Binary(t), args...)
		cmd.Dir = dir
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("hookledger %s: %w\n%s", strings.Join(args, " "), err, out.String())
		}
		return nil
	}
	if err := run("topics", "apply", "--config", config); err != nil {
		t.Fatal(err)
	}
	start := func(role, admin string) *testkit.KillableProcess {
		return testkit.StartHookledger(t, testkit.ProcessOptions{Args: []string{role, "--config", config}, Dir: dir, ReadyURL: "http://" + admin + "/readyz"})
	}
	start("ingest", ingest)
	worker := start("consume", consume)

	prom := alerts.Start(t, "alerts.yaml", ingest, consume)

	// A provider that goes on delivering, as providers do.
	send := func(config string, seed int) error {
		return run("send", "--config", config, "--source", "stripe", "--count", "40", "--rate", "20", "--seed", fmt.Sprint(seed), "--no-retry")
	}
	for seed := range 5 {
		if err := send(config, seed); err != nil {
			t.Fatal(err)
		}
	}
	if firing, err := prom.Firing(); err != nil || len(firing) > 0 {
		t.Errorf("on a healthy stack fire %v, %v", firing, err)
	}
	if code := worker.Stop(time.Minute); code != 0 {
		t.Errorf("consume after SIGTERM: got exit code %d", code)
	}
	awaitFiring(prom, []string{"HookledgerNoWorker", "HookledgerSettlingFallsBehind"}, func(seed int) { _ = send(config, 100+seed) })
	worker.Restart()
	awaitFiring(prom, nil, func(seed int) { _ = send(config, 200+seed) })
	wrong := strings.Replace(read(t, config), secret, write("wrong", "whsec_another_0123456789abcdef"), 1)
	awaitFiring(prom, []string{"HookledgerRefusalSurge"}, func(seed int) { _ = send(write("wrong.yaml", wrong), 300+seed) })
}

// awaitFiring waits until exactly the alerts given fire, delivering meanwhile.
func awaitFiring(prom *alerts.Prometheus, want []string, deliver func(seed int)) {
	seed := -1
	prom.Await(func() {
		seed++
		deliver(seed)
	}, func(firing map[string]string) error {
		if got := slices.Sorted(maps.Keys(firing)); !slices.Equal(got, want) {
			return fmt.Errorf("got %v firing, want %v", got, want)
		}
		return nil
	})
}
