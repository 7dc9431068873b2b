package commit

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNoCancel is what a cancel request fails with.
var ErrNoCancel = errors.New("a COMMIT is not cancelled")

// ErrAlone says that somebody ended the wait for the synchronous standby: this server has
// committed, and perhaps no other has it.
var ErrAlone = errors.New("the wait for the synchronous standby was ended: perhaps only this server has it")

// guard is what a connection knows of its COMMIT.
type guard struct {
	// connected: what is dialled from now on is a cancel request.
	connected atomic.Bool
	// underway: a COMMIT may be what it would cancel.
	underway atomic.Bool
	// alone: the server has said what ErrAlone says.
	alone bool
	// pg is the connection, once connected.
	pg *pgconn.PgConn
}

// guardKey is where a connection keeps its guard.
const guardKey = "hookledger.commit"

func guardOf(pg *pgconn.PgConn) *guard {
	g, _ := pg.CustomData()[guardKey].(*guard)
	return g
}

// NeverCancel makes the connection that c makes cancel nothing: for users whose every
// write may hold a COMMIT.
func NeverCancel(c *pgconn.Config) { install(c, false).underway.Store(true) }

// install gives the connection that c makes a guard: c must make only one. With leave, a
// connection is closed at once instead of being cancelled.
func install(c *pgconn.Config, leave bool) *guard {
	g := &guard{}
	dial, after, notice := c.DialFunc, c.AfterConnect, c.OnNotice
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if g.connected.Load() && g.underway.Load() {
			if leave {
				_ = g.pg.Conn().Close()
			}
			return nil, ErrNoCancel
		}
		return dial(ctx, network, addr)
	}
	c.AfterConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
		g.pg = pg
		g.connected.Store(true)
		pg.CustomData()[guardKey] = g
		if after != nil {
			return after(ctx, pg)
		}
		return nil
	}
	c.OnNotice = func(pg *pgconn.PgConn, n *pgconn.Notice) {
		// Its message is translated, and its code that of any warning (Postgres 15 to 18).
		if n.Routine == "SyncRepWaitForLSN" {
			g.alone = true
		}
		if notice != nil {
			notice(pg, n)
		}
	}
	return g
}

// Pool makes the pool of c cancel no COMMIT: neither one that Begin announced nor one of a
// pgx.Tx. Everything else is cancelled as ever. A connection that is given up in COMMIT is
// closed at once: pgx would wait for its end for 15 s, in a place of the pool, and so would
// a process that is to stop. Each holds locks that the next attempt waits for, so that they
// do not pile up.
func Pool(c *pgxpool.Config) {
	before := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, cc); err != nil {
				return err
			}
		}
		install(&cc.Config, true)
		return nil
	}
	c.ConnConfig.Tracer = tracer{}
}

// Begin says that a COMMIT is in what is written next. It is for the user of the connection
// alone, as all of a connection is.
func Begin(pg *pgconn.PgConn) {
	if g := guardOf(pg); g != nil {
		g.alone = false
		g.underway.Store(true)
	}
}

// End says that what Begin announced was answered, or given up. It returns ErrAlone if that
// was no answer to rely on. A connection that is closed stays as it is: its cancel request
// may be yet to come.
func End(pg *pgconn.PgConn) error {
	g := guardOf(pg)
	if g == nil {
		return nil
	}
	if !pg.IsClosed() {
		g.underway.Store(false)
	}
	if g.alone {
		return ErrAlone
	}
	return nil
}

// tracer announces the COMMIT of a pgx.Tx.
type tracer struct{}

// commitOf is how a pgx.Tx commits.
const commitOf = "commit"

type announced struct{}

func (tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL != commitOf {
		return ctx
	}
	Begin(conn.PgConn())
	return context.WithValue(ctx, announced{}, true)
}

// TraceQueryEnd leaves aside whether the server is alone: whoever commits so has no other
// answer to give than that of the server.
func (tracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(announced{}) != nil {
		_ = End(conn.PgConn())
	}
}
