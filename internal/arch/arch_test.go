package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "hookledger"

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
	Standard   bool
}

// packages are all of ours and all they depend on, by import path.
var packages = sync.OnceValues(func() (map[string]pkg, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Imports,Deps,GoFiles,Standard", module+"/...")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, errors.New(errs.String())
	}
	all := map[string]pkg{}
	dec := json.NewDecoder(&out)
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

func load(t *testing.T) map[string]pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}

// ours lists the packages of this module, sorted.
func ours(all map[string]pkg) []pkg {
	var list []pkg
	for _, p := range all {
		if isOurs(p.ImportPath) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return list
}

func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// within tells whether path is prefix or below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// rule forbids packages to depend on others, directly or not.
type rule struct {
	why string
	// of is the package that the rule binds, with those below it unless alone; free are
	// exceptions among them.
	of    string
	alone bool
	free  []string
	// forbidden are import paths, with those below; allowed are exceptions among them.
	forbidden, allowed []string
}

const (
	kgo = "github.com/twmb/franz-go"
	pgx = "github.com/jackc/pgx"
)

var rules = []rule{
	{
		why: "analysts and checkers use the contract of the topic as it is",
		of:  "hookledger/schema", forbidden: []string{module, kgo, pgx}, allowed: []string{"hookledger/schema"},
	},
	{
		why: "the contract knows no provider: providers are written on top of it",
		of:  "hookledger/schema", alone: true, forbidden: []string{"hookledger/schema/provider", "hookledger/schema/source"},
	},
	{
		why: "the receiver stores and answers; it cannot reach the database, so it accepts webhooks without one",
		of:  "hookledger/ingest", forbidden: []string{"hookledger/consumer", "hookledger/internal/ledger", "hookledger/migrations", pgx, "database/sql"},
		free: []string{"hookledger/ingest/payments"}, // the door with a database of its own
	},
	{
		why: "signatures need neither Kafka nor Postgres, so they can be checked anywhere",
		of:  "hookledger/ingest/signature", forbidden: []string{module, kgo, pgx}, allowed: []string{"hookledger/ingest/signature", "hookledger/schema"},
	},
	{
		why: "the worker knows records, not deliveries",
		of:  "hookledger/consumer", forbidden: []string{"hookledger/ingest", "hookledger/schema/provider", "hookledger/schema/source"},
	},
	{
		why: "a proof shares no code with what it proves",
		of:  "hookledger/internal/verify", forbidden: []string{module}, allowed: []string{"hookledger/internal/verify", "hookledger/schema"},
	},
	{
		why: "a proof does not use the mapping it checks",
		of:  "hookledger/internal/verify", forbidden: []string{"hookledger/schema/provider", "hookledger/schema/source"},
	},
	{
		why: "the core of the books is used by worker, payments and operators, and knows none of them",
		of:  "hookledger/internal/ledger", forbidden: []string{module, kgo}, allowed: []string{"hookledger/internal/ledger", "hookledger/schema", "hookledger/internal/crashpoint"},
	},
	{
		why: "what every role knows about Kafka depends on no role",
		of:  "hookledger/internal/broker", forbidden: []string{module, pgx}, allowed: []string{"hookledger/internal/broker"},
	},
	{
		why: "migrations are SQL and the tool that runs them",
		of:  "hookledger/migrations", forbidden: []string{module, kgo}, allowed: []string{"hookledger/migrations"},
	},
	{
		why: "logs and metrics are below everything",
		of:  "hookledger/internal/observe", forbidden: []string{module, kgo, pgx}, allowed: []string{"hookledger/internal/observe"},
	},
	{
		why: "helpers of tests stay out of the program",
		of:  module, forbidden: []string{"hookledger/internal/testkit"},
		free: []string{"hookledger/internal/testkit", "hookledger/internal/e2e"},
	},
	{
		why: "wiring is on top: nothing but the command line knows it",
		of:  module + "/internal", forbidden: []string{"hookledger/internal/cli"}, free: []string{"hookledger/internal/cli"},
	},
}

func TestImports_FollowTheRules(t *testing.T) {
	t.Parallel()
	all := load(t)
	for _, r := range rules {
		if !slices.ContainsFunc(ours(all), func(p pkg) bool { return r.binds(p.ImportPath) }) {
			t.Errorf("rule %q is about %s, where there is nothing", r.why, r.of)
		}
		for _, p := range ours(all) {
			if !r.binds(p.ImportPath) {
				continue
			}
			for _, dep := range p.Deps {
				if r.forbids(dep) {
					t.Errorf("%s depends on %s\n  rule: %s\n  through: %s", p.ImportPath, dep, r.why, strings.Join(through(all, p.ImportPath, dep), " → "))
				}
			}
		}
	}
}

func (r rule) binds(path string) bool {
	if r.alone {
		return path == r.of
	}
	return within(path, r.of) && !anyWithin(path, r.free)
}

func (r rule) forbids(dep string) bool {
	return anyWithin(dep, r.forbidden) && !anyWithin(dep, r.allowed)
}

func anyWithin(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return within(path, p) })
}

