package app

import (
	"bytes"
	"os"
	"testing"
)

// A terminal gets a bar; a file, a pipe and whoever asked for JSON get nothing.
func TestProgress_IsOfTerminalsAlone(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, c := range []struct {
		name string
		app  App
		bar  bool
	}{
		{"a terminal", App{Process: Process{Stderr: terminal}}, true},
		{"a terminal, with --json", App{Process: Process{Stderr: terminal}, JSON: true}, false},
		{"a file", App{Process: Process{Stderr: file}}, false},
		{"a buffer", App{Process: Process{Stderr: &bytes.Buffer{}}}, false},
	} {
		p := c.app.NewProgress()
		if (p.w != nil) != c.bar {
			t.Errorf("%s: a bar is %t, want %t", c.name, p.w != nil, c.bar)
		}
		var out bytes.Buffer
		if c.bar {
			p.w = &out
		}
		p.Update("replaying", 5, 10)
		p.Count("reading line", 7)
		p.Clear()
		if (out.Len() > 0) != c.bar {
			t.Errorf("%s: got %q", c.name, out.String())
		}
	}
	if info, err := file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the file holds %d bytes (%v)", info.Size(), err)
	}
}
