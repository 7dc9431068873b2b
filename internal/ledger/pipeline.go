package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/crashpoint"
	"hookledger/internal/ledger/commit"
)

// query is a statement with the name it has in errors.
type query struct {
	name string
	sql  string
}

// call is one statement of a round trip.
type call struct {
	query query
	args  []arg
	// row, if set, gets each row; values are valid only until it returns.
	row func(values [][]byte) error
}

// transaction is one connection between begin and commit.
type transaction struct {
	conn *pgxpool.Conn
	// unprepared, if set, is the ledger's: see Ledger.
	unprepared *atomic.Bool
	// stale says that a prepared statement does not fit the server any more.
	stale bool
}

// rollbackTimeout bounds the rollback after a failure; a connection that cannot even
// do that is closed, and the server rolls back by itself.
const rollbackTimeout = 2 * time.Second

var binaryFormat = []int16{1}

// trip sends the calls in one write and reads their results in order. It fails with
// the first call's error; what follows it was not executed. An error of COMMIT, or of
// the connection, leaves the outcome unknown. COMMIT, the last call if it is there, is
// never cancelled, see package commit.
func (t *transaction) trip(ctx context.Context, calls ...call) (err error) {
	var b pgconn.Batch
	// Parsed anew each time, the statements of a batch of one record take the server longer
	// than running them: at 500 records a second the delay was 15 times as long (two cores,
	// Postgres 15).
	statements, err := t.statements(ctx)
	if err != nil {
		return err
	}
	for i := range calls {
		args := calls[i].args
		values, oids := make([][]byte, len(args)), make([]uint32, len(args))
		for j, a := range args {
			values[j], oids[j] = a.value, a.oid
		}
		if statements != nil && len(args) > 0 {
			name, err := t.prepare(ctx, statements, calls[i].query.sql, oids)
			if err != nil {
				return fmt.Errorf("prepare %s: %w", calls[i].query.name, err)
			}
			b.ExecPrepared(name, values, binaryFormat, binaryFormat)
			continue
		}
		b.ExecParams(calls[i].query.sql, values, oids, binaryFormat, binaryFormat)
	}
	pg := t.conn.Conn().PgConn()
	if calls[len(calls)-1].query == queryCommit {
		commit.Begin(pg)
		defer func() {
			if alone := commit.End(pg); err == nil {
				err = alone
			}
		}()
	}
	results := pg.ExecBatch(ctx, &b)
	crashpoint.Reach("ledger.sent")
	var rowErr error
	done := 0
	for ; results.NextResult(); done++ {
		reader := results.ResultReader()
		if done >= len(calls) {
			continue
		}
		row := calls[done].row
		for reader.NextRow() {
			if row != nil && rowErr == nil {
				rowErr = row(reader.Values())
			}
		}
		tag, err := reader.Close()
		if err != nil {
			break // results.Close returns it
		}
		// A COMMIT of a failed transaction answers ROLLBACK, and no error.
		if calls[done].query.name == queryCommit.name && tag.String() != "COMMIT" {
			rowErr = fmt.Errorf("commit answered %s", tag)
		}
	}
	if err := results.Close(); err != nil {
		t.outdated(err)
		name := "connection"
		if done < len(calls) {
			name = calls[done].query.name
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if rowErr == nil && done != len(calls) {
		rowErr = fmt.Errorf("%d results of %d statements", done, len(calls))
	}
	return rowErr
}

// statementsKey is where a connection keeps the names of its statements, by their text:
// nil, if it leads through a pooler.
const statementsKey = "hookledger.ledger.statements"

// statements returns what the connection has prepared, nil if it is to prepare nothing:
// by default_query_exec_mode, or because a pooler is between, which may give each
// transaction another session. A pooler shows by the process ID that it made up.
func (t *transaction) statements(ctx context.Context) (map[string]string, error) {
	conn := t.conn.Conn()
	if t.unprepared == nil || t.unprepared.Load() || conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil, nil
	}
	pg := conn.PgConn()
	if names, ok := pg.CustomData()[statementsKey].(map[string]string); ok {
		return names, nil
	}
	result := pg.ExecParams(ctx, "select pg_backend_pid()", nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, fmt.Errorf("ask for the process ID: %w", result.Err)
	}
	var names map[string]string
	if string(result.Rows[0][0]) == strconv.FormatUint(uint64(pg.PID()), 10) {
		names = make(map[string]string)
	}
	pg.CustomData()[statementsKey] = names
	return names, nil
}

// prepare returns the name of a statement, which it prepares once for each connection.
// The name is made of the text, so that two clients of a pooler who share a connection
// can't mean two things by one name.
func (t *transaction) prepare(ctx context.Context, names map[string]string, sql string, oids []uint32) (string, error) {
	if name, ok := names[sql]; ok {
		return name, nil
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %v", sql, oids))
	name := "ledger_" + hex.EncodeToString(digest[:16])
	if _, err := t.conn.Conn().PgConn().Prepare(ctx, name, sql, oids); err != nil {
		t.outdated(err)
		return "", err
	}
	names[sql] = name
	return name, nil
}

// SQLSTATEs of statements that were prepared for another schema, on another connection of
// a pooler, and there already.
const (
	codePlanChanged   = "0A000"
	codeNoStatement   = "26000"
	codeStatementThen = "42P05"
)

// outdated looks whether err says that prepared statements do not fit. The connection is
// then closed after its transaction, which the caller runs again; where a pooler does
// not carry prepared statements along, nothing is prepared from now on.
func (t *transaction) outdated(err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return
	}
	switch pg.Code {
	case codePlanChanged:
		t.stale = true
	case codeNoStatement, codeStatementThen:
		t.stale = true
		if t.unprepared != nil {
			t.unprepared.Store(true)
		}
	}
}

// end gives the connection back, after a rollback unless the transaction is over.
func (t *transaction) end(ctx context.Context) {
	pg := t.conn.Conn().PgConn()
	if !pg.IsClosed() && (t.stale || pg.TxStatus() != 'I') {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		if _, err := pg.Exec(ctx, "rollback").ReadAll(); err != nil || t.stale {
			// The pool closes a connection that is not idle; the server rolls back then.
			_ = pg.Close(ctx)
		}
	}
	t.conn.Release()
}

// isDataError tells whether err blames the data of a record.
func isDataError(err error) (*dataError, bool) {
	var d *dataError
	ok := errors.As(err, &d)
	return d, ok
}
