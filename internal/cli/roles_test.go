package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

// installation is a configuration on real Postgres and kfake, with nothing prepared.
type installation struct {
	dir, file, database         string
	listen, ingestAdmin, worker string
	secretFile                  string
}

func install(t *testing.T) installation {
	t.Helper()
	dir := t.TempDir()
	in := installation{
		dir: dir, file: filepath.Join(dir, "c.yaml"), database: testkit.PostgresURL(t), secretFile: filepath.Join(dir, "secret"),
		listen: testkit.FreeAddr(t), ingestAdmin: testkit.FreeAddr(t), worker: testkit.FreeAddr(t),
	}
	in.writeSecret(t, "whsec_first_0123456789abcdef")
	text := fmt.Sprintf(`
kafka: { brokers: [%s], topic: payments, partitions: 3, replication: 1, group: books, durability: single }
database: { url: %q }
ingest: { listen: %q, admin: %q }
consume: { admin: %q }
log: { format: json }
sources:
  - name: stripe
    provider: stripe
    secrets: [{ id: s, file: %s }]
    account: data.object.metadata.account_id
`, strings.Join(testkit.Kfake(t).ListenAddrs(), ", "), in.database, in.listen, in.ingestAdmin, in.worker, in.secretFile)
	if err := os.WriteFile(in.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return in
}

func (in installation) writeSecret(t *testing.T, secret string) {
	t.Helper()
	if err := os.WriteFile(in.secretFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (in installation) run(t *testing.T, args ...string) result {
	t.Helper()
	return beside(t, in.dir, append(args, "--config", in.file)...)
}

func (in installation) start(t *testing.T, role, admin string) *testkit.KillableProcess {
	t.Helper()
	return testkit.StartHookledger(t, testkit.ProcessOptions{Args: []string{role, "--config", in.file}, Dir: in.dir, ReadyURL: "http://" + admin + "/readyz"})
}

func TestRoles_PrepareRunAndStop(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "ingest").want(t, app.ExitUsage, "hookledger topics apply")
	in.run(t, "consume").want(t, app.ExitUsage, "hookledger migrate up")
	in.run(t, "accounts", "list").want(t, app.ExitUsage, "hookledger migrate up")
	in.run(t, "topics", "check").want(t, app.ExitFound)

	dry := jsonOf(t, in.run(t, "migrate", "up", "--dry-run", "--json"), "migrate-up")
	if len(dry["changed"].([]any)) == 0 || dry["dry_run"] != true {
		t.Errorf("dry run of migrate up: got %v", dry)
	}
	in.run(t, "accounts", "list").want(t, app.ExitUsage, "hookledger migrate up")
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply", "--dry-run").want(t, app.ExitOK)
	in.run(t, "topics", "check").want(t, app.ExitFound)
	created := jsonOf(t, in.run(t, "topics", "apply", "--json"), "topics-apply")
	if created["created"] != true {
		t.Errorf("topics apply: got %v", created)
	}
	in.run(t, "topics", "apply").want(t, app.ExitOK)

	receiver, worker := in.start(t, "ingest", in.ingestAdmin), in.start(t, "consume", in.worker)
	history := filepath.Join(in.dir, "h.jsonl")
	sent := jsonOf(t, in.run(t, "send", "--count", "200", "--duplicates", "0.3", "--seed", "5", "--concurrency", "16", "--history", history, "--json"), "send")
	if sent["acknowledged"] != 200.0 || sent["refused"] != 0.0 || sent["deliveries"].(float64) <= 200 {
		t.Errorf("send: got %v", sent)
	}
	want := acknowledged(t, history)
	testkit.Eventually(t, time.Minute, func() error {
		if got := balances(t, in.dir, "--config", in.file); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("balances: got %v, want %v", got, want)
		}
		return nil
	})
	verified(t, in.dir, "--config", in.file)
	in.run(t, "events", "show", "send_5_0").want(t, app.ExitOK)
	in.run(t, "events", "show", "nope").want(t, app.ExitFailed, "not on record")
	in.run(t, "accounts", "show", "acct_1").want(t, app.ExitOK)
	in.run(t, "accounts", "show", "nobody").want(t, app.ExitFailed, "accounts list")
	checkMetricsAreDocumented(t, in.ingestAdmin, in.worker)

	// A new secret is used after SIGHUP.
	in.writeSecret(t, "whsec_second_0123456789abcdef")
	receiver.Signal(syscall.SIGHUP)
	worker.Signal(syscall.SIGHUP)
	testkit.Eventually(t, time.Minute, func() error {
		if r := in.run(t, "send", "--count", "1", "--no-retry"); r.code != app.ExitOK {
			return fmt.Errorf("send with the new secret: %s", r.stderr)
		}
		return nil
	})

	// The same ID before and after: the file changed, not the configuration.
	used := jsonOf(t, in.run(t, "sources", "secrets", "stripe", "--json"), "sources-secrets")["secrets"].([]any)
	if first := used[0].(map[string]any); len(used) != 1 || first["events"].(float64) < 201 || first["last_matched"] == nil || first["configured"] != true {
		t.Errorf("sources secrets: got %v", used)
	}

	if code := receiver.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("ingest after SIGTERM: exit code %d, want 0", code)
	}
	if code := worker.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("consume after SIGTERM: exit code %d, want 0", code)
	}
	for _, p := range []*testkit.KillableProcess{receiver, worker} {
		if out := p.Output(); strings.Contains(out, "_0123456789abcdef") || strings.Contains(out, "amount_received") {
			t.Errorf("the log holds a secret or a payload:\n%s", out)
		}
	}
	in.run(t, "send", "--count", "1", "--no-retry").want(t, app.ExitFailed, "never acknowledged")

	breakBooks(t, in.database)
	r := in.run(t, "verify", "--json")
	if v := jsonOf(t, r, "verify"); r.code != app.ExitFound || v["ok"] != false {
		t.Errorf("verify of broken books: exit code %d: %s", r.code, r.stdout)
	}
	in.run(t, "migrate", "down").want(t, app.ExitUsage, "--yes")
	in.run(t, "migrate", "down", "--yes").want(t, app.ExitOK)
	in.run(t, "consume").want(t, app.ExitUsage, "hookledger migrate up")
}