// through is a shortest chain of imports from one package to another.
func through(all map[string]pkg, from, to string) []string {
	came := map[string]string{from: ""}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at == to {
			var chain []string
			for p := to; p != ""; p = came[p] {
				chain = append([]string{p}, chain...)
			}
			return chain
		}
		for _, next := range all[at].Imports {
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return []string{from, "…", to}
}

// TestDocs_EveryPackageHasAPage wants a doc.go with what a newcomer needs: the
// guarantee, the flow and the failure modes.
func TestDocs_EveryPackageHasAPage(t *testing.T) {
	t.Parallel()
	for _, p := range ours(load(t)) {
		if p.ImportPath == module { // main is three lines
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil {
			t.Errorf("%s has no doc.go", p.ImportPath)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "doc.go", text, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		if file.Doc == nil || new(doc.Package).Synopsis(file.Doc.Text()) == "" {
			t.Errorf("%s: doc.go holds no package comment", p.ImportPath)
			continue
		}
		for _, heading := range []string{"# Guarantee", "# Flow", "# Failure modes"} {
			if !strings.Contains(file.Doc.Text(), "\n"+heading+"\n") {
				t.Errorf("%s: doc.go has no heading %q", p.ImportPath, heading)
			}
		}
	}
}

// maxFiles is how many source files a folder has at most: beyond it a reader no longer
// sees what there is, and the folder holds two things.
const maxFiles = 18

// maxLines is how long a source file is at most.
const maxLines = 600

func TestSize_OfFoldersAndFiles(t *testing.T) {
	t.Parallel()
	for _, p := range ours(load(t)) {
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, e := range entries {
			if e.IsDir() || filepath.Ext(e.Name()) != ".go" {
				continue
			}
			if !strings.HasSuffix(e.Name(), "_test.go") {
				files++
			}
			text, err := os.ReadFile(filepath.Join(p.Dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > maxLines {
				t.Errorf("%s/%s has %d lines, the most is %d", p.ImportPath, e.Name(), n, maxLines)
			}
		}
		// One file for each provider and for each scheme: as many as there are.
		listing := p.ImportPath == module+"/schema/provider" || p.ImportPath == module+"/ingest/signature"
		if files > maxFiles && !listing {
			t.Errorf("%s has %d source files, the most is %d", p.ImportPath, files, maxFiles)
		}
	}
}

// TestTopLevel_HoldsWhatItShould keeps the root what a newcomer was told it is.
func TestTopLevel_HoldsWhatItShould(t *testing.T) {
	t.Parallel()
	known := []string{"ingest", "consumer", "schema", "migrations", "internal", "deploy"}
	for _, p := range ours(load(t)) {
		if p.ImportPath == module {
			continue
		}
		top, _, _ := strings.Cut(strings.TrimPrefix(p.ImportPath, module+"/"), "/")
		if !slices.Contains(known, top) {
			t.Errorf("%s: the top level holds %s", p.ImportPath, strings.Join(known, ", "))
		}
	}
}
