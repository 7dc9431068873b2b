package payments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/crashpoint"
	"hookledger/internal/ledger/commit"
	"hookledger/internal/ledger/transfer"
)

const (
	// lockTimeout is the longest wait for a lock: nobody holds a connection longer only
	// to wait for somebody else.
	lockTimeout = 100 * time.Millisecond
	// rollbackTimeout bounds the rollback after a failure; a connection that cannot even
	// do that is closed, and the server rolls back by itself.
	rollbackTimeout = 2 * time.Second
	// defaultConnections is what a door needs if database.max_connections does not say:
	// about twice what saturates a primary of 8 cores, so that some may wait for its disk.
	defaultConnections = 16
)

// PoolConfig returns c made fit for a door, which needs it: payments wait for COMMIT
// without ever cancelling it. A driver that closes a connection asks the server to
// cancel what runs there, and a COMMIT that is cancelled while it waits for its standby
// counts as committed, on one machine; a repeat would then be answered 201 by a payment
// that a failover loses. So connections of this pool are closed and nothing is
// cancelled: timeouts of the server end everything else. The statements of payments are
// prepared when a connection is made, see prepare.
func PoolConfig(c *pgxpool.Config, maxConnections int) *pgxpool.Config {
	c = c.Copy()
	if maxConnections <= 0 {
		maxConnections = defaultConnections
	}
	c.MaxConns = int32(maxConnections)
	before := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, cc); err != nil {
				return err
			}
		}
		commit.NeverCancel(&cc.Config)
		return nil
	}
	after := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if after != nil {
			if err := after(ctx, conn); err != nil {
				return err
			}
		}
		return prepare(ctx, conn)
	}
	return c
}

// prepared are the statements that lock tables.
var prepared = []string{queryClaim, queryTakeOver, queryRelease, queryPaid, queryRefused, queryPoor, transfer.Statement, queryClean}

// prepare prepares the statements under the timeout of locks. A statement that is prepared
// when it is first used locks its tables before the transaction that has the timeout, and
// behind somebody's lock of a table all connections would hang there. What the schema does
// not have yet is left to its first use.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	if conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true)`, lockTimeoutText); err != nil {
			return err
		}
		for _, sql := range prepared {
			if _, err := conn.Prepare(ctx, sql, sql); err != nil {
				return err
			}
		}
		return nil
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code != codeLockNotAvailable {
		return nil // their first use says it
	}
	return err
}

// trip is a transaction that travels in one write: a client that stops between two
// statements holds no lock, because there is no between.
type trip struct {
	batch pgx.Batch
	steps []step
	// explicit: begun at READ COMMITTED and ended by COMMIT. Otherwise the end of the
	// write ends the transaction, at the level that is the database's default; above
	// READ COMMITTED a change of others is then an error and not news.
	explicit bool
}

type step struct {
	name string
	// row, if set, gets each row.
	row func(pgx.CollectableRow) error
}

func (t *trip) add(name, sql string, args ...any) { t.addRows(name, nil, sql, args...) }

func (t *trip) addRows(name string, row func(pgx.CollectableRow) error, sql string, args ...any) {
	t.batch.Queue(sql, args...)
	t.steps = append(t.steps, step{name, row})
}

// Names of steps that errors are told apart by.
const (
	stepFence    = "fence"
	stepTransfer = "transfer"
	stepPoor     = "refuse"
	stepCommit   = "commit"
)

// tripError says which statement failed and what that means.
type tripError struct {
	step string
	err  error
	// unknown: the transaction may have committed. Otherwise it has not.
	unknown bool
}

func (e *tripError) Error() string { return e.step + ": " + e.err.Error() }
func (e *tripError) Unwrap() error { return e.err }

// code is the SQLSTATE, empty if the server did not say.
func (e *tripError) code() string {
	var pg *pgconn.PgError
	if errors.As(e.err, &pg) {
		return pg.Code
	}
	return ""
}

const (
	codeLockNotAvailable = "55P03"
	codeDeadlock         = "40P01"
	codeSerialization    = "40001"
	codePlanChanged      = "0A000" // the schema changed under a prepared statement
	codeGuard            = "22012" // division_by_zero: only our guards divide
)

var lockTimeoutText = millis(lockTimeout)

// database runs trips.
type database struct {
	pool *pgxpool.Pool
	// patience is how long a request waits for a connection.
	patience time.Duration
	// third is a third of the TTL of claims, in the words of Postgres; whole is all of it.
	third, whole string
}

func newDatabase(pool *pgxpool.Pool, c Config) *database {
	return &database{pool: pool, patience: c.AnswerTimeout / 2, third: millis(c.ClaimTTL / 3), whole: millis(c.ClaimTTL)}
}

func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms" }

