package deploy_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hookledger/internal/cli"
	"hookledger/internal/cli/app"
)

// runbookPages are the pages by name, without the index.
func runbookPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("runbook/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	pages := map[string]string{}
	for _, file := range files {
		if name := filepath.Base(file); name != "README.md" {
			pages[name] = read(t, file)
		}
	}
	return pages
}

// incidentKinds are those that the program can raise, as its constants name them.
func incidentKinds(t *testing.T) []string {
	t.Helper()
	constant := regexp.MustCompile(`(?m)^\s*(?:const )?(?:incident\w+|[kK]ind(?:Unknown|Surge|Quarantine)\w*)\s*=\s*"(\w+)"`)
	var kinds []string
	for _, dir := range []string{"consumer", "internal/ledger", "internal/ops", "internal/cli"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, m := range constant.FindAllStringSubmatch(read(t, path), -1) {
				kinds = append(kinds, m[1])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"truncated", "rewind", "quarantine_surge", "unknown_source", "replay_reset"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%s is not found among the constants: got %v", kind, kinds)
		}
	}
	return kinds
}

func TestRunbook_HasAPageForEachIncidentAndAlert(t *testing.T) {
	t.Parallel()
	pages := runbookPages(t)
	index, rules := read(t, "runbook/README.md"), read(t, "alerts.yaml")
	var heads strings.Builder
	for name, text := range pages {
		for _, section := range []string{"## What it means", "## What you see", "## Prove", "## Never"} {
			if !strings.Contains(text, "\n"+section+"\n") {
				t.Errorf("%s has no section %q", name, section)
			}
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("the index does not name %s", name)
		}
		for _, m := range regexp.MustCompile(`\]\(([\w-]+\.md)\)`).FindAllStringSubmatch(text, -1) {
			if pages[m[1]] == "" {
				t.Errorf("%s points to %s, which does not exist", name, m[1])
			}
		}
		_, head, _ := strings.Cut(text, "\n\nAlerts: ")
		head, _, _ = strings.Cut(head, "\n")
		heads.WriteString(head + "\n")
		for _, m := range regexp.MustCompile("`(Hookledger\\w+)`").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(rules, "- alert: "+m[1]+"\n") {
				t.Errorf("%s speaks of %s, which is no alert", name, m[1])
			}
		}
	}
	for _, word := range append(incidentKinds(t), alertNames(t)...) {
		if !strings.Contains(heads.String(), "`"+word+"`") {
			t.Errorf("no page is for %s", word)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+runbook: (.*)$`).FindAllStringSubmatch(rules, -1) {
		page := regexp.MustCompile(`\(deploy/runbook/([\w-]+\.md)`).FindStringSubmatch(m[1])
		if page == nil || pages[page[1]] == "" {
			t.Errorf("no page behind %q", m[1])
		}
	}
	metrics := read(t, filepath.Join(root, "internal/observe/METRICS.md"))
	for name, text := range pages {
		for _, m := range regexp.MustCompile("`(hookledger_\\w+)").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(metrics, "| `"+m[1]+"` |") {
				t.Errorf("%s speaks of %s, which is no metric", name, m[1])
			}
		}
	}
}

// Each command of a page is one of the program, with flags that it has.
func TestRunbook_CommandsExist(t *testing.T) {
	t.Parallel()
	commands := 0
	for name, text := range runbookPages(t) {
		for _, line := range regexp.MustCompile("(?m)^hookledger .*$|`hookledger [^`]*`").FindAllString(text, -1) {
			line = strings.Trim(line, "`")
			words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1)[1:]
			for i, w := range words {
				words[i] = strings.Trim(w, `"`)
				if strings.Contains(w, "$") && !strings.Contains(w, " ") {
					words[i] = "1"
				}
			}
			var out, complaints bytes.Buffer
			process := app.Process{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints, Environ: os.Environ()}
			code := cli.Run(append(words, "--help"), process)
			path := regexp.MustCompile(`(?m)^  (hookledger[a-z -]*)`).FindStringSubmatch(out.String())
			if code != app.ExitOK || path == nil || !strings.HasPrefix(strings.Join(append([]string{"hookledger"}, words...), " ")+" ", strings.TrimSpace(path[1])+" ") ||
				strings.Contains(out.String(), "Available Commands:") && len(words) > strings.Count(strings.TrimSpace(path[1]), " ") {
				t.Errorf("%s: %s: got exit code %d, %v, %s", name, line, code, path, complaints.String())
			}
			commands++
		}
	}
	if commands < 40 {
		t.Errorf("%d commands were tried: were pages read?", commands)
	}
}
