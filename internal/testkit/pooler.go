package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/devstack"
	"hookledger/internal/devstack/process"
)

// PoolerEnv has every database of Postgres, PostgresURL, LedgerDB and LedgerURL reached
// through PgBouncer, in the mode that it names: transaction.
const PoolerEnv = "HOOKLEDGER_TEST_POOLER"

// pooled is the PgBouncer before the cluster that the tests of this process share.
type pooled struct {
	server *devstack.Postgres
	port   int
}

var sharedPooler = sync.OnceValues(func() (*pooled, error) {
	server, err := sharedPostgres()
	if err != nil {
		return nil, err
	}
	p, err := startPgBouncer(server.URL("postgres"), os.Getenv(PoolerEnv))
	if err != nil {
		return nil, err
	}
	return &pooled{server, p.port}, nil
})

// pooledURL is the connection string of a database of the shared cluster: through the
// pooler, if the tests are to run so.
func pooledURL(server *devstack.Postgres, database string) (string, error) {
	if os.Getenv(PoolerEnv) == "" {
		return server.URL(database), nil
	}
	p, err := sharedPooler()
	if err != nil {
		return "", err
	}
	return through(server.URL(database), p.port)
}

// through is a connection string with the port of a pooler. Debian 12's PgBouncer does
// not know prepared statements, which pgx uses for what a test asks by itself.
func through(direct string, port int) (string, error) {
	u, err := url.Parse(direct)
	if err != nil {
		return "", fmt.Errorf("read connection string: %w", err)
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	q := u.Query()
	q.Set("default_query_exec_mode", "exec")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// DirectURL returns a connection string of PostgresURL or LedgerURL as one that leads to
// Postgres itself: for migrations, and for what needs a session. Others stay as they are.
func DirectURL(tb testing.TB, connection string) string {
	tb.Helper()
	if os.Getenv(PoolerEnv) == "" {
		return connection
	}
	p, err := sharedPooler()
	if err != nil {
		tb.Fatal(err)
	}
	u, err := url.Parse(connection)
	if err != nil {
		tb.Fatal(err)
	}
	if u.Port() != strconv.Itoa(p.port) {
		return connection
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.server.Port())
	q := u.Query()
	q.Del("default_query_exec_mode")
	u.RawQuery = q.Encode()
	return u.String()
}

// Pooler is PgBouncer before a server of Postgres.
type Pooler struct {
	// URL reaches the database through it.
	URL string

	proc *process.Process
	port int
	// config is its configuration, settings what that says but for the server's port.
	config, settings string
}

// PgBouncer starts PgBouncer before the database that a connection string names, in a
// pool mode. It ends with the test.
func PgBouncer(tb testing.TB, database, mode string) *Pooler {
	tb.Helper()
	p, err := startPgBouncer(database, mode)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.proc.Kill)
	return p
}

// startPgBouncer starts one before the server of a connection string, whose user has to
// be a superuser: it looks up every other user.
func startPgBouncer(database, mode string) (*Pooler, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, fmt.Errorf("read connection string: %w", err)
	}
	server, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("read connection string: %w", err)
	}
	port, err := devstack.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := scratchDir()
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	users, log := filepath.Join(dir, "users"), filepath.Join(dir, "log")
	p := &Pooler{port: port, config: filepath.Join(dir, "pgbouncer.ini"), settings: fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=SERVER auth_user=%[1]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[2]d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %[3]s
admin_users = %[1]s
auth_query = select usename, passwd from pg_shadow where usename = $1
pool_mode = %[4]s
max_client_conn = 1000
default_pool_size = 30
server_idle_timeout = 5
ignore_startup_parameters = extra_float_digits
`, u.User.Username(), port, users, mode)}
	err = errors.Join(os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", u.User.Username(), password), 0o644), p.configure(server))
	if err != nil {
		return nil, fmt.Errorf("configure pgbouncer: %w", err)
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where Debian puts it, off the PATH of users
	}
	cmd := exec.Command(program, "-q", p.config)
	cmd.Dir = "/"
	if cmd.SysProcAttr, err = notRoot(); err != nil {
		return nil, err
	}
	output, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }() // the child has its own copy
	cmd.Stdout, cmd.Stderr = output, output
	if p.proc, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("start pgbouncer: install the Debian package pgbouncer: %w", err)
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	p.URL = u.String()
	err = eventually(startWithin, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		conn, err := pgx.Connect(ctx, p.URL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		p.proc.Kill()
		return nil, fmt.Errorf("start pgbouncer: %w; the end of its log: %s", err, tail(log, 20))
	}
	return p, nil
}

// configure writes which server it leads to.
func (p *Pooler) configure(server int) error {
	return os.WriteFile(p.config, []byte(strings.Replace(p.settings, "SERVER", strconv.Itoa(server), 1)), 0o644)
}

// PointTo has it lead to another server, of this port, after the command RELOAD.
func (p *Pooler) PointTo(tb testing.TB, server int) {
	tb.Helper()
	if err := p.configure(server); err != nil {
		tb.Fatalf("configure pgbouncer: %v", err)
	}
}

// Command runs a command of its console, such as PAUSE.
func (p *Pooler) Command(tb testing.TB, command string) {
	tb.Helper()
	cfg, err := pgx.ParseConfig(p.URL)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Database, cfg.DefaultQueryExecMode = "pgbouncer", pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(tb.Context(), command); err != nil {
		tb.Fatalf("pgbouncer: %s: %v", command, err)
	}
}

// notRoot makes a child run as nobody if we are root, which pgbouncer refuses to be.
func notRoot() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("find a user for pgbouncer: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read uid of nobody: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read gid of nobody: %w", err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// RoleURL returns a connection string of a new role that has the rights of a group, such
// as hookledger_worker, and no others. The role is dropped after the test.
func RoleURL(tb testing.TB, connection, group string) string {
	tb.Helper()
	direct := DirectURL(tb, connection)
	name := uniqueName("login")
	run := func(sql string) {
		tb.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if err := execute(ctx, direct, sql); err != nil {
			tb.Errorf("role of the test: %v", err)
		}
	}
	run(fmt.Sprintf(`create role %s login password '%[1]s' in role %s`, name, group))
	tb.Cleanup(func() { run(`drop role ` + name) })
	u, err := url.Parse(connection)
	if err != nil {
		tb.Fatal(err)
	}
	u.User = url.UserPassword(name, name)
	return u.String()
}
