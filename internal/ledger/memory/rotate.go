package memory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrFull says that all generations are in use, so that none can be opened.
var ErrFull = errors.New("all generations hold events that are not forgotten yet: let `hookledger doctor generations` say what keeps the oldest one")

// rotateWait bounds the wait for the row of the ring, which disturbs nobody.
const rotateWait = 2 * time.Second

// errOccupied says that the generation to be opened holds events.
var errOccupied = errors.New("the next generation holds events")

// Rotate opens the next generation, if seen.Open is still the open one and has been for
// at least age, by Postgres's clock. It reports false, and no error, if it is not: as a
// rule because another worker was faster. It fails with ErrFull if no generation is free.
func Rotate(ctx context.Context, pool *pgxpool.Pool, seen Ring, age time.Duration) (bool, error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("open generation %d: %w", next(seen.Open), err)
	}
	if seen.Full() {
		return fail(ErrFull)
	}
	rotated, err := rotate(ctx, pool, seen.Open, age)
	if errors.Is(err, errOccupied) {
		if _, err := forget(ctx, pool, next(seen.Open), queryForgetAgain, next(seen.Open)); err != nil {
			return fail(err)
		}
		rotated, err = rotate(ctx, pool, seen.Open, age)
	}
	if err != nil {
		return fail(err)
	}
	return rotated, nil
}

func rotate(ctx context.Context, pool *pgxpool.Pool, open int, age time.Duration) (rotated bool, err error) {
	err = inTransaction(ctx, pool, rotateWait, func(tx pgx.Tx) error {
		var opened int
		err := tx.QueryRow(ctx, queryRotate, pgx.QueryExecModeExec, open, age.Seconds()).Scan(&opened)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// With the row locked: nobody else opens or empties it meanwhile.
		var occupied bool
		if err := tx.QueryRow(ctx, queryHoldsEvents(opened), pgx.QueryExecModeExec).Scan(&occupied); err != nil {
			return err
		}
		if occupied {
			return errOccupied
		}
		rotated = true
		return nil
	})
	return rotated && err == nil, err
}

// inTransaction runs f at READ COMMITTED, whatever the database's default is, with each
// wait for a lock bounded by wait.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, wait time.Duration, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, querySettings, pgx.QueryExecModeExec, strconv.FormatInt(wait.Milliseconds(), 10)+"ms"); err != nil {
			return err
		}
		return f(tx)
	})
}
