package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The tables of FAILURE-MODES.md, by the heading above each.
const (
	headingModes     = "## What can go wrong"
	headingPositions = "## Positions"
	headingMeaning   = "## Memory, and the meaning of repeats"
)

// lastMode is the number of failure modes.
const lastMode = 84

// row is a row of such a table: what it is about, what happens, and the tests that show
// it, or the reason why there are none.
type row struct {
	line             int
	id, right, shown string
}

// tables reads FAILURE-MODES.md.
func tables(t *testing.T) map[string][]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "FAILURE-MODES.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]row{}
	heading := ""
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			heading = line
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || cells[len(cells)-1] == "shown by" {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("line %d: got %d cells, want 3: %s", i+1, len(cells), line)
			continue
		}
		found[heading] = append(found[heading], row{i + 1, cells[0], cells[1], cells[2]})
	}
	return found
}

// testName is a test as the tables name it: the folder of its package, the function and,
// if it is one of several, the name of the subtest.
var testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/([^`]+))?`")

// TestProof_EveryModeIsThereOnce holds the first table against the list of modes.
func TestProof_EveryModeIsThereOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, r := range tables(t)[headingModes] {
		seen[r.id]++
	}
	for n := 1; n <= lastMode; n++ {
		id := fmt.Sprintf("F%d", n)
		if seen[id] != 1 {
			t.Errorf("%s: got %d rows, want 1", id, seen[id])
		}
		delete(seen, id)
	}
	for id := range seen {
		t.Errorf("%q is no failure mode", id)
	}
}

// TestProof_EveryTestExists holds all tables against the tests: each row names tests
// that exist, or says in words why there are none.
func TestProof_EveryTestExists(t *testing.T) {
	t.Parallel()
	known := map[string]map[string]map[string]bool{} // by folder and function: the texts in it
	all := tables(t)
	for _, heading := range []string{headingModes, headingPositions, headingMeaning} {
		if len(all[heading]) == 0 {
			t.Errorf("there is no table below %q", heading)
		}
	}
	for _, rows := range all {
		for _, r := range rows {
			if len(strings.Fields(r.right)) < 3 {
				t.Errorf("line %d: %s does not say what happens", r.line, r.id)
			}
			names := testName.FindAllStringSubmatch(r.shown, -1)
			if len(names) == 0 {
				reason, ok := strings.CutPrefix(r.shown, "No test: ")
				if !ok || len(strings.Fields(reason)) < 8 {
					t.Errorf("line %d: %s names no test and gives no reason", r.line, r.id)
				}
			}
			for _, n := range names {
				folder, function, sub := n[1], n[2], n[3]
				if known[folder] == nil {
					known[folder] = testsOf(t, folder)
				}
				texts, ok := known[folder][function]
				if !ok {
					t.Errorf("line %d: %s: package %s has no %s", r.line, r.id, folder, function)
				} else if sub != "" && !texts[sub] {
					t.Errorf("line %d: %s: %s.%s has no subtest %q", r.line, r.id, folder, function, sub)
				}
			}
		}
	}
}

// testsOf returns the tests of a package with the texts that stand in each, among which
// are the names of its subtests.
func testsOf(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("package %s has no tests (%v)", folder, err)
	}
	tests := map[string]map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			texts := map[string]bool{}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						texts[text] = true
					}
				}
				return true
			})
			tests[f.Name.Name] = texts
		}
	}
	return tests
}
