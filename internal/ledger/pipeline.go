package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/crashpoint"
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
}

// rollbackTimeout bounds the rollback after a failure; a connection that cannot even
// do that is closed, and the server rolls back by itself.
const rollbackTimeout = 2 * time.Second

var binaryFormat = []int16{1}

// trip sends the calls in one write and reads their results in order. It fails with
// the first call's error; what follows it was not executed. An error of COMMIT, or of
// the connection, leaves the outcome unknown.
func (t *transaction) trip(ctx context.Context, calls ...call) error {
	var b pgconn.Batch
	for i := range calls {
		args := calls[i].args
		values, oids := make([][]byte, len(args)), make([]uint32, len(args))
		for j, a := range args {
			values[j], oids[j] = a.value, a.oid
		}
		b.ExecParams(calls[i].query.sql, values, oids, binaryFormat, binaryFormat)
	}
	results := t.conn.Conn().PgConn().ExecBatch(ctx, &b)
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

// end gives the connection back, after a rollback unless the transaction is over.
func (t *transaction) end(ctx context.Context) {
	pg := t.conn.Conn().PgConn()
	if !pg.IsClosed() && pg.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		if _, err := pg.Exec(ctx, "rollback").ReadAll(); err != nil {
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
