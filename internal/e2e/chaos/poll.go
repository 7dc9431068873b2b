package chaos

import (
	"context"
	"fmt"
	"time"
)

// poll asks until check returns nil. When ctx ends first it returns check's last error.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (waited until %w)", err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }
