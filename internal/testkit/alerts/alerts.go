package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/devstack/process"
	"hookledger/internal/testkit"
)

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// Prometheus is a running server.
type Prometheus struct {
	tb  testing.TB
	url string
}

// hasten makes seconds of the minutes of rules.
var hasten = strings.NewReplacer("[5m]", "[6s]", "[10m]", "[12s]", "for: 1m", "for: 1s", "for: 2m", "for: 2s", "for: 5m", "for: 2s", "for: 10m", "for: 4s", "for: 15m", "for: 4s", "for: 1h", "for: 4s")

// Tool finds a program of the Debian package prometheus.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("this test needs %s: install the Debian package prometheus: %v", name, err)
	}
	return path
}

// Start has one watch targets, addresses of admin listeners, with the rules of a file.
func Start(tb testing.TB, rulesFile string, targets ...string) *Prometheus {
	tb.Helper()
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		tb.Fatal(err)
	}
	dir, addr := tb.TempDir(), testkit.FreeAddr(tb)
	config, logFile := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "log")
	for path, text := range map[string]string{
		filepath.Join(dir, "alerts.yaml"): hasten.Replace(string(rules)),
		config: fmt.Sprintf(`
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [alerts.yaml]
scrape_configs:
  - { job_name: hookledger, static_configs: [{ targets: ["%s"] }] }
`, strings.Join(targets, `", "`)),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	log, err := os.Create(logFile)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := exec.Command(Tool(tb, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		proc.Kill()
		if tb.Failed() {
			text, _ := os.ReadFile(logFile)
			tb.Logf("the log of Prometheus:\n%s", text)
		}
	})
	p := &Prometheus{tb, "http://" + addr}
	testkit.Eventually(tb, patience, func() error {
		_, err := p.get("/-/ready")
		return err
	})
	return p
}

func (p *Prometheus) get(path string) ([]byte, error) {
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

// Firing are the alerts that fire now, with their severity.
func (p *Prometheus) Firing() (map[string]string, error) {
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

// Await has meanwhile happen again and again, until check likes the alerts that fire.
func (p *Prometheus) Await(meanwhile func(), check func(firing map[string]string) error) {
	p.tb.Helper()
	testkit.Eventually(p.tb, patience, func() error {
		meanwhile()
		firing, err := p.Firing()
		if err != nil {
			return err
		}
		return check(firing)
	})
}
