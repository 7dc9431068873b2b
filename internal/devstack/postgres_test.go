//go:build unix

package devstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// setup returns a context and a folder that another uid can reach: the ones
// that testing makes are 0700.
func setup(t *testing.T) (context.Context, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "hookledger-devstack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return ctx, filepath.Join(dir, "postgres")
}

func start(ctx context.Context, t *testing.T, opts PostgresOptions) *Postgres {
	t.Helper()
	opts.Log = func(m string) { t.Log(m) }
	p, err := StartPostgres(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	return p
}

func execute(ctx context.Context, t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestStartPostgres_KeepsDataAndPasswordOverRestart(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir})
	execute(ctx, t, p.URL("postgres"), `create table kept (n int)`)
	url := p.URL("postgres")
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(ctx); err != nil {
		t.Fatalf("second Stop: %v", err)
	}

	began := time.Now()
	p = start(ctx, t, PostgresOptions{Dir: dir, Port: p.Port()})
	t.Logf("second start took %s", time.Since(began))
	if p.URL("postgres") != url {
		t.Fatalf("URL changed over a restart with the same port")
	}
	execute(ctx, t, url, `insert into kept values (1)`)
	for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "password_encryption": "scram-sha-256"} {
		if got := show(ctx, t, url, setting); got != want {
			t.Errorf("%s: got %s, want %s", setting, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(p.Dir(), passwordFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: got %v %v, want mode 0600", info, err)
	}
}

func show(ctx context.Context, t *testing.T, url, setting string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, `select current_setting($1)`, setting).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestStartPostgres_RefusesAWrongPassword(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	wrong := strings.Replace(p.URL("postgres"), p.password, "wrong", 1)
	if conn, err := pgx.Connect(ctx, wrong); err == nil {
		_ = conn.Close(ctx)
		t.Fatal("a wrong password was accepted")
	}
}

func TestStartPostgres_FolderInUse(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	_, err := StartPostgres(ctx, PostgresOptions{Dir: dir, Throwaway: true})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Fatalf("second start on one folder: got %v, want an error that names this process", err)
	}
	if err := ResetPostgres(ctx, dir); err == nil {
		t.Fatal("reset of a cluster in use: got no error")
	}
	execute(ctx, t, p.URL("postgres"), `select 1`)
}

func TestStartPostgres_PortTaken(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	port := ln.Addr().(*net.TCPAddr).Port
	_, err = StartPostgres(ctx, PostgresOptions{Dir: dir, Port: port, Throwaway: true})
	if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(port)+" on 127.0.0.1 is taken") {
		t.Fatalf("got %v, want an error that names the port", err)
	}
}

// A predecessor killed with -9 may leave a server whose pid file is valid and
// whose folder lock is free.
func TestStartPostgres_StopsALeftoverServer(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	left := start(ctx, t, PostgresOptions{Dir: dir})
	execute(ctx, t, left.URL("postgres"), `create table kept (n int)`)
	left.lock.release() // as the kernel does when the owner dies

	p := start(ctx, t, PostgresOptions{Dir: dir})
	select {
	case <-left.Done():
	default:
		t.Fatal("the leftover still runs beside the new server")
	}
	execute(ctx, t, p.URL("postgres"), `select * from kept`)
}

func TestStartPostgres_RecoversFromAKilledServer(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	execute(ctx, t, p.URL("postgres"), `create table kept (n int)`)
	if err := p.proc.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	_ = p.Stop(ctx)
	p = start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	execute(ctx, t, p.URL("postgres"), `select * from kept`)
}

func TestStartPostgres_IgnoresAPIDFileOfAnotherProcess(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(p.Dir(), dataFolder, "postmaster.pid")
	stale := fmt.Sprintf("%d\n%s\n1\n1\n\n\n", os.Getpid(), filepath.Dir(pidFile))
	if err := os.WriteFile(pidFile, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
}

func TestResetPostgres(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	if err := ResetPostgres(ctx, dir); err != nil {
		t.Fatalf("reset of nothing: %v", err)
	}
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	execute(ctx, t, p.URL("postgres"), `create table gone (n int)`)
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ResetPostgres(ctx, dir); err != nil {
		t.Fatal(err)
	}
	p = start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	execute(ctx, t, p.URL("postgres"), `create table gone (n int)`)
}

// As root the folder of a test is out of reach for the account that runs
// Postgres; the cluster then lives elsewhere, and stays there.
func TestStartPostgres_FolderOutOfReach(t *testing.T) {
	t.Parallel()
	ctx, _ := setup(t)
	dir := filepath.Join(t.TempDir(), "postgres")
	p := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true})
	t.Cleanup(func() { _ = os.RemoveAll(p.Dir()) })
	if os.Geteuid() != 0 {
		if p.Dir() != dir {
			t.Fatalf("got cluster in %s, want %s", p.Dir(), dir)
		}
		return
	}
	if filepath.Dir(p.Dir()) != sharedFolder {
		t.Fatalf("got cluster in %s, want it below %s", p.Dir(), sharedFolder)
	}
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if again := start(ctx, t, PostgresOptions{Dir: dir, Throwaway: true}); again.Dir() != p.Dir() {
		t.Fatalf("got cluster in %s at the second start, want %s", again.Dir(), p.Dir())
	}
}

func TestParseMajor(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 18.3":                             18,
		"initdb (PostgreSQL) 19beta1":                            19,
		"postgres (PostgreSQL) 18":                               18,
	} {
		if got, err := parseMajor(in); err != nil || got != want {
			t.Errorf("parseMajor(%q): got %d %v, want %d", in, got, err, want)
		}
	}
	if _, err := parseMajor("something else"); err == nil {
		t.Error("parseMajor of nonsense: got no error")
	}
}
