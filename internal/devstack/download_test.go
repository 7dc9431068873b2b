//go:build unix

package devstack

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A repository that is away for a moment is asked again; one that stays away is an error
// that says what to do.
func TestDownload_TriesAgainAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "come back later", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	d := downloader{repository: server.URL, waits: []time.Duration{time.Millisecond, time.Millisecond}}
	var told []string
	_, err := d.fetch(t.Context(), t.TempDir(), downloadable[17], func(m string) { told = append(told, m) })
	if err == nil || !strings.Contains(err.Error(), "3 attempts") {
		t.Errorf("got error %v, want one after 3 attempts", err)
	}
	if got := asked.Load(); got != 3 {
		t.Errorf("requests: got %d, want 3", got)
	}
	if len(told) != 2 {
		t.Errorf("told while trying: got %q, want a line for each new attempt", told)
	}
}

// A repository that never answers holds nobody longer than the caller wants.
func TestDownload_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	d := downloader{repository: server.URL, waits: []time.Duration{time.Hour}}
	if _, err := d.fetch(ctx, t.TempDir(), downloadable[17], func(string) {}); err == nil {
		t.Error("got no error from a repository that does not answer")
	}
}

func TestDownload_RefusesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	acc, err := postgresAccount()
	if err != nil {
		t.Fatal(err)
	}
	_, err = chooseBinaries(t.Context(), acc, t.TempDir(), 99, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "install the Debian package postgresql-99") {
		t.Errorf("got error %v, want what to install", err)
	}
}

// Data is run by the version that made it or not at all.
func TestStartPostgres_RefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := StartPostgres(ctx, PostgresOptions{Dir: dir, Throwaway: true, Major: p.Major() + 1})
	if err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("got error %v, want a refusal", err)
	}
}

// Of two processes that downloaded at the same time the second uses what the first has
// kept, which may be running; what is broken is replaced.
func TestDownload_KeepsWhatAnotherProcessKept(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	acc, err := postgresAccount()
	if err != nil {
		t.Fatal(err)
	}
	made := func(name, version string) string {
		t.Helper()
		home := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"initdb", "postgres"} {
			script := "#!/bin/sh\necho '" + program + " (PostgreSQL) " + version + "'\n"
			if err := os.WriteFile(filepath.Join(home, "bin", program), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return home
	}
	final := made("broken", "nonsense")
	for i, name := range []string{"first", "second"} {
		unpacked := made(name, "18.3")
		b, err := keep(ctx, acc, unpacked, final, 18)
		if err != nil || b.major != 18 || b.dir != filepath.Join(final, "bin") {
			t.Fatalf("%s: got %+v %v, want 18 in %s", name, b, err, final)
		}
		if _, err := os.Stat(unpacked); (err == nil) != (i == 1) {
			t.Errorf("%s: still where it was unpacked: %v, want the first one moved", name, err == nil)
		}
	}
}
