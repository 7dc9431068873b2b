package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goList runs go list at the top of the module and returns the words of its answer.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, complaints.String())
	}
	words := strings.Fields(string(out))
	slices.Sort(words)
	return slices.Compact(words)
}

// imported lists the modules that packages of ours import by themselves.
func imported(t *testing.T, fields string) []string {
	t.Helper()
	var foreign []string
	for _, path := range goList(t, "-f", fields, "./...") {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			foreign = append(foreign, path)
		}
	}
	return goList(t, append([]string{"-f", "{{with .Module}}{{.Path}}{{end}}"}, foreign...)...)
}

func TestDependencies_EachHasItsReason(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join(root, "DEPENDENCIES.md"))
	program, tests, ok := strings.Cut(page, "## In tests alone")
	if !ok {
		t.Fatal("DEPENDENCIES.md has no list for tests")
	}
	rows := func(text string) []string {
		var modules []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+\\.[^`]+)` \\| ([^|]{20,}) \\|$").FindAllStringSubmatch(text, -1) {
			modules = append(modules, m[1])
		}
		slices.Sort(modules)
		return modules
	}
	tests, _, _ = strings.Cut(tests, "## Beside Go")
	inProgram := imported(t, `{{range .Imports}}{{.}} {{end}}`)
	all := imported(t, `{{range .Imports}}{{.}} {{end}}{{range .TestImports}}{{.}} {{end}}{{range .XTestImports}}{{.}} {{end}}`)
	inTests := slices.DeleteFunc(all, func(m string) bool { return slices.Contains(inProgram, m) })
	if got := rows(program); !slices.Equal(got, inProgram) {
		t.Errorf("DEPENDENCIES.md lists for the program\n got %v\nwant %v", got, inProgram)
	}
	if got := rows(tests); !slices.Equal(got, inTests) {
		t.Errorf("DEPENDENCIES.md lists for tests\n got %v\nwant %v", got, inTests)
	}
	// Direct requirements of go.mod are what is imported, and nothing else.
	known := append(inProgram, inTests...)
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(read(t, filepath.Join(root, "go.mod")), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("go.mod requires %s directly, and nothing imports it: run go mod tidy", m[1])
		}
	}
}

// buildFlags are those of `make build`, read from where they stand.
func buildFlags(t *testing.T) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^\tCGO_ENABLED=0 go build (.*) -ldflags '([^']*)' -o bin/hookledger \.$`).FindStringSubmatch(read(t, filepath.Join(root, "Makefile")))
	if line == nil {
		t.Fatal("the Makefile's build line is not as this test reads it")
	}
	return append(strings.Fields(line[1]), "-buildvcs=false", "-ldflags", strings.ReplaceAll(line[2], "$(VERSION)", "v0.0.0-test"))
}

// The same sources in two places make the same bytes. `make reproducible` does the same
// from nothing, with two empty caches.
func TestBuild_IsReproducible(t *testing.T) {
	t.Parallel()
	flags := buildFlags(t)
	var sums []string
	for range 2 {
		dir := filepath.Join(t.TempDir(), "somewhere", "else")
		copySources(t, dir)
		cmd := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", "hookledger", "."})...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		binary, err := os.ReadFile(filepath.Join(dir, "hookledger"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(binary)))
		if strings.Contains(string(binary), dir) {
			t.Errorf("the program holds the path it was built in")
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds differ: %s and %s", sums[0], sums[1])
	}
}

// copySources copies what the program is built from.
func copySources(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin"):
			return fs.SkipDir
		case d.IsDir(), strings.HasSuffix(name, "_test.go"), !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
