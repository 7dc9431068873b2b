package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

const good = `
kafka: { brokers: [b1:9092, b2:9092], tls: { enabled: true }, durability: single, replication: 1 }
database:
  url: postgres://hl:geheim@db/books
ingest: { max_body_bytes: 2MiB }
sources:
  - name: acme
    provider: generic
    signature: { header: X-Signature }
    secrets: [{ value: s3cret-value, not_after: 2027-01-01T00:00:00Z }]
    event: { id: id, type: { const: paid } }
    postings:
      - { key: paid, account: user_id, amount: amount, unit: minor, currency: currency, direction: credit }
`

func parse(t *testing.T, text string, environ ...string) *Loaded {
	t.Helper()
	l, err := Parse("hookledger.yaml", []byte(text), environ)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func refuse(t *testing.T, text string, environ ...string) string {
	t.Helper()
	_, err := Parse("hookledger.yaml", []byte(text), environ)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *Error", err)
	}
	return err.Error()
}

func wantIn(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("got %q, want %q in it", got, p)
		}
	}
}

func TestParse_FileOverDefaults(t *testing.T) {
	t.Parallel()
	l := parse(t, good)
	if got, want := l.Kafka.Brokers, []string{"b1:9092", "b2:9092"}; !reflect.DeepEqual(got, want) {
		t.Errorf("brokers: got %v, want %v", got, want)
	}
	if got, want := l.Kafka.Topic, Default().Kafka.Topic; got != want {
		t.Errorf("topic: got %q, want the default %q", got, want)
	}
	if got, want := l.Ingest.MaxBodyBytes, 2<<20; got != want {
		t.Errorf("max_body_bytes: got %d, want %d", got, want)
	}
	s := l.Sources[0]
	if string(s.Secrets[0].Value) != "s3cret-value" || s.Secrets[0].NotAfter.Year() != 2027 {
		t.Errorf("secret was not read")
	}
	if got := s.Postings[0].Account; !reflect.DeepEqual(got, []string{"user_id"}) {
		t.Errorf("account of posting: got %v, want a list of one", got)
	}
	if s.Event.Type.Const != "paid" || s.Event.ID.Path != "id" {
		t.Errorf("event: got %+v", s.Event)
	}
}

func TestParse_EmptyFileIsDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if l := parse(t, text); !reflect.DeepEqual(l.Config, Default()) {
			t.Errorf("%q: got %+v, want the defaults", text, l.Config)
		}
	}
}

func TestParse_UnknownKeyNamesNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, place, nearest string }{
		{"kafka:\n  brokrs: [a]\n", "hookledger.yaml:2: unknown key kafka.brokrs", "did you mean kafka.brokers?"},
		{"kafka: {}\ndatabas: {}\n", "hookledger.yaml:2: unknown key databas", "did you mean database?"},
		{strings.Replace(good, "{ const: paid }", "{ constant: paid }", 1), "unknown key sources[0].event.type.constant", "did you mean sources[0].event.type.const?"},
		{strings.Replace(good, "{ const: paid }", "{ path: a, or: [{ heade: b }] }", 1), "unknown key sources[0].event.type.or[0].heade", "did you mean sources[0].event.type.or[0].header?"},
		{"brokers: [a]\n", "hookledger.yaml:1: unknown key brokers", "did you mean kafka.brokers?"},
		{"consume: { retention: 1h }\n", "unknown key consume.retention", "did you mean kafka.retention?"},
		{strings.Replace(good, "unit: minor", "units: minor", 1), "hookledger.yaml:13: unknown key sources[0].postings[0].units", "did you mean sources[].postings[].unit?"},
	} {
		wantIn(t, refuse(t, c.text), c.place, c.nearest)
	}
}

func TestParse_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	got := refuse(t, "kafka: { partitions: many, replication: [3] }\ndedupe:\n  keep: forever\nfoo: bar\n")
	wantIn(t, got, "4 problems", "hookledger.yaml:1: kafka.partitions: must be a whole number", "kafka.replication must be a single value",
		"hookledger.yaml:3: dedupe.keep: must be a duration", "hookledger.yaml:4: unknown key foo")
}