// acknowledged adds up the history: what the accounts must hold, each event once.
func acknowledged(t *testing.T, path string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sums, seen := map[string]int64{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var l struct {
			EventID  string `json:"event_id"`
			Account  string `json:"account"`
			Amount   int64  `json:"amount"`
			Currency string `json:"currency"`
			Result   string `json:"result"`
			HTTP     int    `json:"http"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("history: %v in %q", err, line)
		}
		if l.Result == "ok" && l.HTTP == 200 && !seen[l.EventID] {
			seen[l.EventID] = true
			sums[l.Account+" "+l.Currency] += l.Amount
		}
	}
	return sums
}

// breakBooks changes a balance behind the back of everything.
func breakBooks(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "update accounts set balance = balance + 1 where account_id = 'acct_1'"); err != nil {
		t.Fatal(err)
	}
}

func TestRoles_TakenAdminPortIsUsage(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	in.start(t, "consume", in.worker)
	in.run(t, "consume").want(t, app.ExitUsage, in.worker, "consume.admin")
}

func TestRoles_WaitForWhatIsAwayAndSaySo(t *testing.T) {
	t.Parallel()
	admin := testkit.FreeAddr(t)
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := fmt.Sprintf(`
kafka: { brokers: [%q], durability: single, replication: 1 }
database: { url: "postgres://nobody@%s/none" }
consume: { admin: %q }
sources: [{ name: s, provider: stripe, account: a, secrets: [{ value: whsec_0123456789 }] }]
`, testkit.FreeAddr(t), testkit.FreeAddr(t), admin)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testkit.StartHookledger(t, testkit.ProcessOptions{Args: []string{"consume", "--config", file}})
	testkit.Eventually(t, time.Minute, func() error {
		if code, _ := get(t, admin, "/livez"); code != http.StatusOK {
			return fmt.Errorf("/livez is %d, want 200", code)
		}
		code, body := get(t, admin, "/readyz")
		if code != http.StatusServiceUnavailable || !strings.Contains(body, `"name":"consume"`) || !strings.Contains(body, `"since"`) {
			return fmt.Errorf("/readyz is %d %s, want 503 with the check", code, body)
		}
		return nil
	})
	if code := p.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("after SIGTERM: exit code %d, want 0", code)
	}
}

// get asks an admin listener; code 0 is no answer.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
