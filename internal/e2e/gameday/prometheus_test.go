package gameday

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hookledger/internal/devstack/process"
	"hookledger/internal/testkit"
)

// prometheus is a running server that evaluates deploy/alerts.yaml over the real metrics.
type prometheus struct{ url string }

// hasten makes seconds of the minutes of the rules.
var hasten = strings.NewReplacer("[5m]", "[6s]", "[10m]", "[12s]", "for: 1m", "for: 1s", "for: 2m", "for: 2s", "for: 5m", "for: 2s", "for: 10m", "for: 4s", "for: 15m", "for: 4s", "for: 1h", "for: 4s")

func startPrometheus(t *testing.T, dir string, targets ...string) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("the game day needs prometheus: install the Debian package prometheus: %v", err)
	}
	rules, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: { scrape_interval: 1s, evaluation_interval: 1s }\nrule_files: [alerts.yaml]\nscrape_configs:\n  - { job_name: hookledger, static_configs: [{ targets: [%q] }] }\n",
		strings.Join(targets, `", "`))
	config = strings.ReplaceAll(config, `\"`, `"`)
	for name, text := range map[string]string{"alerts.yaml": hasten.Replace(string(rules)), "prometheus.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proc.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of Prometheus:\n%s", text)
		}
	})
	p := prometheus{"http://" + addr}
	testkit.Eventually(t, patience, func() error {
		_, err := p.get("/-/ready")
		return err
	})
	return p
}

func (p prometheus) get(path string) ([]byte, error) {
	res, err := http.Get(p.url + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return body, err
}

// firing lists the alerts that fire, with their severity.
func (p prometheus) firing() (map[string]string, error) {
	body, err := p.get("/api/v1/query?query=" + url.QueryEscape(`ALERTS{alertstate="firing"}`))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range answer.Data.Result {
		out[r.Metric["alertname"]] = r.Metric["severity"]
	}
	return out, nil
}

// awaitAlerts waits until all of the alerts fire, while go on happens what happens.
func (s *stack) awaitAlerts(meanwhile func(), want ...string) {
	s.t.Helper()
	s.alerts(meanwhile, func(firing map[string]string) error {
		for _, name := range want {
			if firing[name] == "" {
				return fmt.Errorf("got %v firing, want %v", firing, want)
			}
		}
		var words []string
		for name, severity := range firing {
			words = append(words, name+" ("+severity+")")
		}
		slices.Sort(words)
		say("   alerts: %s", strings.Join(words, ", "))
		return nil
	})
}

// awaitCalm waits until none of the alerts fires.
func (s *stack) awaitCalm(gone ...string) {
	s.t.Helper()
	s.alerts(func() {}, func(firing map[string]string) error {
		for _, name := range gone {
			if firing[name] != "" {
				return fmt.Errorf("%s still fires", name)
			}
		}
		say("   alerts: %s ended", strings.Join(gone, ", "))
		return nil
	})
}

func (s *stack) alerts(meanwhile func(), check func(map[string]string) error) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		meanwhile()
		firing, err := s.prom.firing()
		if err != nil {
			return err
		}
		return check(firing)
	})
}
