package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/devstack"
	"hookledger/internal/testkit/authority"
)

// PostgresCluster is a cluster of one test, which may do with it what it
// likes. Its methods fail the test on errors and are not safe for concurrent
// use. Address and data stay the same over Stop, Kill and Start.
type PostgresCluster struct {
	tb       testing.TB
	dir      string
	settings map[string]string
	server   *devstack.Postgres
}

// NewPostgres starts a cluster of the test's own. Settings are written
// "name=value", such as "fsync=on": the cluster is a throwaway one otherwise.
func NewPostgres(tb testing.TB, settings ...string) *PostgresCluster {
	tb.Helper()
	dir, err := scratchDir()
	if err != nil {
		tb.Fatal(err)
	}
	c := &PostgresCluster{tb: tb, dir: dir, settings: map[string]string{}}
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			tb.Fatalf("Postgres setting %q is not name=value", s)
		}
		c.settings[name] = value
	}
	c.start(0)
	tb.Cleanup(c.discard)
	return c
}

// discard ends the cluster, whatever the test did to it, without waiting for
// it to write anything out. Not by SIGKILL, so that shared memory is given back.
func (c *PostgresCluster) discard() {
	c.signalAll(syscall.SIGCONT)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.server.Stop(over)          // returns over's error: nothing of interest
	_ = os.RemoveAll(c.server.Dir()) // now rather than when this process ends
}

func (c *PostgresCluster) start(port int) {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), downloadWithin)
	defer cancel()
	server, err := startThrowaway(ctx, c.dir, port, c.settings)
	if err != nil {
		c.tb.Fatalf("start Postgres of the test: %v", err)
	}
	c.server = server
}

// URL is the connection string of a superuser for a database; "postgres"
// always exists.
func (c *PostgresCluster) URL(database string) string { return c.server.URL(database) }

// Port is the TCP port on 127.0.0.1.
func (c *PostgresCluster) Port() int { return c.server.Port() }

// Pool returns a pool on a database, closed after the test.
func (c *PostgresCluster) Pool(database string) *pgxpool.Pool {
	c.tb.Helper()
	return openPool(c.tb, c.URL(database))
}

// Start starts a stopped or killed cluster again and returns when it accepts
// connections, so after crash recovery.
func (c *PostgresCluster) Start() {
	c.tb.Helper()
	c.start(c.server.Port())
}

// Stop shuts down in good order: connections are closed, commits kept.
func (c *PostgresCluster) Stop() {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := c.server.Stop(ctx); err != nil {
		c.tb.Fatal(err)
	}
}

// StopAtOnce shuts down in immediate mode: connections are cut, nothing is written out,
// and the next Start recovers.
func (c *PostgresCluster) StopAtOnce() {
	c.tb.Helper()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.server.Stop(over) // returns over's error: nothing of interest
	<-c.server.Done()
}

// Kill ends every process of the cluster with SIGKILL, as if the machine
// running it had died but its disk lived on.
func (c *PostgresCluster) Kill() {
	c.tb.Helper()
	// Stopped first, the main process can neither start children nor begin
	// to recover from the death of one.
	c.signalAll(syscall.SIGSTOP)
	c.signalAll(syscall.SIGKILL)
	<-c.server.Done()
	c.Stop() // gives the folder free
}

// Pause freezes every process of the cluster: connections stay open and
// nothing answers. Resume thaws it.
func (c *PostgresCluster) Pause() {
	c.tb.Helper()
	c.signalAll(syscall.SIGSTOP)
}

// Resume ends a Pause.
func (c *PostgresCluster) Resume() {
	c.tb.Helper()
	c.signalAll(syscall.SIGCONT)
}

func (c *PostgresCluster) signalAll(sig syscall.Signal) {
	c.tb.Helper()
	select {
	case <-c.server.Done():
		return
	default:
	}
	// The main process by itself: it is our child, so its number is safe.
	if err := syscall.Kill(c.server.PID(), sig); err != nil {
		c.tb.Fatalf("send %s to Postgres: %v", sig, err)
	}
	pids, err := c.server.Processes(context.Background())
	if err != nil {
		c.tb.Fatal(err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // may have ended meanwhile
	}
}

// SetReadOnly makes transactions that begin from now on read-only, or ends
// that. A transaction may still ask for read-write explicitly.
func (c *PostgresCluster) SetReadOnly(readOnly bool) {
	c.tb.Helper()
	value := "off"
	if readOnly {
		value = "on"
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for _, sql := range []string{
		`alter system set default_transaction_read_only = ` + value, // allowed in read-only transactions
		`select pg_reload_conf()`,
	} {
		if err := execute(ctx, c.URL("postgres"), sql); err != nil {
			c.tb.Fatal(err)
		}
	}
	Eventually(c.tb, startWithin, func() error { return c.expectSetting(ctx, "default_transaction_read_only", value) })
}

func (c *PostgresCluster) expectSetting(ctx context.Context, name, want string) error {
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var got string
	if err := conn.QueryRow(ctx, `select current_setting($1)`, name).Scan(&got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("setting %s: got %s, want %s", name, got, want)
	}
	return nil
}

// EnableTLS makes the cluster speak TLS with a certificate of a for the hosts given.
// Plaintext is taken as before.
func (c *PostgresCluster) EnableTLS(a *authority.Authority, hosts ...string) {
	c.tb.Helper()
	info, err := os.Stat(filepath.Join(c.server.Dir(), "data"))
	if err != nil {
		c.tb.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		c.tb.Fatal("the owner of the cluster's folder is not known")
	}
	cert := a.IssueTo(filepath.Join(c.server.Dir(), "server"), "postgres", 24*time.Hour, hosts...)
	for _, path := range []string{cert.CertFile, cert.KeyFile} {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			c.tb.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for _, sql := range []string{
		fmt.Sprintf(`alter system set ssl_cert_file = '%s'`, cert.CertFile),
		fmt.Sprintf(`alter system set ssl_key_file = '%s'`, cert.KeyFile),
		`alter system set ssl = on`,
		`select pg_reload_conf()`,
	} {
		if err := execute(ctx, c.URL("postgres"), sql); err != nil {
			c.tb.Fatal(err)
		}
	}
	Eventually(c.tb, startWithin, func() error { return c.expectSetting(ctx, "ssl", "on") })
}

// TLSURL is URL with the host and the sslmode given, which believes a alone.
func (c *PostgresCluster) TLSURL(a *authority.Authority, host, mode, database string) string {
	c.tb.Helper()
	u, err := url.Parse(c.URL(database))
	if err != nil {
		c.tb.Fatal(err)
	}
	u.Host = strings.Replace(u.Host, "127.0.0.1", host, 1)
	u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {a.File}}.Encode()
	return u.String()
}
