package gameday

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hookledger/internal/testkit"
)

// blocks returns the commands of a section of a runbook page, block by block.
func (s *stack) blocks(page, section string) [][]string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "runbook", page))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		s.t.Fatalf("%s has no section %s", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var out [][]string
	for _, part := range strings.Split(rest, "```sh\n")[1:] {
		code, _, _ := strings.Cut(part, "\n```")
		out = append(out, strings.Split(code, "\n"))
	}
	if len(out) == 0 {
		s.t.Fatalf("%s: section %s has no commands", page, section)
	}
	return out
}

// words are the values of a page's placeholders. Where a page speaks of one and there are
// several, its command is run for each.
type words map[string][]string

// look runs the commands of a page that only look; a finding is no failure.
func (s *stack) look(page string, w words) {
	s.t.Helper()
	say("   the page deploy/runbook/%s, Look:", page)
	for _, block := range s.blocks(page, "Look") {
		s.block(block, w, 0, 3)
	}
}

// do runs the n-th block of a page's section Do.
func (s *stack) do(page string, n int, w words) {
	s.t.Helper()
	say("   Do:")
	s.block(s.blocks(page, "Do")[n], w, 0)
}

// prove runs the commands that prove the books right.
func (s *stack) prove(page string) {
	s.t.Helper()
	s.settle()
	say("   Prove:")
	for _, block := range s.blocks(page, "Prove") {
		s.block(block, nil, 0)
	}
	s.sums()
}

func (s *stack) block(lines []string, w words, allowed ...int) {
	s.t.Helper()
	for _, line := range lines {
		for _, filled := range fill(line, w) {
			s.line(filled, allowed)
		}
	}
}

// fill puts values in the place of placeholders.
func fill(line string, w words) []string {
	lines := []string{line}
	for name, values := range w {
		if !strings.Contains(line, "$"+name) {
			continue
		}
		var next []string
		for _, l := range lines {
			for _, v := range values {
				next = append(next, strings.ReplaceAll(l, "$"+name, v))
			}
		}
		lines = next
	}
	return lines
}

func (s *stack) line(line string, allowed []int) {
	s.t.Helper()
	say("   $ %s", line)
	if verb, ok := strings.CutPrefix(line, "systemctl "); ok {
		s.systemctl(verb)
		return
	}
	if strings.HasPrefix(line, "journalctl ") {
		p := s.worker
		if strings.Contains(line, "ingest") {
			p = s.ingest
		}
		show(p.Output(), 3)
		return
	}
	if strings.HasPrefix(line, "hookledger ready ") {
		// A person asks until it is.
		testkit.Eventually(s.t, patience, func() error {
			if out, code := s.shell(line); code != 0 {
				return errors.New(out)
			}
			return nil
		})
		return
	}
	out, code := s.shell(line)
	show(out, 16)
	for _, ok := range allowed {
		if code == ok {
			return
		}
	}
	s.t.Errorf("%s: exit code %d, want %v:\n%s", line, code, allowed, out)
}

// show prints the end of what a command wrote, as a part of the story.
func show(out string, most int) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if cut := len(lines) - most; cut > 0 {
		say("     … %d lines more", cut)
		lines = lines[cut:]
	}
	for _, l := range lines {
		if l != "" {
			say("     %s", l)
		}
	}
}

// systemctl stops and starts the parts of the stack.
func (s *stack) systemctl(verb string) {
	s.t.Helper()
	action, unit, _ := strings.Cut(verb, " ")
	stop := func() {}
	var start func()
	var down *bool
	switch unit {
	case "hookledger-consume":
		down, stop, start = &s.workerDown, func() { s.worker.Stop(time.Minute) }, s.worker.Restart
	case "hookledger-ingest":
		down, stop, start = &s.ingestDown, func() { s.ingest.Stop(time.Minute) }, s.ingest.Restart
	case "kafka":
		down, start = &s.kafkaDown, func() { s.kafka.Start(0) }
	case "postgresql":
		down, start = &s.pgDown, func() { s.pg.Start() }
	default:
		s.t.Fatalf("there is no unit %s", unit)
	}
	if action != "start" && !*down {
		stop()
		*down = true
	}
	if action != "stop" && *down {
		start()
		*down = false
	}
}

// shell runs a command line as a person would.
func (s *stack) shell(line string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"), "HOOKLEDGER_CONFIG="+s.config)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", line, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (s *stack) must(line string) {
	s.t.Helper()
	if out, code := s.shell(line); code != 0 {
		s.t.Fatalf("%s: exit code %d: %s", line, code, out)
	}
}
