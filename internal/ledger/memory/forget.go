package memory

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/schema"
)

// waits is for how long each attempt to forget queues for its generation. Everybody who
// reads the memory queues behind it meanwhile, so the first is about as long as a batch
// takes, and the last is far below the lock timeout of applying (3 s by default).
var waits = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// slow is for how long a transaction must hold a generation to be none of ours that is
// over in a moment.
const slow = time.Second

// codeLockNotAvailable is lock_timeout, or NOWAIT in vain.
const codeLockNotAvailable = "55P03"

// Holder is a transaction that reads a generation.
type Holder struct {
	// PID is that of its session; 0: a prepared transaction.
	PID  int32
	User string
	// Application is what the session calls itself.
	Application string
	// Since is when it began; zero where that is not ours to see.
	Since time.Time

	transaction string
}

// String names the holder for a person.
func (h Holder) String() string {
	s := fmt.Sprintf("pid %d", h.PID)
	if h.PID == 0 {
		s = "a prepared transaction"
	}
	if h.User != "" {
		s += " of " + h.User
	}
	if h.Application != "" {
		s += fmt.Sprintf(" (%.63q)", h.Application)
	}
	if !h.Since.IsZero() {
		s += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	return s
}

// BusyError says that a generation is being read and cannot be emptied now. Nothing is
// changed, and nobody waits. Trying later is all there is to do, or ending who reads.
type BusyError struct {
	Generation int
	// Holders read it; empty if they came and went.
	Holders []Holder
}

// Error names those who read the generation.
func (e *BusyError) Error() string {
	var who []string
	for _, h := range e.Holders[:min(len(e.Holders), 3)] {
		who = append(who, h.String())
	}
	if len(who) == 0 {
		who = []string{"short transactions without a pause"}
	}
	return fmt.Sprintf("generation %d is being read by %s: it is tried again later", e.Generation, strings.Join(who, ", "))
}

// Forget empties the oldest generation, seen.Oldest, if it is still the oldest and was
// closed at least keep ago, by Postgres's clock. It reports false, and no error, if it is
// not, or if another one is at it. It fails with *BusyError while the generation is read.
// It takes a few seconds at most.
func Forget(ctx context.Context, pool *pgxpool.Pool, seen Ring, keep time.Duration) (bool, error) {
	forgotten, err := forget(ctx, pool, seen.Oldest, queryForget, seen.Oldest, keep.Seconds())
	if err != nil {
		return false, fmt.Errorf("forget generation %d: %w", seen.Oldest, err)
	}
	return forgotten, nil
}

// forget empties generation g in a transaction in which update has changed the ring.
func forget(ctx context.Context, pool *pgxpool.Pool, g int, update string, args ...any) (bool, error) {
	before, err := holders(ctx, pool, g)
	if err != nil {
		return false, err
	}
	discarded, err := discardedEvents(ctx, pool)
	if err != nil {
		return false, err
	}
	for _, wait := range waits {
		if len(before) > 0 {
			if err := sleep(ctx, slow); err != nil {
				return false, err
			}
			now, err := holders(ctx, pool, g)
			if err != nil {
				return false, err
			}
			if still := both(before, now); len(still) > 0 {
				return false, &BusyError{g, still}
			}
		}
		forgotten, err := attempt(ctx, pool, g, wait, discarded, update, args)
		if !errors.Is(err, errHeld) {
			return forgotten, err
		}
		if before, err = holders(ctx, pool, g); err != nil {
			return false, err
		}
	}
	return false, &BusyError{g, before}
}

// errHeld says that others held the generation for longer than the attempt waited.
var errHeld = errors.New("the generation is held")

func attempt(ctx context.Context, pool *pgxpool.Pool, g int, wait time.Duration, discarded []string, update string, args []any) (forgotten bool, err error) {
	err = inTransaction(ctx, pool, wait, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, queryLockRing, pgx.QueryExecModeExec); err != nil {
			if isLockTimeout(err) {
				return errElsewhere
			}
			return err
		}
		tag, err := tx.Exec(ctx, update, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if len(discarded) > 0 {
			_, err = tx.Exec(ctx, queryCarry(g), pgx.QueryExecModeExec, discarded)
		}
		if err == nil {
			_, err = tx.Exec(ctx, queryTruncate(g), pgx.QueryExecModeExec)
		}
		if isLockTimeout(err) {
			return errHeld
		}
		forgotten = err == nil
		return err
	})
	if errors.Is(err, errElsewhere) {
		return false, nil
	}
	return forgotten && err == nil, err
}

// errElsewhere says that somebody else holds the ring.
var errElsewhere = errors.New("another one is at it")

func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeLockNotAvailable
}

// discardedEvents returns the keys of the events that a person decided against. They have
// no entry that would stand in their way, so they are never forgotten: they are few, and
// move to the open generation. One that is discarded after this has its row there already.
func discardedEvents(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	rows, err := pool.Query(ctx, queryDiscarded, pgx.QueryExecModeExec)
	if err != nil {
		return nil, fmt.Errorf("read discarded events: %w", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var e schema.Event
		err := row.Scan(&e.Source, &e.ID)
		key := e.Key()
		return hex.EncodeToString(key[:]), err
	})
	if err != nil {
		return nil, fmt.Errorf("read discarded events: %w", err)
	}
	return keys, nil
}

// holders returns the transactions that have a lock on generation g.
func holders(ctx context.Context, pool *pgxpool.Pool, g int) ([]Holder, error) {
	rows, err := pool.Query(ctx, queryHolders, pgx.QueryExecModeExec, table(g))
	if err != nil {
		return nil, fmt.Errorf("ask who reads it: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Holder, error) {
		var h Holder
		var since *time.Time
		err := row.Scan(&h.transaction, &h.PID, &h.User, &h.Application, &since)
		if since != nil {
			h.Since = *since
		}
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("ask who reads it: %w", err)
	}
	return list, nil
}

// both returns the transactions of now that were there before.
func both(before, now []Holder) []Holder {
	var list []Holder
	for _, h := range now {
		if slices.ContainsFunc(before, func(b Holder) bool { return b.transaction == h.transaction && b.PID == h.PID }) {
			list = append(list, h)
		}
	}
	return list
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
