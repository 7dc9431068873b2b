package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	// makeTarget is a target of the Makefile.
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
	// makeCommand is a command as pages write it: at the start of a line of code, or in
	// backquotes.
	makeCommand = regexp.MustCompile("(?m)(?:^ *|`)make ([a-z-]+)")
)

// TestPages_NameTargetsThatExist: every `make target` of the pages is in the Makefile.
func TestPages_NameTargetsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		targets[m[1]] = true
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages: got %d, %v", len(pages), err)
	}
	named := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeCommand.FindAllStringSubmatch(string(text), -1) {
			named++
			if !targets[m[1]] {
				t.Errorf("%s: `make %s`: there is no such target", filepath.Base(page), m[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("commands found in the pages: got %d, want at least 10", named)
	}
}
