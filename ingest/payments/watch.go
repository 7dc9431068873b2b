package payments

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrRefused is wrapped by errors that no waiting mends: this Postgres may not take
// payments as configured.
var ErrRefused = errors.New("payments refuse to start")

const (
	// watchEvery is how often Postgres is looked at.
	watchEvery = 2 * time.Second
	// watchTimeout bounds one look.
	watchTimeout = 5 * time.Second
	// countEvery is how often abandoned claims and duplicates are counted.
	countEvery = 10 * time.Second
)

// watcher looks after Postgres: whether it may take payments, whether it answers, and
// what to count in it.
type watcher struct {
	door   *door
	schema func(context.Context) error
	// isFinal tells which errors of schema no waiting mends.
	isFinal func(error) bool
	state   atomic.Pointer[error]
}

// ready tells why payments cannot be taken; nil if they can.
func (w *watcher) ready() error {
	if e := w.state.Load(); e != nil {
		return *e
	}
	return errors.New("payments are starting")
}

// await waits until Postgres may take payments. It fails, with ErrRefused or the error
// of the schema, if that needs a person.
func (w *watcher) await(ctx context.Context) error {
	for {
		err := w.lookSchema(ctx)
		if err == nil {
			err = w.look(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			w.state.Store(&err)
			return nil
		case errors.Is(err, ErrRefused), w.isFinal != nil && w.isFinal(err):
			return err
		}
		w.state.Store(&err)
		w.door.log.Warn().Err(err).Msg("Postgres cannot take payments yet; waiting for it")
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookSchema asks whether the schema is this program's.
func (w *watcher) lookSchema(ctx context.Context) error {
	if w.schema == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return w.schema(ctx)
}

// look asks Postgres whether it may take payments.
func (w *watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	var standby bool
	var names string
	err := w.withConn(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, queryHealth).Scan(&standby, &names)
	})
	switch {
	case err != nil:
		return fmt.Errorf("ask Postgres: %w", err)
	case standby:
		return errors.New("Postgres is a standby: payments are written on the primary")
	case names == "" && w.door.config.Durability != Single:
		return fmt.Errorf("%w: synchronous_standby_names is empty, so a payment answered 201 would be on one machine, and payments are not in the topic: "+
			"name a standby, or set payments.durability: single to accept that", ErrRefused)
	}
	return nil
}

// run looks and counts until ctx ends.
func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	counted := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := w.ready()
		err := w.look(ctx)
		if ctx.Err() != nil {
			return
		}
		w.state.Store(&err)
		if (err == nil) != (before == nil) {
			w.door.log.Warn().AnErr("reason", err).Bool("ready", err == nil).Msg("whether Postgres can take payments changed")
		}
		if err == nil && time.Since(counted) >= countEvery {
			counted = time.Now()
			if err := w.count(ctx); err != nil {
				w.door.log.Debug().Err(err).Msg("claims and duplicates not counted")
			}
		}
	}
}

// count counts abandoned claims, and duplicates among the payments made since.
func (w *watcher) count(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return w.withConn(ctx, func(conn *pgxpool.Conn) error {
		var n int64
		t := w.door.db.beginClaim(conn)
		t.addRows("count abandoned claims", func(row pgx.CollectableRow) error { return row.Scan(&n) },
			queryAbandoned, w.door.config.ClaimTTL)
		made := w.door.recent.take()
		if len(made.ids) > 0 {
			t.addRows("count duplicates", func(row pgx.CollectableRow) error {
				var client string
				if err := row.Scan(&client); err != nil {
					return err
				}
				w.door.metrics.duplicates.WithLabelValues(client).Inc()
				return nil
			}, queryCountDuplicates, uuids(made.ids), uuids(made.meanings), made.times, w.door.config.DuplicateWindow, made.clients)
		}
		if err := t.run(ctx, conn); err != nil {
			return err
		}
		w.door.metrics.abandoned.Set(float64(n))
		return nil
	})
}

func (w *watcher) withConn(ctx context.Context, f func(*pgxpool.Conn) error) error {
	conn, err := w.door.db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return f(conn)
}

func uuids(list [][16]byte) []pgtype.UUID {
	out := make([]pgtype.UUID, len(list))
	for i := range list {
		out[i] = pgtype.UUID{Bytes: list[i], Valid: true}
	}
	return out
}
