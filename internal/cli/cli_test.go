package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
)

var update = flag.Bool("update", false, "write golden files and generated documents anew")

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// hookledger runs a command in this process, with nothing in its environment but env.
func hookledger(env []string, args ...string) result {
	var out, errs bytes.Buffer
	code := Run(args, app.Process{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: env})
	return result{code, out.String(), errs.String()}
}

func (r result) want(t *testing.T, code int, stderr ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("got exit code %d, want %d; stderr: %s", r.code, code, r.stderr)
	}
	for _, s := range stderr {
		if !strings.Contains(r.stderr, s) {
			t.Errorf("got stderr %q, want %q in it", r.stderr, s)
		}
	}
}

// commands lists all commands, hidden ones too.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, child := range c.Commands() {
		if child.Name() != "help" && child.Name() != "completion" {
			all = append(all, commands(child)...)
		}
	}
	return all
}

func TestHelp_OfEveryCommandIsGolden(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range commands(newRoot(&app.App{})) {
		args := strings.Fields(c.CommandPath())[1:]
		name := strings.Join(append([]string{"hookledger"}, args...), "-") + ".txt"
		seen[name] = true
		r := hookledger(nil, append(slices.Clone(args), "--help")...)
		r.want(t, app.ExitOK)
		if r.stderr != "" {
			t.Errorf("%s: help goes to stderr", name)
		}
		if c.Example == "" && c.Runnable() && !c.HasSubCommands() {
			t.Errorf("%s has no example", c.CommandPath())
		}
		golden := filepath.Join("testdata", "help", name)
		if *update {
			if err := os.WriteFile(golden, []byte(r.stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if r.stdout != string(want) {
			t.Errorf("%s differs from its golden file (go test ./internal/cli -args -update):\n%s", name, r.stdout)
		}
		for i, line := range strings.Split(r.stdout, "\n") {
			if len([]rune(line)) > 140 {
				t.Errorf("%s:%d is %d characters wide", name, i+1, len([]rune(line)))
			}
		}
	}
	files, _ := filepath.Glob("testdata/help/*.txt")
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("%s is of no command: remove it", f)
		}
	}
}

func TestRun_UsageErrorsAre2AndSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"consumme"}, "did you mean `hookledger consume`?"},
		{[]string{"frobnicate"}, "see `hookledger --help`"},
		{[]string{"migrate"}, "see `hookledger migrate --help`"},
		{[]string{"migrate", "upp"}, "did you mean `hookledger migrate up`?"},
		{[]string{"version", "--nope"}, "see `hookledger version --help`"},
		{[]string{"version", "extra"}, "see `hookledger version --help`"},
		{[]string{"accounts", "show"}, "see `hookledger accounts show --help`"},
		{[]string{"send", "--count", "x"}, "see `hookledger send --help`"},
		{[]string{"migrate", "down"}, "--dry-run"},
		{[]string{"events", "list", "--outcome", "duplicate"}, "use one of applied"},
		{[]string{"accounts", "list", "--limit", "-1"}, "--limit is -1"},
		{[]string{"quarantine", "discard", "--source", "", "--with-reason", "bad_amount", "--reason", "r"}, "--source is empty"},
		{[]string{"replay", "plan", "--account="}, "--account is empty"},
		{[]string{"replay", "reset", "--to-time", "", "--to-earliest", "--dry-run"}, "--to-time is empty"},
		{[]string{"verify", "--from-time", ""}, "--from-time is empty"},
		{[]string{"replay", "plan", "--type", "a", "--type", ""}, "--type is empty"},
		{[]string{"replay", "plan", "--event-id", ""}, "--event-id is empty"},
		{[]string{"replay", "plan", "--out", ""}, "--out is empty"},
		{[]string{"replay", "plan", "--out", "/nonexistent/p"}, "no such file"},
		{[]string{"replay", "plan", "--out", "/"}, "/ is a folder"},
		{[]string{"replay", "run", "/dev/null", "--dry-run"}, "`hookledger replay plan --out FILE` makes one"},
		{[]string{"replay", "run", "p", "--reason", "a\xff"}, "they are not UTF-8"},
		{[]string{"send", "--history", ""}, "--history is empty"},
		{[]string{"accounts", "list", "--config", ""}, "--config is empty"},
		{[]string{"config", "reference", "--markdown", "--json"}, "exclude each other"},
		{[]string{"dev", "--config", "x"}, "leave --config out"},
		{[]string{"dev", "--listen", "8080"}, "host:port"},
	} {
		r := hookledger(nil, c.args...)
		r.want(t, app.ExitUsage, c.want)
		if r.stdout != "" {
			t.Errorf("%v: an error goes to stdout: %q", c.args, r.stdout)
		}
	}
}

