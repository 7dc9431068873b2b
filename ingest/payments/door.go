package payments

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"hookledger/internal/crashpoint"
)

// door takes requests to answers. It knows nothing of HTTP but the codes it keeps.
type door struct {
	config  Config
	db      *database
	metrics *metrics
	recent  *recent
	log     zerolog.Logger
}

// firstPause is how long it is, about, until a lock is asked for again.
const firstPause = 4 * time.Millisecond

// maxRounds bounds how often one claim tries its work: an account may be spent from and
// paid into between every two looks at it.
const maxRounds = 20

// serve does r's order once, whoever else asks for it, and returns the answer. It holds
// at most one connection, and none while it waits to try again.
//
// Errors: errInProgress, errKeyReused, errLostClaim, errBusyLocks, errNoConnection:
// nothing happened. Any other: nobody knows, and the next request with the key finds out.
func (d *door) serve(ctx context.Context, r *request) (*answer, error) {
	conn, err := d.db.acquire(ctx)
	if err != nil {
		return nil, err
	}
	held := &held{conn: conn}
	defer held.release()
	crashpoint.Reach("payments.claim")
	c, a, err := d.claimKey(ctx, held, r)
	if err != nil || a != nil {
		return a, err
	}
	crashpoint.Reach("payments.claimed")
	a, err = d.work(ctx, held, r, c)
	crashpoint.Reach("payments.worked")
	if err != nil {
		return nil, d.giveUp(ctx, held, r, c, err)
	}
	d.metrics.claimToDone.Observe(time.Since(c.since).Seconds())
	return a, nil
}

// held is a connection that may be given back early, once.
type held struct{ conn *pgxpool.Conn }

func (h *held) release() {
	if h.conn != nil {
		h.conn.Release()
		h.conn = nil
	}
}

// work does the order under claim c and returns the answer that was kept with it.
func (d *door) work(ctx context.Context, h *held, r *request, c *claim) (*answer, error) {
	m, err := newPayment(r, c)
	if err != nil {
		return nil, err
	}
	paid := &answer{code: 201, body: m.body}
	tooPoor := &answer{code: insufficientFunds.status, body: insufficientFunds.bytes("", r.id)}
	refused := &answer{code: balanceRange.status, body: balanceRange.bytes("", r.id)}

	// By then another request may take the claim over, so it is no use to go on.
	until := c.since.Add(d.config.ClaimTTL / 3)
	step, pause := failed, firstPause
	for range maxRounds {
		a := paid
		switch step {
		case poor:
			a, err = tooPoor, d.refuse(ctx, h.conn, r, c, tooPoor)
		case tooMuch:
			a, err = refused, d.keep(ctx, h.conn, r, c, refused)
		default:
			err = d.pay(ctx, h.conn, r, c, m)
		}
		if err == nil {
			if a == paid {
				d.recent.add(r.client, m.transfer.PaymentID, m.meaning, c.at)
			}
			return a, nil
		}
		switch v := judge(err); v {
		case failed:
			return nil, err
		case lostClaim:
			return nil, errLostClaim
		case busy:
			d.metrics.lockRetries.Inc()
			if err := d.wait(ctx, h, &pause, until); err != nil {
				return nil, err
			}
		default:
			step = v
		}
	}
	return nil, errBusyLocks
}

// wait gives the connection back, lets others work, and takes one again.
func (d *door) wait(ctx context.Context, h *held, pause *time.Duration, until time.Time) error {
	h.release()
	if time.Now().Add(*pause).After(until) {
		return errBusyLocks
	}
	select {
	case <-time.After(*pause/2 + rand.N(*pause)):
	case <-ctx.Done():
		return errBusyLocks
	}
	*pause = min(2**pause, 100*time.Millisecond)
	conn, err := d.db.acquire(ctx)
	if err != nil {
		return err
	}
	h.conn = conn
	return nil
}

// giveUp releases the claim if the work is known not to have happened, and returns err.
func (d *door) giveUp(ctx context.Context, h *held, r *request, c *claim, err error) error {
	var t *tripError
	if errors.As(err, &t) && t.unknown {
		d.metrics.unknown.Inc()
		return err
	}
	if errors.Is(err, errLostClaim) {
		return err
	}
	if h.conn == nil || h.conn.Conn().IsClosed() {
		h.release()
		conn, acquireErr := d.db.acquire(ctx)
		if acquireErr != nil {
			return err
		}
		h.conn = conn
	}
	if releaseErr := d.release(ctx, h.conn, r, c); releaseErr != nil {
		d.log.Warn().Err(releaseErr).Str("client", r.client).Str("request_id", r.id).Msg("claim not released; it will be taken over when it is stale")
	}
	return err
}

// recent are the payments made here since the last look for duplicates.
type recent struct {
	mu       sync.Mutex
	clients  []string
	ids      [][16]byte
	meanings [][16]byte
	times    []time.Time
}

// maxRecent bounds them; beyond it payments are not counted, only listed.
const maxRecent = 100_000

func (r *recent) add(client string, id, meaning [16]byte, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) >= maxRecent {
		return
	}
	r.clients, r.ids = append(r.clients, client), append(r.ids, id)
	r.meanings, r.times = append(r.meanings, meaning), append(r.times, at)
}

// take returns what was added and forgets it.
func (r *recent) take() *recent {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := &recent{clients: r.clients, ids: r.ids, meanings: r.meanings, times: r.times}
	r.clients, r.ids, r.meanings, r.times = nil, nil, nil, nil
	return taken
}
