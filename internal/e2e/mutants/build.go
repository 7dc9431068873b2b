package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tags build the program with crash points.
const tags = "chaos"

// sources returns the files of the mutant as they are after its edits, by their names
// relative to root, the folder of the module. It fails if a text is not there exactly once.
func (m *Mutant) sources(root string) (map[string]string, error) {
	files := map[string]string{}
	for i, e := range m.Edits {
		text, ok := files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %w", m.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 || e.Old == e.New {
			return nil, fmt.Errorf("mutant %q: the text of edit %d is in %s %d times, want once, and changed: let it follow the code", m.Name, i+1, e.File, n)
		}
		files[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// packages are the folders of what the mutant changes, for the compiler.
func (m *Mutant) packages() []string {
	var all []string
	for _, e := range m.Edits {
		if p := "./" + filepath.Dir(e.File); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// overlay writes the changed files into dir, and what tells the compiler to take them.
func (m *Mutant) overlay(root, dir string) (path string, err error) {
	files, err := m.sources(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		replace[filepath.Join(root, name)] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		panic(err) // texts cannot fail
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// compile compiles packages of the mutant; into out, unless that is empty.
func (m *Mutant) compile(ctx context.Context, root, dir, out string, packages ...string) error {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return err
	}
	args := []string{"build", "-tags", tags, "-overlay", overlay}
	if out != "" {
		args = append(args, "-o", out)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile mutant %q: %w: %s", m.Name, err, text)
	}
	return nil
}

// Build compiles the program with the mutant in it and returns its path, in dir. root is
// the folder of the module.
func (m *Mutant) Build(ctx context.Context, root, dir string) (string, error) {
	out := filepath.Join(dir, "hookledger")
	return out, m.compile(ctx, root, dir, out, ".")
}
