package payments

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// request is one attempt of a client to have an order done.
type request struct {
	client      string
	key         string
	fingerprint [sha256.Size]byte
	order       order
	// id names the request in logs and problems.
	id string
}

// claim is the right to work on a key, made by claims alone. attempt is the fencing
// token: it is never given out twice.
type claim struct {
	attempt int64
	// at is the claim's time by the clock of Postgres.
	at time.Time
	// since is the same by ours.
	since time.Time
}

// What claiming a key came to, if not to a claim or a replay.
var (
	errInProgress = errors.New("the key is being processed")
	errKeyReused  = errors.New("the key was used with another request")
)

// standing is a row of idempotency_keys as queryClaim judges it.
type standing struct {
	mine                                 bool
	same, done, expired, stale, released bool
	// code and body are the answer of a key that is done.
	code *int32
	body []byte
	// attempt and at are those of our own claim.
	attempt int64
	at      time.Time
}

// maxLooks bounds how often a key is looked at because it changed meanwhile: inserted by
// another request, removed by the cleaning, taken over by a third. Then it is busy.
const maxLooks = 5

// claimKey claims r's key, or returns the answer that stands. Its errors are
// errInProgress, errKeyReused, errBusyLocks, those of acquire, and *tripError; after the last
// the claim may have been made after all, and becomes stale.
func (d *door) claimKey(ctx context.Context, h *held, r *request) (*claim, *answer, error) {
	until, pause := time.Now().Add(d.config.ClaimTTL/3), firstPause
	begin, last := d.db.beginClaim, errInProgress
	for range maxLooks {
		c, a, err := d.tryClaim(ctx, h.conn, r, begin)
		switch {
		case c != nil || a != nil:
			return c, a, nil
		case err == nil:
			last = errInProgress // another request is at it
		case changedMeanwhile(err):
			begin = d.db.beginExplicitClaim
		case waitedForKey(err):
			return nil, nil, errInProgress
		case isLockTimeout(err):
			// Not the key: a page that the table is to grow by, or somebody's lock of all of it.
			last = errBusyLocks
			d.metrics.lockRetries.Inc()
			if err := d.wait(ctx, h, &pause, until); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, unpaid(err)
		}
	}
	return nil, nil, last
}

// tryClaim looks once. Neither claim nor answer nor error: the key is locked, or changed
// since it was looked at, which the next look tells.
func (d *door) tryClaim(ctx context.Context, conn *pgxpool.Conn, r *request, begin func(*pgxpool.Conn) *trip) (*claim, *answer, error) {
	s, err := d.look(ctx, conn, r, begin(conn))
	if err != nil || s == nil {
		return nil, nil, err
	}
	if s.mine {
		return &claim{attempt: s.attempt, at: s.at, since: time.Now()}, nil, nil
	}
	var cause string
	switch {
	case s.expired:
		cause = "expired"
	case !s.same:
		return nil, nil, errKeyReused
	case s.done:
		return nil, &answer{code: int(*s.code), body: s.body, replayed: true}, nil
	case !s.stale:
		return nil, nil, errInProgress
	case s.released:
		cause = "released"
	default:
		cause = "abandoned"
	}
	c, err := d.takeOver(ctx, conn, r, begin(conn))
	if c != nil {
		d.metrics.takeovers.WithLabelValues(cause).Inc()
	}
	return c, nil, err
}

// unpaid says of an error that it is about a claim alone: no payment can have come of it.
func unpaid(err error) error {
	var t *tripError
	if errors.As(err, &t) {
		t.unknown = false
	}
	return err
}

// changedMeanwhile tells whether err only says that the row changed since the snapshot,
// which is an error where the default level of transactions is not READ COMMITTED.
func changedMeanwhile(err error) bool {
	var t *tripError
	return errors.As(err, &t) && t.code() == codeSerialization
}

func isLockTimeout(err error) bool {
	var t *tripError
	return errors.As(err, &t) && t.code() == codeLockNotAvailable
}

// waitedForKey tells whether err says that the insert waited too long behind one of the
// same key. Postgres (15 to 18) then names the tuple and its table in the context, in
// whatever language; a wait for anything else has no context.
func waitedForKey(err error) bool {
	var pg *pgconn.PgError
	return isLockTimeout(err) && errors.As(err, &pg) && strings.Contains(pg.Where, "idempotency_keys")
}

// look reads the key's row, or makes it, with t. Nil: somebody else made it meanwhile.
func (d *door) look(ctx context.Context, conn *pgxpool.Conn, r *request, t *trip) (*standing, error) {
	var found *standing
	t.addRows("claim", func(row pgx.CollectableRow) error {
		s := &standing{}
		found = s
		return row.Scan(&s.mine, &s.same, &s.done, &s.expired, &s.stale, &s.released, &s.code, &s.body, &s.attempt, &s.at)
	}, queryClaim, r.client, r.key, r.fingerprint[:], d.config.KeyTTL, d.config.ClaimTTL)
	if err := t.run(ctx, conn); err != nil {
		return nil, err
	}
	if found != nil && found.done && found.code == nil {
		return nil, &tripError{step: "claim", err: fmt.Errorf("a key is done and has no answer")}
	}
	return found, nil
}

// takeOver takes over, with t, a row that expired or whose claim is stale. Nil: it is locked, or
// not to be taken any more.
func (d *door) takeOver(ctx context.Context, conn *pgxpool.Conn, r *request, t *trip) (*claim, error) {
	var c *claim
	t.addRows("take over", func(row pgx.CollectableRow) error {
		c = &claim{}
		return row.Scan(&c.attempt, &c.at)
	}, queryTakeOver, r.client, r.key, r.fingerprint[:], d.config.KeyTTL, d.config.ClaimTTL)
	if err := t.run(ctx, conn); err != nil {
		return nil, err
	}
	if c != nil {
		c.since = time.Now()
	}
	return c, nil
}

// release gives c back after its work was rolled back, so that the next request need
// not wait until it is stale. If that fails, it does wait.
func (d *door) release(ctx context.Context, conn *pgxpool.Conn, r *request, c *claim) error {
	t := d.db.beginClaim(conn)
	t.add("release", queryRelease, r.client, r.key, c.attempt)
	return t.run(ctx, conn)
}
