package payments

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits are the token buckets of the clients. The clients are those of the
// configuration, so their number is bounded.
type limits struct {
	config  Rate
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

func newLimits(c Rate) *limits { return &limits{config: c, buckets: map[string]*rate.Limiter{}} }

// take takes one request from the client's bucket. If there is none, it tells how long
// until there is.
func (l *limits) take(client string, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	b := l.buckets[client]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(l.config.PerSecond), l.config.Burst)
		l.buckets[client] = b
	}
	l.mu.Unlock()
	r := b.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}