func TestParse_RefusesWhatYAMLAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"kafka:\n  topic:\n", "kafka.topic has no value"},
		{"kafka: { topic: a }\nkafka: { topic: b }\n", "hookledger.yaml:2: kafka is there twice, first in line 1"},
		{"kafka: {topic: a}\n---\nkafka: {topic: b}\n", "one document"},
		{"kafka: { topic: !!str a }\n", "tags such as"},
		{"kafka: [\n", "hookledger.yaml: line"},
		{"kafka: nothing\n", "kafka must be a group of keys"},
		{"kafka: &a { topic: x }\ningest: { <<: *a }\n", "merge keys"},
		{"kafka: { topic: *none }\n", "unknown anchor"},
	} {
		wantIn(t, refuse(t, c.text), c.want)
	}
}

func TestParse_AnchorsAreFollowed(t *testing.T) {
	t.Parallel()
	l := parse(t, "kafka: { topic: &name events, group: *name }\n")
	if l.Kafka.Topic != "events" || l.Kafka.Group != "events" {
		t.Errorf("got topic %q, group %q, want events", l.Kafka.Topic, l.Kafka.Group)
	}
}

func TestParse_ResetToTheEndIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"consume: { reset: latest }\n", "kafka: { auto_offset_reset: latest }\n", "kafka: { start_offset: end }\n"} {
		wantIn(t, refuse(t, text), "skipped", "Remove the key")
	}
	wantIn(t, refuse(t, "", "HOOKLEDGER_CONSUME_RESET=latest"), "skipped")
}

func TestParse_ErrorsNeverRepeatValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"database: { url: [geheim] }\n", "database: { url: \"postgres://u:geheim@h:port/x\" }\n",
		"kafka: { partitions: geheim }\n", "sources: [{ secrets: [{ valu: geheim }] }]\n", "a: \"geheim\nb: c: geheim\n",
		"sources: [{ name: a, provider: stripe, secrets: [{ value: geheim }] }]\n",
	} {
		if got := refuse(t, text); strings.Contains(got, "geheim") {
			t.Errorf("error repeats a value: %s", got)
		}
	}
}

func TestEnviron_EveryKeyHasOneVariable(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range Keys() {
		if strings.Contains(k.Path, "[") {
			continue
		}
		if want := "HOOKLEDGER_" + strings.ToUpper(strings.ReplaceAll(k.Path, ".", "_")); k.Env != want {
			t.Errorf("%s: got variable %s, want %s", k.Path, k.Env, want)
		}
		if other := seen[k.Env]; other != "" {
			t.Errorf("%s and %s share %s", other, k.Path, k.Env)
		}
		seen[k.Env] = k.Path
		if notOurs.MatchString(k.Env) {
			t.Errorf("%s would be taken for a variable of Kubernetes", k.Env)
		}
		checkEnvSets(t, k)
	}
}

// checkEnvSets sets one key by its variable and looks for it where it belongs.
func checkEnvSets(t *testing.T, k Key) {
	t.Helper()
	v, ok := fieldAt(reflect.ValueOf(&Config{}).Elem(), k.Path)
	if !ok {
		t.Errorf("%s: no such field", k.Path)
		return
	}
	text := map[string]string{"duration": "90s", "true or false": "true", "number": "1.5", "size": "2KiB", "integer": "7"}[k.Type]
	if text == "" {
		text = "some-text"
	}
	want := text
	if k.Type == "size" {
		want = "2048"
	}
	if k.Type == "duration" {
		want = "1m30s"
	}
	if !isLeaf(v.Type()) && !isListOfLeaves(v.Type()) {
		return // sources: see TestEnviron_SourcesAreYAML
	}
	l := &Loaded{Config: Default(), origins: map[string]string{}}
	for _, err := range l.readEnviron([]string{k.Env + "=" + text}) {
		t.Errorf("%s=%s: %v", k.Env, text, err)
	}
	for _, s := range l.Settings() {
		if s.Path == k.Path && !k.Secret && s.Value != want {
			t.Errorf("%s=%s: got %q", k.Env, text, s.Value)
		}
		if s.Path == k.Path && s.Origin != "environment variable "+k.Env {
			t.Errorf("%s: got origin %q", k.Path, s.Origin)
		}
	}
}

