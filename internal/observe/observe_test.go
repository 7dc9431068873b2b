package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestLogger_ForeignTextCannotForgeALine(t *testing.T) {
	t.Parallel()
	forged := "a\n{\"level\":\"error\",\"message\":\"forged\"}\x1b[31m\r"
	for _, format := range []string{FormatJSON, FormatConsole, FormatAuto} {
		var buf bytes.Buffer
		log, err := NewLogger(&buf, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info().Str("event_id", forged).Err(errors.New(forged)).Msg(forged)
		out := strings.TrimSuffix(buf.String(), "\n")
		if strings.ContainsAny(out, "\n\r\x1b") {
			t.Errorf("%s: got %q, want one line without control characters", format, out)
		}
		if format != FormatConsole {
			var line map[string]any
			if err := json.Unmarshal([]byte(out), &line); err != nil || line["event_id"] != forged {
				t.Errorf("%s: got %q (%v)", format, out, err)
			}
		}
	}
}

func TestLogger_LevelAndTime(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log, err := NewLogger(&buf, "warn", FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	log.Info().Msg("no")
	log.Warn().Dur("wait", 1500*time.Millisecond).Msg("yes")
	var line struct {
		Time time.Time
		Wait float64
	}
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q: want the warning alone", err, buf.String())
	}
	if line.Wait != 1.5 || line.Time.Location() != time.UTC || time.Since(line.Time) > time.Minute {
		t.Errorf("got %s", buf.String())
	}
	for _, bad := range [][2]string{{"loud", FormatJSON}, {"", FormatJSON}, {"info", "xml"}} {
		if _, err := NewLogger(io.Discard, bad[0], bad[1]); err == nil {
			t.Errorf("level %q, format %q: want an error", bad[0], bad[1])
		}
	}
}

func TestChecks_SayWhichFailsAndSinceWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	c := &Checks{now: func() time.Time { return now }}
	if c.State().Ready {
		t.Error("ready before there is anything to be ready")
	}
	var away error
	c.Add("consume", func() error { return away })
	c.Add("ingest", func() error { return nil })
	now = now.Add(time.Second)
	if s := c.State(); !s.Ready || !s.Checks[0].Since.Equal(now) {
		t.Errorf("got %+v, want ready since now", s)
	}
	away = errors.New("postgres does not answer")
	now = now.Add(time.Minute)
	failed := now
	c.State()
	now = now.Add(time.Hour)
	s := c.State()
	if s.Ready || s.Checks[0].OK || s.Checks[0].Error != "postgres does not answer" || !s.Checks[0].Since.Equal(failed) || !s.Checks[1].OK {
		t.Errorf("got %+v, want consume failing since %s", s, failed)
	}
	away = nil
	if s := c.State(); !s.Ready || !s.Checks[0].Since.Equal(now) {
		t.Errorf("got %+v, want ready again", s)
	}
	c.Drain("stopping")
	if s := c.State(); s.Ready || s.Checks[2].Error != "stopping" {
		t.Errorf("got %+v, want not ready while draining", s)
	}
}

// admin runs an admin listener and returns how to ask it.
func admin(t *testing.T, checks *Checks) func(path string) (int, string) {
	t.Helper()
	a, err := ListenAdmin("127.0.0.1:0", checks, NewRegistry(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + a.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func TestAdmin_Answers(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	checks := &Checks{}
	checks.Add("ingest", func() error {
		if back.Load() {
			return nil
		}
		return errors.New("kafka does not answer")
	})
	ask := admin(t, checks)
	if code, body := ask("/livez"); code != 200 || !strings.Contains(body, `"alive":true`) {
		t.Errorf("/livez: %d %s", code, body)
	}
	code, body := ask("/readyz")
	var s State
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != 503 || s.Ready || s.Checks[0].Error != "kafka does not answer" {
		t.Errorf("/readyz: %d %s %v", code, body, err)
	}
	back.Store(true)
	if code, _ := ask("/readyz"); code != 200 {
		t.Errorf("/readyz: got %d, want 200", code)
	}
	if code, body := ask("/metrics"); code != 200 || !strings.Contains(body, "hookledger_observe_build_info{") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("/metrics: %d %.200s", code, body)
	}
	if code, body := ask("/debug/pprof/"); code != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("/debug/pprof/: %d %.200s", code, body)
	}
	if code, _ := ask("/"); code != 404 {
		t.Errorf("/: got %d, want 404", code)
	}
}

func TestAdmin_TakenPortIsAnError(t *testing.T) {
	t.Parallel()
	a, err := ListenAdmin("127.0.0.1:0", &Checks{}, NewRegistry(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.listener.Close() }()
	if _, err := ListenAdmin(a.Addr().String(), &Checks{}, NewRegistry(), zerolog.Nop()); err == nil {
		t.Error("want an error")
	}
}

func TestBuild_KnowsItself(t *testing.T) {
	t.Parallel()
	if b := Build(); b.Version == "" || !strings.HasPrefix(b.Go, "go1.") || b.OS == "" {
		t.Errorf("got %+v", b)
	}
}
