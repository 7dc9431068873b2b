package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Generations is how many the ring has. One is open; of the others at most MaxKept are
// ever needed, so that one is free to be opened while another one is being emptied.
const (
	Generations = 8
	MaxKept     = 6
)

// Ring is event_ring at one moment.
type Ring struct {
	// Open takes new events; the generations from Oldest to Open are in use.
	Open, Oldest int
	// OpenedAt is when each was opened last; zero: never.
	OpenedAt [Generations]time.Time
	// Forgotten counts what was forgotten since the beginning.
	Forgotten int64
	// Now is Postgres's clock at that moment.
	Now time.Time
}

// querier is a pool or a connection.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Read returns the ring as it is now.
func Read(ctx context.Context, q querier) (Ring, error) {
	var r Ring
	var opened []*time.Time
	err := q.QueryRow(ctx, queryRing, pgx.QueryExecModeExec).Scan(&r.Open, &r.Oldest, &r.Forgotten, &opened, &r.Now)
	if err == nil && (len(opened) != Generations || outside(r.Open) || outside(r.Oldest)) {
		err = errors.New("event_ring does not describe eight generations")
	}
	if err != nil {
		return Ring{}, fmt.Errorf("read ring of generations: %w", err)
	}
	for g, at := range opened {
		if at != nil {
			r.OpenedAt[g] = *at
		}
	}
	return r, nil
}

func outside(generation int) bool { return generation < 0 || generation >= Generations }

func next(generation int) int { return (generation + 1) % Generations }

// Used is how many generations are in use, the open one included.
func (r *Ring) Used() int { return (r.Open-r.Oldest+Generations)%Generations + 1 }

// Full tells whether no generation is free to be opened.
func (r *Ring) Full() bool { return r.Used() == Generations }

// Uses tells whether generation g is in use.
func (r *Ring) Uses(g int) bool { return (g-r.Oldest+Generations)%Generations < r.Used() }

// ClosedAt is when generation g stopped to take events; zero unless it is in use and
// closed.
func (r *Ring) ClosedAt(g int) time.Time {
	if !r.Uses(g) || g == r.Open {
		return time.Time{}
	}
	return r.OpenedAt[next(g)]
}

// OpenAge is for how long the open generation has been open.
func (r *Ring) OpenAge() time.Duration { return r.Now.Sub(r.OpenedAt[r.Open]) }

// RotationDue tells whether the open generation is at least rotate old.
func (r *Ring) RotationDue(rotate time.Duration) bool { return r.OpenAge() >= rotate }

// ForgettingDue tells whether the oldest generation was closed at least keep ago, so
// that every row in it is at least as old.
func (r *Ring) ForgettingDue(keep time.Duration) bool {
	closed := r.ClosedAt(r.Oldest)
	return !closed.IsZero() && r.Now.Sub(closed) >= keep
}
