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

// asRole runs a command here with the rights of role.
func (in installation) asRole(role string, args ...string) result {
	return hookledger(envAs(in.database, role), append(args, "--config", in.file)...)
}

// settled waits until every event that was sent is applied.
func (in installation) settled(t *testing.T, events int64) {
	t.Helper()
	testkit.Eventually(t, 2*time.Minute, func() error {
		if n := scanSQL[int64](t, in.database, `select count(*) from processed_events`); n != events {
			return fmt.Errorf("%d of %d events", n, events)
		}
		return nil
	})
}

// Real workers and a real receiver: what the plan says is what the run does, beside
// workers and without them, each with the rights that its help names.
func TestReplay_PlanAndRunBesideWorkersAndWithout(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	in.start(t, "ingest", in.ingestAdmin)
	worker := in.start(t, "consume", in.worker)
	in.run(t, "replay", "plan", "--partition", "99").want(t, app.ExitUsage, "has no partition 99: its partitions are 0 to ")
	in.run(t, "replay", "reset", "--partition", "99", "--to-earliest", "--dry-run").want(t, app.ExitUsage, "has no partition 99: its partitions are 0 to ")
	in.run(t, "send", "--count", "200", "--seed", "1").want(t, app.ExitOK)
	in.settled(t, 200)
	plan := filepath.Join(in.dir, "known.plan")

	r := in.asRole("hookledger_reader", "replay", "plan", "--out", plan, "--json")
	r.want(t, app.ExitOK)
	known := jsonOf(t, r, "replay-plan")
	if known["records"] != 200.0 || known["would"].(map[string]any)["duplicate"] != 200.0 || known["accounts"] != 0.0 || len(known["moves"].([]any)) != 0 {
		t.Errorf("plan of known events: got %v", known)
	}
	for _, o := range []string{"applied", "duplicate", "same_effect", "conflict", "ignored", "quarantined"} {
		if _, ok := known["would"].(map[string]any)[o].(float64); !ok {
			t.Errorf("plan: no count of %s in %v", o, known["would"])
		}
	}
	if strings.Count(r.stdout, `"schema"`) != 1 || r.stderr != "" {
		t.Errorf("plan --json: got %q and %q on stderr", r.stdout, r.stderr)
	}
	in.asRole("hookledger_reader", "replay", "run", plan, "--reason", "test").want(t, app.ExitFailed, "permission denied", "hookledger_operator")
	in.asRole("hookledger_operator", "replay", "run", plan).want(t, app.ExitUsage, "--reason is needed")
	beside := jsonOf(t, in.asRole("hookledger_operator", "replay", "run", plan, "--reason", "test", "--json"), "replay-run")
	if differences, ok := beside["differences"].([]any); !ok || len(differences) != 0 {
		t.Errorf("differences: got %v, want an empty list", beside["differences"])
	}
	if beside["matches_plan"] != true || beside["records"] != 200.0 || beside["replay_id"] != 1.0 || beside["outcome"].(map[string]any)["duplicate"] != 200.0 {
		t.Errorf("run beside the worker: got %v", beside)
	}
	in.asRole("hookledger_operator", "replay", "run", plan, "--reason", "test").want(t, app.ExitUsage, "was run already", "hookledger replay plan")

	if code := worker.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("worker: exit code %d", code)
	}
	in.run(t, "send", "--count", "100", "--seed", "2").want(t, app.ExitOK)
	if one := in.asRole("hookledger_reader", "replay", "plan", "--event-id", "send_2_0"); !strings.Contains(one.stdout, "1 record, 1 account affected") {
		t.Errorf("plan of one record: got %q", one.stdout)
	}
	text := in.asRole("hookledger_reader", "replay", "plan", "--source", "stripe", "--out", plan)
	text.want(t, app.ExitOK)
	for _, want := range []string{"applied", "100", "duplicate", "200", "money: ", "hookledger replay run " + plan} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("plan: no %q in %q", want, text.stdout)
		}
	}
	before := in.asRole("hookledger_reader", "accounts", "list").stdout
	in.asRole("hookledger_operator", "replay", "run", plan, "--dry-run").want(t, app.ExitOK)
	if now := in.asRole("hookledger_reader", "accounts", "list").stdout; now != before {
		t.Errorf("a dry run moved money: got %s, want %s", now, before)
	}
	without := in.asRole("hookledger_operator", "replay", "run", plan, "--reason", "the worker was dead")
	without.want(t, app.ExitOK)
	if !strings.Contains(without.stdout, "as planned") || !strings.Contains(without.stdout, "hookledger replay show 2") {
		t.Errorf("run: got %q", without.stdout)
	}
	after := in.asRole("hookledger_reader", "accounts", "list").stdout

	in.start(t, "consume", in.worker) // it reads the same records, and finds them done
	testkit.Eventually(t, 2*time.Minute, func() error {
		v := jsonOf(t, in.asRole("hookledger_reader", "lag", "--json"), "lag")
		if v["records_behind"] != 0.0 {
			return fmt.Errorf("%v records behind", v["records_behind"])
		}
		return nil
	})
	if now := in.asRole("hookledger_reader", "accounts", "list").stdout; now != after || now == before {
		t.Errorf("the worker moved money again: got %s, want %s", now, after)
	}
	verified(t, in.dir, "--config", in.file)

	list := jsonOf(t, in.asRole("hookledger_reader", "replay", "list", "--json"), "replay-list")["replays"].([]any)
	if len(list) != 2 || list[0].(map[string]any)["reason"] != "the worker was dead" || list[0].(map[string]any)["state"] != "done" {
		t.Errorf("list: got %v", list)
	}
	show := jsonOf(t, in.asRole("hookledger_reader", "replay", "show", "2", "--json"), "replay-show")
	if show["plan"].(map[string]any)["plan_hash"] != show["plan_hash"] || show["outcome"].(map[string]any)["applied"] != 100.0 || show["database_user"] == "" {
		t.Errorf("show: got %v", show)
	}
	in.asRole("hookledger_reader", "replay", "show", "2").want(t, app.ExitOK)
	execSQL(t, in.database, `update replays set state = 'running', finished_at = null where replay_id = 2`)
	if r := in.asRole("hookledger_reader", "replay", "show", "2"); !strings.Contains(r.stdout, "alive at") {
		t.Errorf("show a run: got %q, want when it was alive", r.stdout)
	}
	execSQL(t, in.database, `update replays set state = 'done', finished_at = now() where replay_id = 2`)
	in.asRole("hookledger_reader", "replay", "plan", "--event-id", "send_1_0", "--out", plan).want(t, app.ExitOK)
	standby := "HOOKLEDGER_DATABASE_URL=" + as(in.database, "hookledger_operator") + "&default_transaction_read_only=on"
	hookledger([]string{standby}, "replay", "run", plan, "--reason", "r", "--config", in.file).want(t, app.ExitFailed, "must lead to the primary")
	life := jsonOf(t, in.asRole("hookledger_reader", "events", "show", "send_1_0", "--source", "stripe", "--json"), "events-show")["replays"].([]any)
	if len(life) != 2 || life[1].(map[string]any)["reason"] != "the worker was dead" {
		t.Errorf("replays of an event: got %v, want both", life)
	}
	in.asRole("hookledger_reader", "replay", "show", "9").want(t, app.ExitFailed, "hookledger replay list")
	in.asRole("hookledger_reader", "replay", "show", "x").want(t, app.ExitUsage, "hookledger replay list")
}