func TestEnviron_OverridesFile(t *testing.T) {
	t.Parallel()
	l := parse(t, good, "HOOKLEDGER_KAFKA_BROKERS=x:1, y:2", "HOOKLEDGER_KAFKA_RETENTION=100h", "OTHER=1")
	if got, want := l.Kafka.Brokers, []string{"x:1", "y:2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if l.Kafka.Retention != 100*time.Hour {
		t.Errorf("got retention %s, want 100h", l.Kafka.Retention)
	}
}

func TestEnviron_SourcesAreYAML(t *testing.T) {
	t.Parallel()
	l := parse(t, good, `HOOKLEDGER_SOURCES=[{"name":"s","provider":"stripe","secrets":[{"env":"S"}],"account":"data.object.metadata.account_id"}]`)
	if len(l.Sources) != 1 || l.Sources[0].Name != "s" || l.Sources[0].Secrets[0].Env != "S" {
		t.Errorf("got %+v", l.Sources)
	}
	wantIn(t, refuse(t, "", "HOOKLEDGER_SOURCES=[{nam: x}]"), "environment variable HOOKLEDGER_SOURCES", "did you mean sources[].name?")
}

func TestEnviron_UnknownNameIsRefused(t *testing.T) {
	t.Parallel()
	wantIn(t, refuse(t, "", "HOOKLEDGER_KAFKA_BROKER=a"), "did you mean HOOKLEDGER_KAFKA_BROKERS?")
	wantIn(t, refuse(t, "", "HOOKLEDGER_KAFKA_PARTITIONS="), "set but empty")
	wantIn(t, refuse(t, "", "HOOKLEDGER_KAFKA_BROKERS=a,,b"), "empty item")
	kubernetes := []string{"HOOKLEDGER_INGEST_SERVICE_HOST=10.0.0.1", "HOOKLEDGER_PORT=tcp://10.0.0.1:8080", "HOOKLEDGER_PORT_8080_TCP_ADDR=10.0.0.1"}
	refuse(t, "", kubernetes...)
	parse(t, "", append(kubernetes, "KUBERNETES_SERVICE_HOST=10.0.0.1")...)
}

func TestLoad_SearchOrder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, topic string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "kafka: { topic: %s }\n", topic), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(path string, environ ...string) string {
		t.Helper()
		l, err := Load(path, environ)
		if err != nil {
			t.Fatal(err)
		}
		return l.Kafka.Topic
	}
	if got := load(""); got != Default().Kafka.Topic {
		t.Errorf("without a file: got %q, want the default", got)
	}
	write(".hookledger/hookledger.yaml", "dev")
	if got := load(""); got != "dev" {
		t.Errorf("got %q, want dev", got)
	}
	write("hookledger.yaml", "here")
	if got := load(""); got != "here" {
		t.Errorf("got %q, want here", got)
	}
	write("by-env.yaml", "env")
	if got := load("", "HOOKLEDGER_CONFIG=by-env.yaml"); got != "env" {
		t.Errorf("got %q, want env", got)
	}
	write("by-flag.yaml", "flag")
	if got := load("by-flag.yaml", "HOOKLEDGER_CONFIG=by-env.yaml"); got != "flag" {
		t.Errorf("got %q, want flag", got)
	}
	if _, err := Load("missing.yaml", nil); err == nil {
		t.Error("a named file that does not exist: want an error")
	}
}

