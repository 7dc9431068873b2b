package checker

import (
	"os/exec"
	"strings"
	"testing"
)

// A judge that shared code with the judged would share its mistakes.
func TestChecker_ImportsNothingOfOurs(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "hookledger") && pkg != "hookledger/internal/e2e/checker" {
			t.Errorf("got import of %s, want none of this module", pkg)
		}
	}
}
