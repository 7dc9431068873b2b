package crashpoint_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookledger/internal/testkit"
)

// victim runs the program in testdata, built with tags, and returns what it wrote, the
// mark, and how it ended.
func victim(t *testing.T, tags, order string) (out, mark string, err error) {
	t.Helper()
	program := testkit.BuildProgram(t, "./internal/crashpoint/testdata/victim", tags)
	path := filepath.Join(t.TempDir(), "mark")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "CRASHPOINT="+order, "CRASHPOINT_MARK="+path)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(order, "stop") {
		testkit.Eventually(t, time.Minute, func() error {
			text, err := os.ReadFile(path)
			mark = string(text)
			return err
		})
		// Once it has stopped, and not before: SIGCONT would be lost.
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("wait for the victim to stop: %v, status %v", err, status)
		}
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	err = cmd.Wait()
	text, _ := os.ReadFile(path) // none is empty
	return b.String(), string(text), err
}

func TestReach_OrdinaryBuildDoesNothing(t *testing.T) {
	t.Parallel()
	out, mark, err := victim(t, "", "victim.step@1=kill")
	if out != "0\n1\n2\n3\n4\nend\n" || mark != "" || err != nil {
		t.Errorf("got %q, mark %q, %v; want all five and the end", out, mark, err)
	}
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if got := strings.TrimSpace(string(deps)); err != nil || strings.Contains(got, "\n") {
		t.Errorf("the ordinary build depends on %s (%v), want nothing", got, err)
	}
}

func TestReach_KillsAtTheNthTime(t *testing.T) {
	t.Parallel()
	out, mark, err := victim(t, "chaos", "victim.step@3=kill")
	var exit *exec.ExitError
	if out != "0\n1\n2\n" || mark != "victim.step" || !errors.As(err, &exit) {
		t.Fatalf("got %q, mark %q, %v; want three lines, the mark and kill -9", out, mark, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("got %v, want kill -9", err)
	}
}

func TestReach_StopsAtTheNthTimeAndGoesOn(t *testing.T) {
	t.Parallel()
	out, mark, err := victim(t, "chaos", "victim.step@5=stop")
	if out != "0\n1\n2\n3\n4\nend\n" || mark != "victim.step" || err != nil {
		t.Errorf("got %q, mark %q, %v; want all five and the end", out, mark, err)
	}
}

func TestReach_RefusesAnOrderItCannotRead(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"victim.step", "victim.step@0=kill", "victim.step@1=sleep", "@1=kill"} {
		if out, _, err := victim(t, "chaos", order); err == nil || !strings.Contains(out, "point@nth") {
			t.Errorf("order %q: got %q, %v; want it refused", order, out, err)
		}
	}
}
