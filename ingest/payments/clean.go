package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// cleanBatch is how many keys one transaction removes: a few milliseconds of work.
	cleanBatch = 200
	// cleanShare is the part of the time that cleaning may take: after each batch it rests
	// 19 times as long as that took, and at least cleanPause. That is up to 8,000 keys a
	// second, several times what one primary can make.
	cleanShare = 20
	cleanPause = 25 * time.Millisecond
	// cleanRest is the pause when nothing is left to remove.
	cleanRest = 10 * time.Second
	// cleanLongest bounds a rest behind a batch that a lock or a slow disk made long.
	cleanLongest = 5 * time.Second
)

// cleaner removes keys that expired.
type cleaner struct {
	door *door
	// from is the time of expiry up to which everything is removed, so that the index is
	// not walked over what is dead there already: an old snapshot of somebody else can
	// keep vacuum from it for hours. Keys skipped because they were locked are met at
	// the next sweep.
	from time.Time
}

// run cleans until ctx ends.
func (c *cleaner) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		n, err := c.batch(ctx)
		rest := min(max(time.Since(began)*(cleanShare-1), cleanPause), cleanLongest)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				c.door.log.Debug().Err(err).Msg("expired keys not removed; trying again")
			}
			rest = cleanRest
		case n < cleanBatch:
			c.from = time.Time{}
			rest = cleanRest
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// batch removes up to cleanBatch keys and tells how many: none if another process is at
// it.
func (c *cleaner) batch(ctx context.Context) (int, error) {
	conn, err := c.door.db.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	from := pgtype.Timestamptz{Time: c.from, Valid: true}
	if c.from.IsZero() {
		from = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	n, last := 0, pgtype.Timestamptz{}
	t := c.door.db.beginClaim(conn)
	t.addRows("remove expired keys", func(row pgx.CollectableRow) error { return row.Scan(&n, &last) }, queryClean, from, cleanBatch)
	if err := t.run(ctx, conn); err != nil {
		return 0, fmt.Errorf("clean: %w", err)
	}
	c.door.metrics.removed.Add(float64(n))
	if last.Valid {
		c.from = last.Time
	}
	return n, nil
}
