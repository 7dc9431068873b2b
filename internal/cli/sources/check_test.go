package sources

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookledger/ingest/signature"
	"hookledger/internal/cli/app"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// run runs `sources check` in this process.
func run(t *testing.T, stdin string, a app.App, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	a.Process = app.Process{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs}
	c := Command(&a)
	c.SetArgs(append([]string{"check"}, args...))
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

func TestCheck_JudgesCasesInOrder(t *testing.T) {
	t.Parallel()
	const cases = "../../../ingest/signature/testdata/signatures.json"
	text, err := os.ReadFile(cases)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, c := range all {
		if err := json.NewEncoder(&lines).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	fromArray, err := run(t, "", app.App{}, "--vectors", cases)
	if err != nil {
		t.Fatal(err)
	}
	fromLines, err := run(t, lines.String(), app.App{}, "--vectors", "-")
	if err != nil || fromLines != fromArray {
		t.Errorf("JSON lines on standard input come out otherwise than the array in a file (%v)", err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(fromArray, "\n"), "\n") {
		var got struct {
			ID, Verdict string
			EventIDs    []string `json:"event_ids"`
			Reason      *string
			Response    *string
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.ID != all[i]["id"] || got.Verdict != all[i]["expect"] || got.EventIDs == nil || got.Reason == nil || got.Response == nil {
			t.Errorf("got %s, want %v %v", line, all[i]["id"], all[i]["expect"])
		}
	}
}

// What is wrong with one case is said, and the others are judged.
func TestCheck_GoesOnBehindAnUnusableCase(t *testing.T) {
	t.Parallel()
	out, err := run(t, `{"id":"a","provider":"nobody"}
{"id":"b","provider":"stripe","headers":7}
{"id":"c","provider":"xendit","secret":"t-0123456789abcdef","headers":{"X-CALLBACK-token":"t-0123456789abcdef"},"body":"{}"}`, app.App{}, "--vectors", "-")
	want := `{"id":"a","verdict":"invalid","event_ids":[],"reason":"unusable_case","response":""}
{"id":"b","verdict":"invalid","event_ids":[],"reason":"unusable_case","response":""}
{"id":"c","verdict":"valid","event_ids":[],"reason":"","response":""}
`
	if out != want {
		t.Errorf("got %s, want %s", out, want)
	}
	if err == nil || !strings.Contains(err.Error(), "case a") {
		t.Errorf("got error %v, want one that names the first unusable case", err)
	}
}

// What has no end is not read to its end.
func TestCheck_ReadsNoMoreThanADelivery(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "hookledger.yaml")
	if err := os.WriteFile(config, []byte(`
kafka: { durability: single, replication: 1 }
sources: [{ name: s, provider: stripe, account: data.object.metadata.account_id, secrets: [{ value: whsec_0123456789 }] }]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := run(t, "a: b\n", app.App{ConfigFile: config}, "--source", "s", "--headers", "-", "--body", "/dev/zero")
	if app.ExitCode(err) != app.ExitUsage || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
}

// Nothing to judge is no good judgement.
func TestCheck_WithoutCasesIsUsage(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{"", "\n", "[]"} {
		out, err := run(t, empty, app.App{}, "--vectors", "-")
		if code := app.ExitCode(err); out != "" || code != app.ExitUsage || !strings.Contains(err.Error(), "no cases") {
			t.Errorf("%q: got %q, exit code %d, %v", empty, out, code, err)
		}
	}
}

func TestCheck_ExplainsADelivery(t *testing.T) {
	t.Parallel()
	const secret = "k-5f1e0c-0123456789"
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("hookledger.yaml", `
kafka: { durability: single, replication: 1 }
sources:
  - name: acme
    provider: generic
    signature: { header: X-Signature, timestamp_header: X-Time }
    secrets: [{ value: `+secret+`, id: main }]
    event: { id: id, type: type }
    postings:
      - { type: t, account: user, amount: amount, unit: minor, currency: currency, direction: credit }
`)
	src, err := provider.New(provider.Config{
		Name: "acme", Provider: "generic", Secrets: []provider.SecretConfig{{Value: secret}},
		Signature: provider.SignatureConfig{Header: "X-Signature", TimestampHeader: "X-Time"},
		Event:     provider.EventConfig{ID: provider.Locator{Path: "id"}, Type: provider.Locator{Path: "type"}},
		Postings:  []provider.PostingConfig{{Type: []string{"t"}, Account: []string{"a"}, Amount: "a", Unit: "minor", Currency: provider.Locator{Path: "c"}, Direction: source.Direction{Always: "credit"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"e_1","type":"t","note":"пять"}`
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	m, err := signature.Sign(src.Signature(), secret, signature.Message{Body: []byte(body), At: noon})
	if err != nil {
		t.Fatal(err)
	}
	mac := m.Header.Get("X-Signature")
	lines := "POST /webhooks/acme HTTP/1.1\r\ncontent-type: application/json\r\nX-Time: " + m.Header.Get("X-Time") + "\r\n"
	headers := write("headers", lines+"X-Signature: "+mac+"\r\n\r\n")
	unsigned := write("unsigned", lines)
	forged := write("forged", lines+"X-Signature: "+strings.Repeat("00", 32)+"\r\n")
	jsonHeaders, err := json.Marshal(map[string][]string(m.Header))
	if err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		headers, body, at string
		verdict, reason   string
		failed, hint      string
	}{
		"good":       {headers, body, "2026-11-29T12:00:05Z", "valid", "", "", ""},
		"as JSON":    {write("headers.json", string(jsonHeaders)), body, "1795953605", "valid", "", "", ""},
		"stale":      {headers, body, "2026-11-29T12:06:00Z", "invalid", "stale", "signature: time", "clocks"},
		"future":     {headers, body, "2026-11-29T11:06:00Z", "invalid", "future", "signature: time", "clocks"},
		"unsigned":   {unsigned, body, "2026-11-29T12:00:05Z", "invalid", "missing_header", "signature: read", ""},
		"forged":     {forged, body, "2026-11-29T12:00:05Z", "invalid", "no_match", "signature: match", ""},
		"line feed":  {headers, body + "\n", "2026-11-29T12:00:05Z", "invalid", "no_match", "signature: match", "line feed"},
		"indented":   {headers, "{\n  \"id\": \"e_1\",\n  \"type\": \"t\",\n  \"note\": \"пять\"\n}", "2026-11-29T12:00:05Z", "invalid", "no_match", "signature: match", "wrote it again"},
		"escaped":    {headers, `{"id": "e_1", "type": "t", "note": "\u043f\u044f\u0442\u044c"}`, "2026-11-29T12:00:05Z", "invalid", "no_match", "signature: match", "wrote it again"},
		"other body": {headers, `{"id":"e_2"}`, "2026-11-29T12:00:05Z", "invalid", "no_match", "signature: match", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--source", "acme", "--headers", tc.headers, "--body", file, "--at", tc.at}
			out, err := run(t, "", app.App{ConfigFile: config, JSON: true}, args...)
			if wantFound := tc.verdict == "invalid"; errors.Is(err, app.ErrFound) != wantFound || err != nil && !wantFound {
				t.Fatalf("got error %v; %s", err, out)
			}
			var got checked
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			failed := ""
			for _, s := range got.Steps {
				if s.Result == stepFailed {
					failed = s.Step
				}
				if (s.Result == stepSkipped) != (s.Detail == "") {
					t.Errorf("step %+v: only what was not reached says nothing", s)
				}
			}
			if got.Verdict != tc.verdict || got.Reason != tc.reason || failed != tc.failed {
				t.Errorf("got %s, %s, failed at %q", got.Verdict, got.Reason, failed)
			}
			if hints := strings.Join(got.Hints, "\n"); tc.hint == "" && hints != "" || !strings.Contains(hints, tc.hint) {
				t.Errorf("got hints %q, want %q", hints, tc.hint)
			}
			human, _ := run(t, "", app.App{ConfigFile: config}, args...)
			// Neither what would have matched nor the secret.
			for _, text := range []string{out, human} {
				if strings.Contains(text, mac) || strings.Contains(text, secret) {
					t.Errorf("what was printed holds the MAC or the secret: %s", text)
				}
			}
			if !strings.Contains(human, tc.verdict) || !strings.Contains(human, tc.hint) {
				t.Errorf("got %s", human)
			}
		})
	}
}
