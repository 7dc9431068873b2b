package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

// A real receiver signs for the records, a real worker applies them, and a role that may
// only SELECT proves it all: whole, by range, by history and by increments.
func TestVerify_ByAReader(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	in.start(t, "ingest", in.ingestAdmin)
	in.start(t, "consume", in.worker)
	history := filepath.Join(in.dir, "h.jsonl")
	send := func(seed, count int) {
		t.Helper()
		in.run(t, "send", "--count", fmt.Sprint(count), "--seed", fmt.Sprint(seed), "--history", history).want(t, app.ExitOK)
	}
	reader := append(envAs(in.database, "hookledger_reader"), "STRIPE=unused")
	prove := func(args ...string) (result, map[string]any) {
		t.Helper()
		r := hookledger(reader, append([]string{"--config", in.file, "verify", "--json"}, args...)...)
		return r, jsonOf(t, r, "verify")
	}
	found := func(v map[string]any, list, name string) map[string]any {
		for _, one := range v[list].([]any) {
			if c := one.(map[string]any); c["name"] == name {
				return c
			}
		}
		return nil
	}
	settled := func(n int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if _, v := prove(); v["records"] != float64(n) {
				return fmt.Errorf("%v records, want %d", v["records"], n)
			}
			return nil
		})
	}
	send(1, 60)
	settled(60)
	r, v := prove("--history", history, "--strict")
	if r.code != app.ExitOK || v["ok"] != true || v["unaccounted_events"] != 0.0 || v["range"] == nil {
		t.Fatalf("got exit code %d: %s", r.code, r.stdout)
	}
	for name, want := range map[string]string{"signature_mismatch": "60 signatures", "acknowledged_missing": "60 acknowledged deliveries of 60 events", "meaning_mismatch": "60 entries"} {
		if c := found(v, "checks", name); c == nil || c["found"] != want {
			t.Errorf("check %s: got %v, want %q", name, c, want)
		}
	}
	if c := found(v, "notes", "signatures_not_checkable"); c != nil {
		t.Errorf("got %v", c)
	}
	_, v = prove("--from-time", "2020-01-01T00:00:00Z", "--to-time", "2020-01-02T00:00:00Z")
	if v["ok"] != true || v["records"] != 0.0 {
		t.Errorf("a range without records: got %v", v)
	}

	mark := filepath.Join(in.dir, "state", "verify.mark")
	for i, want := range []float64{60, 0} {
		if _, v = prove("--incremental", "--mark", mark); v["ok"] != true || v["records"] != want {
			t.Errorf("increment %d: got %v, want %v records", i, v, want)
		}
	}
	// What could not be kept is said behind the proof, not instead of it.
	unkept := hookledger(reader, "--config", in.file, "verify", "--incremental", "--mark", filepath.Join(history, "no", "mark"))
	unkept.want(t, app.ExitUsage, "not a directory")
	unwritten := hookledger(reader, "--config", in.file, "verify", "--incremental", "--mark", "/proc/none/mark")
	unwritten.want(t, app.ExitFailed, "write mark")
	if !strings.Contains(unwritten.stdout, "the books are right\n") {
		t.Errorf("got %q", unwritten.stdout)
	}
	text := hookledger(reader, "--config", in.file, "verify", "--incremental", "--mark", mark)
	if !strings.HasSuffix(text.stdout, "notes; to look at them:\n  mark: hookledger --config "+in.file+" verify\n") {
		t.Errorf("got %q", text.stdout)
	}
	send(2, 5)
	settled(65)
	if _, v = prove("--incremental", "--mark", mark); v["ok"] != true || v["records"] != 5.0 {
		t.Errorf("increment after five more: got %v", v)
	}

	// Entry and balance changed alike, and an acknowledged event that is nowhere.
	execSQL(t, in.database, `update ledger_entries set amount = amount + 100 where event_id = 'send_1_7'`,
		`update accounts a set balance = balance + 100 from ledger_entries l where l.event_id = 'send_1_7' and a.account_id = l.account_id and a.currency = l.currency`)
	before, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if r, v = prove("--incremental", "--mark", mark); r.code != app.ExitFound || found(v, "checks", "balances")["ok"] != false {
		t.Errorf("increment after an old entry was changed: exit code %d: %s", r.code, r.stdout)
	}
	if after, err := os.ReadFile(mark); err != nil || string(after) != string(before) {
		t.Errorf("a run that found something moved the mark: %v", err)
	}
	lost := filepath.Join(in.dir, "lost.jsonl")
	if err := os.WriteFile(lost, []byte(`{"source":"stripe","event_id":"evt_lost","result":"ok","http":200,"t1":"`+time.Now().UTC().Format(time.RFC3339)+`"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, v = prove("--history", lost)
	if r.code != app.ExitFound || !strings.Contains(fmt.Sprint(found(v, "checks", "acknowledged_missing")["found"]), "stripe/evt_lost") {
		t.Errorf("exit code %d: %s", r.code, r.stdout)
	}
	if c := found(v, "checks", "meaning_mismatch"); c["ok"] != false || c["next"] != "hookledger --config "+in.file+" events show send_1_7" {
		t.Errorf("got %v", c)
	}
	human := hookledger(reader, "--config", in.file, "verify")
	human.want(t, app.ExitFound)
	if !strings.Contains(human.stdout, "THE BOOKS ARE NOT RIGHT") || strings.Contains(human.stdout+human.stderr, "\x1b") {
		t.Errorf("got %q and %q", human.stdout, human.stderr)
	}

	for _, args := range [][]string{
		{"--incremental", "--from-time", "2026-01-01T00:00:00Z"}, {"--from-time", "yesterday"},
		{"--from-time", "2026-01-02T00:00:00Z", "--to-time", "2026-01-01T00:00:00Z"}, {"--incremental", "--mark", ""},
	} {
		in.run(t, append([]string{"verify"}, args...)...).want(t, app.ExitUsage)
	}
	in.run(t, "verify", "--incremental", "--mark", history).want(t, app.ExitUsage, "it is no mark of verify")
	in.run(t, "verify", "--history", in.file+".none").want(t, app.ExitUsage, "no such file")
	in.run(t, "verify", "--history", in.file).want(t, app.ExitUsage, "is not a line of a history")
	in.run(t, "verify", "--history", in.dir).want(t, app.ExitUsage, "is a directory")
	in.run(t, "verify", "--incremental", "--mark", "/dev/zero").want(t, app.ExitUsage, "it is no mark of verify")
	in.run(t, "verify", "--mark", mark).want(t, app.ExitUsage, "--mark is for --incremental")
}