func TestSettings_MaskSecretsAndNameOrigins(t *testing.T) {
	t.Parallel()
	l := parse(t, good, "HOOKLEDGER_KAFKA_GROUP=g")
	got := map[string]Setting{}
	for _, s := range l.Settings() {
		got[s.Path] = s
		for _, secret := range []string{"geheim", "s3cret-value"} {
			if strings.Contains(s.Value, secret) {
				t.Errorf("%s shows a secret", s.Path)
			}
		}
	}
	for path, want := range map[string]Setting{
		"kafka.topic":                 {Value: "payments.events", Origin: "default"},
		"kafka.brokers":               {Value: "b1:9092,b2:9092", Origin: "hookledger.yaml:2"},
		"kafka.group":                 {Value: "g", Origin: "environment variable HOOKLEDGER_KAFKA_GROUP"},
		"database.url":                {Value: "postgres://hl:********@db/books?sslmode=verify-full", Origin: "hookledger.yaml:4"},
		"sources[0].secrets[0].value": {Value: "********", Origin: "hookledger.yaml:10"},
		"sources[0].event.type":       {Value: "{const: paid}", Origin: "hookledger.yaml:11"},
	} {
		want.Path = path
		if got[path] != want {
			t.Errorf("got %+v, want %+v", got[path], want)
		}
	}
}

