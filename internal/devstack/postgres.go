//go:build unix

package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hookledger/internal/devstack/process"
)

// Superuser is the role that owns a cluster made here.
const Superuser = "postgres"

// readyWithin bounds how long a cluster may take to accept connections. Crash
// recovery after kill -9 is part of it.
const readyWithin = 60 * time.Second

// PostgresOptions says where and how a local Postgres runs.
type PostgresOptions struct {
	// Dir is a folder for Postgres alone; it is made when missing. As root the
	// cluster may have to live elsewhere: Postgres.Dir tells.
	Dir string
	// Port on 127.0.0.1. Zero takes a free one.
	Port int
	// Major is the major version to run, such as 15; it is downloaded if it is not here.
	// Zero takes what the data in Dir was made by, else the newest that is here.
	Major int
	// Throwaway trades durability for speed: commits are lost when the
	// machine stops, though not when Postgres alone is killed. For tests.
	Throwaway bool
	// Settings are postgresql.conf settings that override ours.
	Settings map[string]string
	// Log receives the few things worth telling while it starts: a download,
	// a leftover that was stopped. Nil drops them.
	Log func(message string)
}

// Postgres is a running cluster. Its methods are safe for concurrent use.
type Postgres struct {
	home     string
	port     int
	password string
	bin      binaries
	proc     *process.Process
	lock     *folderLock
}

// StartPostgres makes a cluster in opts.Dir if there is none, starts it and
// returns once it accepts connections. A server that a killed predecessor left
// on the same data is stopped first. The caller must Stop it.
func StartPostgres(ctx context.Context, opts PostgresOptions) (*Postgres, error) {
	if opts.Log == nil {
		opts.Log = func(string) {}
	}
	acc, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	home, err := acc.home(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	// The kernel shows folders of processes with symbolic links resolved.
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return nil, fmt.Errorf("resolve data folder: %w", err)
	}
	lock, err := lockFolder(home)
	if err != nil {
		return nil, err
	}
	p := &Postgres{home: home, lock: lock}
	if err := p.start(ctx, acc, opts); err != nil {
		lock.release()
		return nil, err
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, acc account, opts PostgresOptions) error {
	c := cluster{home: p.home, acc: acc, throwaway: opts.Throwaway}
	if err := stopLeftovers(ctx, c.data(), opts.Log); err != nil {
		return err
	}
	var err error
	if c.bin, err = chooseBinaries(ctx, acc, c.data(), opts.Major, opts.Log); err != nil {
		return err
	}
	p.bin = c.bin
	if p.port, err = choosePort(opts.Port); err != nil {
		return err
	}
	if p.password, err = c.password(); err != nil {
		return err
	}
	if !isCluster(c.data()) {
		if err := c.initialize(ctx); err != nil {
			return err
		}
	}
	if p.proc, err = c.run(p.port, opts.Settings); err != nil {
		return err
	}
	if err := p.awaitReady(ctx); err != nil {
		tail := c.logTail()
		return errors.Join(
			fmt.Errorf("start postgres in %s: %w; the end of its log: %s", p.home, err, tail),
			p.stopAtOnce(ctx),
		)
	}
	return nil
}

// chooseBinaries finds binaries that fit the data, or the major version given when there
// is none; 0 takes any.
func chooseBinaries(ctx context.Context, acc account, data string, major int, log func(string)) (binaries, error) {
	want := clusterMajor(data)
	if want != 0 && major != 0 && want != major {
		return binaries{}, fmt.Errorf("the cluster in %s was made by Postgres %d and cannot be run by %d: choose another folder", data, want, major)
	}
	want = max(want, major)
	if b, ok := findBinaries(ctx, acc, want); ok {
		return b, nil
	}
	return download.binaries(ctx, acc, want, log)
}

func choosePort(port int) (int, error) {
	if port == 0 {
		return FreePort()
	}
	return port, portFree(port)
}

// awaitReady polls until a connection succeeds, the server ends, or time is up.
func (p *Postgres) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := p.ping(ctx)
		if err == nil {
			return nil
		}
		var answer *pgconn.PgError
		if errors.As(err, &answer) && answer.Code == "28P01" { // invalid_password
			return fmt.Errorf("log in with the kept password: %w", err)
		}
		select {
		case <-p.proc.Done():
			return fmt.Errorf("postgres ended: %w", errors.Join(p.proc.Err()))
		case <-ctx.Done():
			return fmt.Errorf("wait for postgres to accept connections: %w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is a connection string for a database of the cluster, as Superuser. It
// contains the password.
func (p *Postgres) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(Superuser, p.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Dir is where the cluster lives: the data, the password and the log.
func (p *Postgres) Dir() string { return p.home }

// Port is the TCP port on 127.0.0.1.
func (p *Postgres) Port() int { return p.port }

// Major is the major version that runs, such as 18.
func (p *Postgres) Major() int { return p.bin.major }

// PID is the process id of the server's main process.
func (p *Postgres) PID() int { return p.proc.PID() }

// Done is closed when the server has ended, asked or not.
func (p *Postgres) Done() <-chan struct{} { return p.proc.Done() }

// Stop closes all connections, writes everything out and ends the server. When
// ctx is over first, the server ends without writing out: it recovers at the
// next start, and ctx's error is returned. Stopping twice is fine.
func (p *Postgres) Stop(ctx context.Context) error {
	defer p.lock.release()
	if err := p.proc.Signal(syscall.SIGINT); err != nil { // "fast" shutdown
		return err
	}
	select {
	case <-p.proc.Done():
		return nil
	case <-ctx.Done():
	}
	return errors.Join(
		fmt.Errorf("stop postgres in %s: %w", p.home, context.Cause(ctx)),
		p.stopAtOnce(ctx),
	)
}

// stopAtOnce ends the server without writing out, even when ctx is over.
func (p *Postgres) stopAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return p.proc.Stop(ctx, syscall.SIGQUIT)
}

// ResetPostgres removes the cluster that StartPostgres keeps for dir, wherever
// it lives. A leftover server on it is stopped first; one whose owner lives is
// an error. Nothing there is fine.
func ResetPostgres(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve data folder: %w", err)
	}
	for _, home := range homes(dir) {
		if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := resetCluster(ctx, home); err != nil {
			return fmt.Errorf("remove cluster in %s: %w", home, err)
		}
	}
	return nil
}

func resetCluster(ctx context.Context, home string) error {
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return err
	}
	lock, err := lockFolder(home)
	if errors.Is(err, os.ErrPermission) {
		return nil // another user's: not the one StartPostgres would use
	}
	if err != nil {
		return err
	}
	defer lock.release()
	if err := stopLeftovers(ctx, filepath.Join(home, dataFolder), func(string) {}); err != nil {
		return err
	}
	for _, name := range []string{dataFolder, dataFolder + unfinished, passwordFile, logFile} {
		if err := os.RemoveAll(filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return nil
}

// Processes lists the server's processes, the main one and its children, as
// far as the system tells (elsewhere than on Linux: the main one alone).
func (p *Postgres) Processes(ctx context.Context) ([]int, error) {
	return processesOn(ctx, filepath.Join(p.home, dataFolder))
}