// errNoConnection: Postgres cannot be reached, or all connections are taken.
var errNoConnection = errors.New("no connection to Postgres")

// errBusyPool: all connections are taken.
var errBusyPool = fmt.Errorf("%w: all are taken", errNoConnection)

// maxConnects bounds how often a connection is made anew because its statements met a
// locked table, see prepare.
const maxConnects = 3

// acquire takes a connection of the pool, which the caller releases.
func (d *database) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	var err error
	for range maxConnects {
		var conn *pgxpool.Conn
		if conn, err = d.pool.Acquire(ctx); err == nil {
			return conn, nil
		}
		if !metLockedTable(err) {
			break
		}
	}
	if metLockedTable(err) {
		return nil, fmt.Errorf("%w: %w", errBusyLocks, err)
	}
	if ctx.Err() != nil && d.pool.Stat().AcquiredConns() >= d.pool.Config().MaxConns {
		return nil, errBusyPool
	}
	return nil, fmt.Errorf("%w: %w", errNoConnection, err)
}

// metLockedTable tells whether err, of making a connection, is that of prepare.
func metLockedTable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeLockNotAvailable
}

// beginWork starts a trip whose COMMIT waits for the disk, and for the standby.
func (d *database) beginWork(conn *pgxpool.Conn) *trip {
	t := &trip{explicit: true}
	t.add("begin", queryBegin)
	d.settings(t, conn, "on")
	return t
}

// beginClaim starts a trip that need not wait for the disk: a Postgres that crashes
// before it is written has lost only that somebody meant to work, and the work itself,
// which is waited for, is written behind it or not at all.
func (d *database) beginClaim(conn *pgxpool.Conn) *trip {
	t := &trip{}
	d.settings(t, conn, "off")
	return t
}

// beginExplicitClaim is beginClaim at READ COMMITTED, whatever the database's default is.
func (d *database) beginExplicitClaim(conn *pgxpool.Conn) *trip {
	t := &trip{explicit: true}
	t.add("begin", queryBegin)
	d.settings(t, conn, "off")
	return t
}

func (d *database) settings(t *trip, conn *pgxpool.Conn, synchronousCommit string) {
	t.add("settings", querySettings, synchronousCommit, d.third, lockTimeoutText)
	if hasTransactionTimeout(conn) {
		t.add("settings", queryTransactionTimeout, d.whole)
	}
}

// hasTransactionTimeout: Postgres 17 and later.
func hasTransactionTimeout(conn *pgxpool.Conn) bool {
	major, _, _ := strings.Cut(conn.Conn().PgConn().ParameterStatus("server_version"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 17
}

// run sends t and reads every result. A *tripError is its only error. The
// connection is fit for another trip afterwards, or closed.
func (t *trip) run(ctx context.Context, conn *pgxpool.Conn) error {
	if t.explicit {
		t.add(stepCommit, queryCommit)
	}
	failed := t.send(ctx, conn.Conn())
	pg := conn.Conn().PgConn()
	if failed == nil {
		return nil
	}
	var changed *tripError
	if errors.As(failed, &changed) && changed.code() == codePlanChanged {
		_ = pg.Close(ctx)
	}
	if !pg.IsClosed() && pg.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		if _, err := pg.Exec(ctx, "rollback").ReadAll(); err != nil {
			_ = pg.Close(ctx)
		}
	}
	return failed
}

func (t *trip) send(ctx context.Context, conn *pgx.Conn) error {
	results := conn.SendBatch(ctx, &t.batch)
	crashpoint.Reach("payments.sent")
	for i, s := range t.steps {
		tag, err := s.read(results)
		if err == nil && s.name == stepCommit && tag.String() != "COMMIT" {
			err = fmt.Errorf("answered %s", tag) // of a failed transaction, which was rolled back
			_ = results.Close()
			return &tripError{step: s.name, err: err}
		}
		if err != nil {
			_ = results.Close()
			return &tripError{step: s.name, err: err, unknown: isUnknown(err, i == len(t.steps)-1)}
		}
	}
	if err := results.Close(); err != nil {
		return &tripError{step: stepCommit, err: err, unknown: isUnknown(err, true)}
	}
	return nil
}

func (s *step) read(results pgx.BatchResults) (pgconn.CommandTag, error) {
	if s.row == nil {
		return results.Exec()
	}
	rows, err := results.Query()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := s.row(rows); err != nil {
			return pgconn.CommandTag{}, err
		}
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// isUnknown tells whether a transaction whose statement failed with err may have
// committed. It has not if the server says so, about COMMIT or about a statement before
// it, or if nothing was sent. A session that the server ended in COMMIT may have been
// waiting for its standby, so that is unknown.
func isUnknown(err error, atCommit bool) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return atCommit && pg.SeverityUnlocalized != "ERROR"
	}
	return !pgconn.SafeToRetry(err)
}
