package doctor_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/devstack"
	"hookledger/internal/devstack/process"
	"hookledger/internal/ops/doctor"
	"hookledger/internal/testkit"
)

func TestExamine_TellsPoolersApart(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	direct := p.url
	for _, c := range []struct {
		mode    string
		verdict doctor.Verdict
		words   string
	}{
		{"session", doctor.OK, "each connection is its own"},
		{"transaction", doctor.Note, "direct connection"},
		{"statement", doctor.Problem, "pool_mode"},
	} {
		p.url = pgbouncer(t, direct, c.mode)
		r := p.examine()
		want(t, r, "database_pooler", c.verdict, c.words)
		if c.mode != "statement" {
			want(t, r, "schema", doctor.OK, "")
		}
	}
}

// pgbouncer starts one in front of a database and returns its connection string.
func pgbouncer(t *testing.T, database, mode string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where Debian puts it, off the PATH of users
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port, err := devstack.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hookledger-pgbouncer") // not TempDir: another user reads it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	for name, text := range map[string]string{
		"users": fmt.Sprintf("%q %q\n", u.User.Username(), password),
		"ini": fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = %s
`, u.Port(), port, filepath.Join(dir, "users"), mode),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", filepath.Join(dir, "ini")}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...) // it refuses to be root
	}
	proc, err := process.Start(exec.Command(program, args...), syscall.SIGKILL)
	if err != nil {
		t.Fatalf("this test needs pgbouncer: install the Debian package pgbouncer: %v", err)
	}
	t.Cleanup(proc.Kill)
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	testkit.Eventually(t, 10*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, u.String())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return u.String()
}