func TestRun_ConfigurationErrorsAre2(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("kafka:\n  brokrs: [a]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"config", "show"}, {"config", "check"}, {"ingest"}, {"consume"}, {"verify"}, {"accounts", "list"},
		{"events", "list"}, {"events", "show", "x"}, {"migrate", "up"}, {"migrate", "status"}, {"topics", "apply"}, {"topics", "check"}, {"send"},
	} {
		r := hookledger(nil, append(args, "--config", file)...)
		r.want(t, app.ExitUsage, file+":2: unknown key kafka.brokrs: did you mean kafka.brokers?")
	}
	hookledger(nil, "config", "show", "--config", "/does/not/exist.yaml").want(t, app.ExitUsage, "/does/not/exist.yaml")
	hookledger([]string{"HOOKLEDGER_CONFIG=/does/not/exist.yaml"}, "config", "show").want(t, app.ExitUsage, "/does/not/exist.yaml")
	hookledger([]string{"HOOKLEDGER_KAFKA_BROKER=a"}, "config", "show").want(t, app.ExitUsage, "HOOKLEDGER_KAFKA_BROKERS?")
	hookledger(nil, "accounts", "list").want(t, app.ExitUsage, "database.url is not set", "HOOKLEDGER_DATABASE_URL")
	hookledger(nil, "consume").want(t, app.ExitUsage, "database.url is not set", "no sources are configured")
	hookledger(nil, "ingest").want(t, app.ExitUsage, "no sources are configured")
}

func TestRun_WhatIsAwayIs1(t *testing.T) {
	t.Parallel()
	env := []string{"HOOKLEDGER_DATABASE_URL=postgres://nobody@127.0.0.1:1/none?connect_timeout=2"}
	hookledger(env, "accounts", "list").want(t, app.ExitFailed, "hookledger: ", "`hookledger doctor` looks at brokers and database")
	hookledger(env, "migrate", "status").want(t, app.ExitFailed)
}

// jsonOf checks that a command answered with one object and nothing else.
func jsonOf(t *testing.T, r result, schema string) map[string]any {
	t.Helper()
	if !strings.HasPrefix(r.stdout, `{"schema":"hookledger.`+schema+`.v1"`) {
		t.Errorf("got %q, want an object of schema %s", r.stdout, schema)
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v in %q", schema, err, r.stdout)
	}
	if dec.More() {
		t.Errorf("%s: something follows the object: %q", schema, r.stdout)
	}
	return v
}

func TestJSON_OfVersionAndConfig(t *testing.T) {
	t.Parallel()
	v := jsonOf(t, hookledger(nil, "version", "--json"), "version")
	for _, key := range []string{"version", "commit", "go", "os", "arch"} {
		if _, ok := v[key].(string); !ok {
			t.Errorf("version: no text %s in %v", key, v)
		}
	}
	env := []string{"HOOKLEDGER_KAFKA_DURABILITY=single", "HOOKLEDGER_DATABASE_URL=postgres://u:geheim@h/d",
		"HOOKLEDGER_SOURCES=[{name: s, provider: stripe, account: a, secrets: [{value: whsec_geheim_0123456789}]}]"}
	r := hookledger(env, "--json", "config", "show")
	show := jsonOf(t, r, "config-show")
	if strings.Contains(r.stdout, "geheim") {
		t.Errorf("config show prints a secret: %s", r.stdout)
	}
	first := show["settings"].([]any)[0].(map[string]any)
	if first["key"] != "kafka.brokers" || first["value"] != "127.0.0.1:9092" || first["origin"] != "default" {
		t.Errorf("got %v", first)
	}
	check := jsonOf(t, hookledger(env, "config", "check", "--json"), "config-check")
	if check["ok"] != true || check["sources"] != 1.0 || check["secrets"] != 1.0 {
		t.Errorf("got %v", check)
	}
	ref := jsonOf(t, hookledger(nil, "config", "reference", "--json"), "config-reference")
	if n := len(ref["keys"].([]any)); n < 40 {
		t.Errorf("got %d keys", n)
	}
}

