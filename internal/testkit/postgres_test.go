package testkit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
)

// victimEnv makes this test binary start a shared cluster, say so, and wait to
// be killed.
const victimEnv = "HOOKLEDGER_TESTKIT_VICTIM"

func TestPostgres_EachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for range 2 {
		pool := testkit.Postgres(t)
		if _, err := pool.Exec(ctx, `create table mine (n int)`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewPostgres_SurvivesKillStopPauseAndReadOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := testkit.NewPostgres(t, "fsync=on")
	url := c.URL("postgres")
	run(ctx, t, url, `create table kept (n int)`)

	c.Kill()
	if conn, err := pgx.Connect(ctx, url); err == nil {
		_ = conn.Close(ctx)
		t.Fatal("a killed cluster accepts connections")
	}
	c.Start()
	run(ctx, t, url, `insert into kept values (1)`)

	c.Stop()
	c.Start()
	run(ctx, t, url, `insert into kept values (2)`)

	c.Pause()
	paused, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if conn, err := pgx.Connect(paused, url); err == nil {
		_ = conn.Close(ctx)
		t.Fatal("a paused cluster answers")
	}
	c.Resume()
	run(ctx, t, url, `insert into kept values (3)`)

	c.SetReadOnly(true)
	if err := try(ctx, url, `insert into kept values (4)`); err == nil {
		t.Fatal("a read-only cluster accepts writes")
	}
	c.SetReadOnly(false)
	run(ctx, t, url, `insert into kept values (4)`)
	if c.URL("postgres") != url {
		t.Fatal("the address changed")
	}
}

// A test process that is killed leaves neither a server nor a folder.
func TestPostgres_NothingIsLeftOfAKilledTestProcess(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "hookledger-victim-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	victim := osexec.Command(os.Args[0], "-test.run=^TestVictim$")
	victim.Env = append(os.Environ(), victimEnv+"=1", "TMPDIR="+tmp)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = url[:len(url)-1]
	run(t.Context(), t, url, `select 1`)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	testkit.Eventually(t, time.Minute, func() error {
		if err := try(t.Context(), url, `select 1`); err == nil {
			return errors.New("the server still answers")
		}
		left, err := filepath.Glob(filepath.Join(tmp, "*"))
		if len(left) > 0 {
			return fmt.Errorf("left behind: %v", left)
		}
		return err
	})
}

// TestVictim is the process that the test above kills; by itself it checks
// only that it was not asked.
func TestVictim(t *testing.T) {
	if os.Getenv(victimEnv) == "" {
		return
	}
	fmt.Println(testkit.PostgresURL(t))
	select {}
}

func run(ctx context.Context, t *testing.T, url, sql string) {
	t.Helper()
	if err := try(ctx, url, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func try(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// What the environment asks for is what the tests run on.
func TestPostgres_IsWhatTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	var version int
	if err := pool.QueryRow(t.Context(), `select current_setting('server_version_num')::int`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	if want := os.Getenv(testkit.PostgresEnv); want != "" && want != strconv.Itoa(version/10_000) {
		t.Errorf("Postgres: got %d, want %s", version/10_000, want)
	}
	url := testkit.PostgresURL(t)
	if pooled := url != testkit.DirectURL(t, url); pooled != (os.Getenv(testkit.PoolerEnv) != "") {
		t.Errorf("through a pooler: got %v, want what %s=%q says", pooled, testkit.PoolerEnv, os.Getenv(testkit.PoolerEnv))
	}
}

// Connections through a pooler in transaction mode are of one session of Postgres's as
// long as only one of them has a transaction open; direct ones never are.
func TestPgBouncer_SharesSessionsByTransaction(t *testing.T) {
	t.Parallel()
	direct := testkit.DirectURL(t, testkit.PostgresURL(t))
	for url, shared := range map[string]bool{direct: false, testkit.PgBouncer(t, direct, "transaction").URL: true} {
		pids := map[int]bool{}
		for range 2 {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			var pid int
			if err := conn.QueryRow(t.Context(), `select pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&pid); err != nil {
				t.Fatal(err)
			}
			pids[pid] = true
		}
		if got := len(pids) == 1; got != shared {
			t.Errorf("two connections share a session: got %v, want %v", got, shared)
		}
	}
}
