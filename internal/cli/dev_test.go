package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

// beside runs the built binary in dir, as somebody beside a running process would.
func beside(t *testing.T, dir string, args ...string) result {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run hookledger %v: %v", args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// devBanner is what a running dev told, as JSON.
type devBanner struct {
	ReadySeconds float64 `json:"ready_seconds"`
	URL          string  `json:"url"`
	Admin        string  `json:"admin"`
	Config       string  `json:"config"`
	Sources      []struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
		Curl   string `json:"curl"`
	} `json:"sources"`
	Payments struct{ URL, Token, Curl string } `json:"payments"`
}

// lastBanner waits for the n-th banner in the output of p.
func lastBanner(t *testing.T, p *testkit.KillableProcess, n int) devBanner {
	t.Helper()
	var b devBanner
	testkit.Eventually(t, 2*time.Minute, func() error {
		found := 0
		for line := range strings.SplitSeq(p.Output(), "\n") {
			if strings.HasPrefix(line, `{"schema":"hookledger.dev.v1"`) && json.Unmarshal([]byte(line), &b) == nil {
				found++
			}
		}
		if found < n {
			return fmt.Errorf("%d banners, want %d", found, n)
		}
		return nil
	})
	return b
}

// balances reads `accounts list --json` as account and currency → balance.
func balances(t *testing.T, dir string, args ...string) map[string]int64 {
	t.Helper()
	r := beside(t, dir, append([]string{"accounts", "list", "--json"}, args...)...)
	if r.code != app.ExitOK {
		t.Fatalf("accounts list: exit code %d: %s", r.code, r.stderr)
	}
	jsonOf(t, r, "accounts-list")
	var list struct {
		Accounts []struct {
			AccountID string `json:"account_id"`
			Currency  string `json:"currency"`
			Balance   int64  `json:"balance"`
		} `json:"accounts"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, a := range list.Accounts {
		all[a.AccountID+" "+a.Currency] = a.Balance
	}
	return all
}

func awaitBalance(t *testing.T, dir, account string, want int64, args ...string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		if got := balances(t, dir, args...)[account]; got != want {
			return fmt.Errorf("balance of %s: got %d, want %d", account, got, want)
		}
		return nil
	})
}

// paste runs a command of the banner as a shell would that it was pasted into.
func paste(t *testing.T, shell, command string) {
	t.Helper()
	cmd := exec.Command(shell)
	cmd.Stdin = strings.NewReader(command)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "HTTP/1.1 20") {
		t.Errorf("%s: %v\n%s\nanswered\n%s", shell, err, command, out)
	}
}

func verified(t *testing.T, dir string, args ...string) {
	t.Helper()
	r := beside(t, dir, append([]string{"verify", "--json"}, args...)...)
	v := jsonOf(t, r, "verify")
	if r.code != app.ExitOK || v["ok"] != true || v["unaccounted_events"] != 0.0 {
		t.Errorf("verify: exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for _, key := range []string{"checks", "notes"} {
		if _, ok := v[key].([]any); !ok {
			t.Errorf("verify: no list %s in %s", key, r.stdout)
		}
	}
}

// TestDev_FromNothingToABalanceAndBack is the first hour of a newcomer.
func TestDev_FromNothingToABalanceAndBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listen, admin, kafka := testkit.FreeAddr(t), testkit.FreeAddr(t), strconv.Itoa(testkit.FreePort(t))
	args := []string{"dev", "--json", "--listen", listen, "--payments", "127.0.0.1:0", "--admin", admin, "--kafka-port", kafka}
	p := testkit.StartHookledger(t, testkit.ProcessOptions{Args: args, Dir: dir, ReadyURL: "http://" + admin + "/readyz", ReadyWithin: 2 * time.Minute})
	b := lastBanner(t, p, 1)
	if len(b.Sources) != 3 || b.URL != "http://"+listen || b.Admin != "http://"+admin {
		t.Fatalf("got banner %+v", b)
	}
	if info, err := os.Stat(filepath.Join(dir, ".hookledger", "hookledger.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("configuration of dev: %v %v, want mode 0600", info, err)
	}

	pasted := int64(0)
	for _, s := range b.Sources {
		for _, shell := range []string{"bash", "sh", "bash"} { // the same command again is a new event
			paste(t, shell, s.Curl)
			pasted++
		}
	}
	awaitBalance(t, dir, "user_1 EUR", 1250*pasted)
	paste(t, "bash", b.Payments.Curl) // each time with another key
	paste(t, "bash", b.Payments.Curl)
	awaitBalance(t, dir, "user_2 EUR", 200)

	// A second dev on the same data, or on the same ports, refuses and says why.
	r := beside(t, dir, "dev", "--listen", "127.0.0.1:0", "--payments", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--kafka-port", "0")
	r.want(t, app.ExitFailed, "in use by process "+strconv.Itoa(p.PID()))
	r = beside(t, t.TempDir(), args...)
	r.want(t, app.ExitUsage, listen, "--listen", admin, "--admin", "127.0.0.1:"+kafka, "--kafka-port")

	// Every command works beside it, and a provider can be played.
	beside(t, dir, "send", "--source", "acme", "--count", "50", "--debits", "0.5", "--duplicates", "0.5", "--seed", "3").want(t, app.ExitOK)
	beside(t, dir, "send", "--source", "acme", "--count", "50", "--debits", "0.5", "--seed", "3").want(t, app.ExitOK)
	beside(t, dir, "config", "check").want(t, app.ExitOK)
	beside(t, dir, "topics", "check").want(t, app.ExitOK)
	beside(t, dir, "migrate", "status", "--json").want(t, app.ExitOK)
	testkit.Eventually(t, time.Minute, func() error {
		got := beside(t, dir, "events", "list", "--source", "acme", "--json", "--limit", "0")
		if n := strings.Count(got.stdout, `"event_id":"send_3_`); n != 50 {
			return fmt.Errorf("%d of 50 events are on record", n)
		}
		return nil
	})
	verified(t, dir)
	before := balances(t, dir)

	// Killed or stopped, everything is still there, the commands of the first banner too.
	p.Kill()
	p.Restart()
	again := lastBanner(t, p, 2)
	if got := balances(t, dir); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("after kill -9: got %v, want %v", got, before)
	}
	for i, s := range again.Sources {
		if s.Secret != b.Sources[i].Secret {
			t.Errorf("%s has another secret after a restart", s.Name)
		}
	}
	paste(t, "bash", b.Sources[0].Curl)
	awaitBalance(t, dir, "user_1 EUR", before["user_1 EUR"]+1250)
	p.Signal(syscall.SIGINT)
	if code := p.Wait(30 * time.Second); code != app.ExitOK {
		t.Errorf("after SIGINT: exit code %d, want 0", code)
	}
	p.Restart()
	lastBanner(t, p, 3)
	awaitBalance(t, dir, "user_1 EUR", before["user_1 EUR"]+1250)
	verified(t, dir)
	if code := p.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("after SIGTERM: exit code %d, want 0", code)
	}

	// --reset forgets all.
	fresh := testkit.StartHookledger(t, testkit.ProcessOptions{Args: append(args, "--reset"), Dir: dir, ReadyURL: "http://" + admin + "/readyz", ReadyWithin: 2 * time.Minute})
	lastBanner(t, fresh, 1)
	if got := balances(t, dir); len(got) != 0 {
		t.Errorf("after --reset: got %v, want no accounts", got)
	}
	fresh.Stop(time.Minute)
}

func TestDev_TakenPortIsNamedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	dir := t.TempDir()
	r := beside(t, dir, "dev", "--listen", ln.Addr().String(), "--payments", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--kafka-port", "0")
	r.want(t, app.ExitUsage, ln.Addr().String(), "--listen")
	if _, err := os.Stat(filepath.Join(dir, ".hookledger", "kafka")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dev that refuses leaves data: %v", err)
	}
}