func TestMaskPasswords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://u:p@ss@h/db?sslmode=verify-full": "postgres://u:********@h/db?sslmode=verify-full",
		"host=h user=u password='a b' dbname=d":      "host=h user=u password=******** dbname=d",
		"postgres://h/db?user=u&password=x&a=b":      "postgres://h/db?user=u&password=********&a=b",
		"127.0.0.1:9092":                             "127.0.0.1:9092",
	} {
		if got := maskPasswords(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSecrets_EmptyIsRefused(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := func(secret string) string {
		return "sources: [{ name: s, provider: stripe, account: a, secrets: [" + secret + "] }]\nkafka: { durability: single }\n"
	}
	wantIn(t, refuse(t, source("")), "hookledger.yaml:1: sources[0].secrets", "no secret")
	wantIn(t, refuse(t, source(`{ value: "" }`)), "secrets[0]")
	wantIn(t, refuse(t, source(`{ env: A, file: b }`)), "exactly one")
	wantIn(t, refuse(t, strings.Replace(source(`{ value: x }`), "single", "replicated", 1)), "durability: single")
	for _, secret := range []string{"{ env: HOOKLEDGER_TEST_NOT_SET }", "{ file: " + empty + " }", "{ file: /does/not/exist }"} {
		l := parse(t, source(secret))
		_, err := l.CheckSecrets(zerolog.Nop())
		if err == nil {
			t.Fatalf("%s: want an error", secret)
		}
		wantIn(t, err.Error(), "hookledger.yaml:1: sources[0].secrets")
	}
	if n, err := parse(t, source("{ value: whsec_0123456789abcdef }")).CheckSecrets(zerolog.Nop()); n != 1 || err != nil {
		t.Errorf("got %d secrets, %v", n, err)
	}
}

func TestValidate_NamesThePlace(t *testing.T) {
	t.Parallel()
	wantIn(t, refuse(t, "kafka:\n  replication: 1\n"), "hookledger.yaml:2: kafka.replication is 1")
	wantIn(t, refuse(t, "dedupe:\n  rotate: 1h\n  keep: 900h\n"), "hookledger.yaml:3: dedupe.keep is 900h")
	wantIn(t, refuse(t, "log: { level: loud }\n"), "log.level must be")
}

func TestKeys_EveryKeyHasAMeaningAndTheReverse(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, k := range Keys() {
		known[k.Path] = true
		if k.Meaning == "" {
			t.Errorf("%s has no meaning: add it to meanings", k.Path)
		}
		if k.Type == "integer" && k.Unit == "" && !strings.HasPrefix(k.Path, "sources[]") {
			t.Errorf("%s is a number without a unit", k.Path)
		}
	}
	for path := range meanings {
		if !known[path] {
			t.Errorf("meanings has %s, which is no key", path)
		}
	}
}

func TestMarkdown_HoldsEveryKey(t *testing.T) {
	t.Parallel()
	md := Markdown()
	for _, k := range Keys() {
		wantIn(t, md, "| `"+k.Path+"` |")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good, "HOOKLEDGER_KAFKA_BROKERS=a,b")
	f.Add("kafka: &a [*a]", "HOOKLEDGER_SOURCES=&a [*a]")
	f.Add("a: {b: {c: [1, 2, {d: e}]}}", "HOOKLEDGER_X=1")
	f.Fuzz(func(t *testing.T, text, environ string) {
		l, err := Parse("f.yaml", []byte(text), []string{environ})
		if (l == nil) == (err == nil) {
			t.Fatalf("got %v, %v: want one of the two", l, err)
		}
		if l != nil {
			l.Settings()
		}
	})
}

var update = flag.Bool("update", false, "write the README's table anew")

// Marks in the README around the table that is generated.
const (
	referenceBegin = "<!-- configuration reference: begin, generated by go test ./internal/config -args -update -->\n"
	referenceEnd   = "<!-- configuration reference: end -->\n"
)

func TestReadme_HoldsTheReference(t *testing.T) {
	t.Parallel()
	const file = "../../README.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := referenceBegin + "\n" + Markdown() + "\n" + referenceEnd
	before, rest, begun := strings.Cut(string(text), referenceBegin)
	_, after, ended := strings.Cut(rest, referenceEnd)
	if *update {
		if !begun || !ended {
			before, after = string(text)+"\n## Configuration reference\n\n", ""
		}
		if err := os.WriteFile(file, []byte(before+want+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !begun || !ended || before+want+after != string(text) {
		t.Error("the README's configuration reference differs from the code: go test ./internal/config -args -update")
	}
}

func TestValidate_MemoryOfEvents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dedupe: { rotate: 0s, keep: 0s }":           "dedupe.rotate is 0s: set a positive duration",
		"dedupe: { rotate: -1h }":                    "dedupe.rotate is -1h: set a positive duration",
		"dedupe: { rotate: 2000000h, keep: 720h }":   "dedupe.rotate is 2000000h: set a positive duration",
		"dedupe: { rotate: 24h, keep: 23h59m }":      "set dedupe.keep from 24h to 144h",
		"dedupe: { rotate: 24h, keep: 145h }":        "or dedupe.rotate to at least 24h10m",
		"dedupe: { rotate: 1h, keep: 840h }":         "dedupe.keep is 840h, more than 6 times dedupe.rotate (1h)",
		"dedupe: { rotate: 168h, keep: 168h }":       "",
		"dedupe: { rotate: 168h, keep: 1008h }":      "",
		"dedupe: { rotate: 2s, keep: 12s }":          "",
		"dedupe: { rotate: 168h, keep: 1008h0m1ns }": "more than 6 times dedupe.rotate",
	} {
		if want != "" {
			wantIn(t, refuse(t, text), want)
		} else {
			parse(t, text)
		}
	}
	for text, warns := range map[string]bool{
		"": false, "dedupe: { keep: 744h }": false, "dedupe: { keep: 743h59m }": true, "kafka: { retention: 817h }": true, "kafka: { retention: 816h }": false,
	} {
		if got := parse(t, text).MemoryWarning(); (got != "") != warns {
			t.Errorf("%s: got the warning %q", text, got)
		}
	}
}

// The example that the README gives is what people copy.
func TestReadme_ExampleIsAccepted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "   ```yaml\n")
	example, _, ended := strings.Cut(rest, "   ```\n")
	if !ok || !ended {
		t.Fatal("the README has no example of a configuration")
	}
	var yaml strings.Builder
	for line := range strings.Lines(example) {
		yaml.WriteString(strings.TrimPrefix(line, "   "))
	}
	l := parse(t, yaml.String())
	if !l.Kafka.TLS.Enabled || l.Kafka.Durability != "replicated" || len(l.Sources) == 0 {
		t.Errorf("the example of the README is not one for production: %+v", l.Kafka)
	}
}
