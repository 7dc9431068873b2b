package standby

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/testkit"
)

// Want has every COMMIT of the primary at url, a superuser's, wait for the standby of that
// name, which need not exist; for none if name is empty. It returns once they do.
func Want(tb testing.TB, url, name string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range []string{`alter system set synchronous_standby_names = '` + name + `'`, `select pg_reload_conf()`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
	// The checkpointer switches the waiting on, some time after the setting changed.
	testkit.Eventually(tb, patience, func() error {
		waits, err := commitWaits(ctx, url, conn)
		if err == nil && waits != (name != "") {
			err = fmt.Errorf("COMMIT waits for a standby: %v", waits)
		}
		return err
	})
}

// commitWaits tells whether a COMMIT of its own waits for a standby. It ends that wait.
func commitWaits(ctx context.Context, url string, look *pgx.Conn) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, err
	}
	pid := conn.PgConn().PID()
	done := make(chan error, 1)
	go func() { // ends with its COMMIT, or when that is cancelled below
		_, err := conn.Exec(ctx, `select pg_logical_emit_message(true, 'test', '')`)
		err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		<-conn.PgConn().CleanupDone() // the server has ended the session
		done <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting bool
		err := look.QueryRow(ctx, `select exists (select from pg_stat_activity where pid = $1 and wait_event = 'SyncRep')`, pid).Scan(&waiting)
		if err != nil || waiting {
			cancel()
			if ended := <-done; waiting && ended == nil {
				err = errors.New("a COMMIT that waited has ended by itself")
			}
			return waiting, err
		}
		select {
		case err := <-done:
			return false, err
		case <-tick.C:
		}
	}
}