func TestConfigCheck_NamesEveryBadSecret(t *testing.T) {
	t.Parallel()
	env := []string{"HOOKLEDGER_SOURCES=[{name: s, provider: stripe, account: a, secrets: [{env: HOOKLEDGER_TEST_NOT_SET}]}, {name: z, provider: stripe, account: a, secrets: [{file: /not/there}]}]"}
	hookledger(env, "config", "check").want(t, app.ExitUsage, "2 problems", "HOOKLEDGER_TEST_NOT_SET", "/not/there")
}

func TestSend_DryRunShowsTheFirstDelivery(t *testing.T) {
	t.Parallel()
	env := []string{"HOOKLEDGER_KAFKA_DURABILITY=single", "HOOKLEDGER_KAFKA_REPLICATION=1",
		"HOOKLEDGER_SOURCES=[{name: s, provider: stripe, account: data.object.metadata.account_id, secrets: [{value: whsec_0123456789}]}]"}
	a := jsonOf(t, hookledger(env, "send", "--count", "5", "--seed", "9", "--dry-run", "--json"), "send")
	b := jsonOf(t, hookledger(env, "send", "--count", "5", "--seed", "9", "--dry-run", "--json"), "send")
	if a["first_body"] != b["first_body"] || a["first_event_id"] != "send_9_0" {
		t.Errorf("the same seed made %v and %v", a, b)
	}
	hookledger(env, "send", "--source", "nope").want(t, app.ExitUsage, "use one of s")
	hookledger(env, "send", "--count", "0").want(t, app.ExitUsage, "--count")
	hookledger(env, "send", "--duplicates", "2").want(t, app.ExitUsage, "--duplicates")
	for _, c := range [][2]string{{"--count", "1000000000000000"}, {"--concurrency", "1000000000"}, {"--rate", "1e-300"}, {"--rate", "NaN"},
		{"--give-up", "-1s"}, {"--url", "ftp://127.0.0.1"}, {"--url", "127.0.0.1:8080"}} {
		hookledger(env, "send", c[0], c[1]).want(t, app.ExitUsage, c[0])
	}
	one := hookledger(env, "send", "--currencies", "jpy", "--dry-run")
	one.want(t, app.ExitOK)
	if !strings.Contains(one.stdout, "would deliver 1 event in 1 delivery to") || !strings.Contains(one.stdout, `"currency":"jpy"`) {
		t.Errorf("got %s", one.stdout)
	}
}

// Who interrupts a command still reads what it was doing, and what to do next.
func TestReport_OfAnInterruptionKeepsWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "hookledger: interrupted\n"},
		{fmt.Errorf("replay 3 stopped: %w: run the same plan again", context.Canceled), "hookledger: replay 3 stopped: interrupted: run the same plan again\n"},
	} {
		var out bytes.Buffer
		report(&app.App{Process: app.Process{Stderr: &out}}, c.err)
		if out.String() != c.want {
			t.Errorf("got %q, want %q", out.String(), c.want)
		}
	}
}

func TestReport_NeverSendsControlCharactersToTheTerminal(t *testing.T) {
	t.Parallel()
	r := hookledger(nil, "accounts", "\x1b]0;owned\x07")
	if strings.ContainsAny(r.stderr, "\x1b\x07") {
		t.Errorf("got %q", r.stderr)
	}
}
