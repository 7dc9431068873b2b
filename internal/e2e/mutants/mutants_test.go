package mutants

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// root is the folder of the module.
func root(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// TestTable_FitsTheCode holds each mutant against the source: its texts are there exactly
// once, what it makes of them parses, and all of them together compile (no two change the
// same lines, and one compilation is fifteen times as cheap).
func TestTable_FitsTheCode(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	all := Mutant{Name: "all together"}
	for _, m := range Table {
		if m.Name == "" || m.Breaks == "" || len(m.Edits) == 0 || seen[m.Name] {
			t.Errorf("mutant %q: a name of its own, what it breaks, and edits are missing", m.Name)
		}
		seen[m.Name] = true
		all.Edits = append(all.Edits, m.Edits...)
		files, err := m.sources(root(t))
		if err != nil {
			t.Error(err)
		}
		for name, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("mutant %q: %v", m.Name, err)
			}
		}
	}
	if err := all.compile(t.Context(), root(t), t.TempDir(), "", all.packages()...); err != nil {
		t.Error(err)
	}
	if len(Table) < 14 {
		t.Errorf("got %d mutants, want 14 or more", len(Table))
	}
}