func TestReplay_WrongPlansAndFlagsAreUsage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.plan")
	if err := os.WriteFile(file, []byte(`{"schema":"hookledger.replay-plan.v1","records":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	hookledger(nil, "replay", "run", file, "--reason", "r").want(t, app.ExitUsage, "changed after it was made", "hookledger replay plan")
	hookledger(nil, "replay", "run", file+".none", "--reason", "r").want(t, app.ExitUsage, "no such file")
	hookledger(nil, "replay", "run").want(t, app.ExitUsage, "hookledger replay run --help")
	hookledger(nil, "replay", "list", "--limit", "-1").want(t, app.ExitUsage, "--limit is -1")
	hookledger(nil, "replay", "plan").want(t, app.ExitUsage, "no sources are configured")
	env := []string{"HOOKLEDGER_KAFKA_DURABILITY=single", "HOOKLEDGER_DATABASE_URL=" + testkit.LedgerURL(t), "HOOKLEDGER_KAFKA_BROKERS=127.0.0.1:1", acme("user_id")}
	for _, c := range [][2]string{{"--from-time", "yesterday"}, {"--source", "nope"}, {"--partition", "-1"}, {"--from-offset", "-1"}} {
		hookledger(env, "replay", "plan", c[0], c[1]).want(t, app.ExitUsage, c[0])
	}
	hookledger(env, "replay", "plan", "--from-offset", "50", "--to-offset", "10").want(t, app.ExitUsage, "--from-offset is not before --to-offset")
	hookledger(env, "replay", "plan", "--from-time", "2026-11-29T04:00:00Z", "--to-time", "2026-11-29T03:00:00Z").want(t, app.ExitUsage, "--from-time is not before --to-time")
}

// A gap at the provider is closed from its listing; the workers do the rest.
func TestEventsImport_ClosesAGap(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	in.start(t, "consume", in.worker)
	intent := func(id string, amount int) string {
		return fmt.Sprintf(`{"id":"%s","object":"event","type":"payment_intent.succeeded","created":1764410400,"livemode":false,`+
			`"data":{"object":{"id":"pi_%s","object":"payment_intent","amount_received":%d,"currency":"eur","metadata":{"account_id":"alice"}}}}`, id, id, amount)
	}
	file := filepath.Join(in.dir, "events.jsonl")
	text := intent("evt_1", 100) + "\n" + `{"object":"list","data":[` + intent("evt_2", 20) + "]}\n\x1b]0;owned\x07\n" + intent("evt_3", 3) + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"events", "import", file, "--source", "stripe"}
	nobody := []string{"HOOKLEDGER_DATABASE_URL=postgres://nobody@127.0.0.1:1/none"} // an import needs no Postgres
	with := func(env []string, more ...string) result {
		return hookledger(env, append(append([]string{"--config", in.file}, args...), more...)...)
	}
	with(nobody).want(t, app.ExitUsage, "--reason is needed")
	dry := with(envAs(in.database, "hookledger_reader"), "--dry-run", "--json")
	dry.want(t, app.ExitFailed, "1 line is bad")
	if v := jsonOf(t, dry, "events-import"); v["known"] != 0.0 || v["new"] != 3.0 || v["would"].(map[string]any)["applied"] != 3.0 || v["imported"] != 0.0 || v["dry_run"] != true {
		t.Errorf("dry run: got %v", v)
	}
	done := with(nobody, "--reason", "gap of the 29th")
	done.want(t, app.ExitFailed, "1 line is bad, and 3 events are good")
	if !strings.Contains(done.stdout, "3 imported") || strings.ContainsAny(done.stdout+done.stderr, "\x1b\x07") {
		t.Errorf("import: got %q", done.stdout)
	}
	in.settled(t, 3)
	if got := scanSQL[int64](t, in.database, `select balance from accounts where account_id = 'alice'`); got != 123 {
		t.Errorf("got balance %d, want 123", got)
	}
	verified(t, in.dir, "--config", in.file)
	if v := jsonOf(t, with(envAs(in.database, "hookledger_reader"), "--dry-run", "--json"), "events-import"); v["known"] != 3.0 || v["new"] != 0.0 {
		t.Errorf("dry run of the same file: got %v", v)
	}
	hookledger(nobody, "events", "import", file, "--source", "nope", "--reason", "r", "--config", in.file).want(t, app.ExitUsage, "use one of stripe")
	for name, c := range map[string]struct {
		text, want string
		code       int
	}{
		"empty":    {"", "there are no lines", app.ExitUsage},
		"indented": {"[\n{\n}\n]\n", "writes a document as a line", app.ExitFailed},
		"no event": {`{"object":"list","data":[]}`, "", app.ExitOK},
	} {
		odd := filepath.Join(in.dir, name)
		if err := os.WriteFile(odd, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		hookledger(nobody, "events", "import", odd, "--source", "stripe", "--reason", "r", "--config", in.file).want(t, c.code, c.want)
	}
	hookledger(nobody, "events", "import", in.dir, "--source", "stripe", "--reason", "r", "--config", in.file).want(t, app.ExitUsage, "is a folder")
	hookledger(nobody, "events", "import", file+".none", "--source", "stripe", "--reason", "r", "--config", in.file).want(t, app.ExitUsage, "no such file")
}
