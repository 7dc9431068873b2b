package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/ledger/memory"
)

// memory looks whether somebody rotates and forgets the memory of events.
func (e *examination) memory(ctx context.Context, conn *pgx.Conn) error {
	ring, err := memory.Read(ctx, conn)
	if err != nil {
		return err
	}
	found := fmt.Sprintf("%d of %d generations in use, the open one since %s", ring.Used(), memory.Generations, ring.OpenAge().Round(time.Second))
	dedupe := e.Config.Dedupe
	switch {
	case ring.Full():
		e.add(Warning, "memory_generations", found, "none can be opened, so the open one grows without end", "run `hookledger doctor generations forget`, which says who reads the oldest one")
	case ring.ForgettingDue(dedupe.Keep + dedupe.Rotate):
		e.add(Warning, "memory_generations", found+"; the oldest one should be forgotten since "+dedupe.Rotate.String(), "the memory of events grows",
			"start a worker, or run `hookledger doctor generations forget`, which says who reads it")
	case ring.RotationDue(2 * dedupe.Rotate):
		e.add(Warning, "memory_generations", found, "a new one is due: no worker has run for long, or none could", "start a worker, or read its log")
	default:
		e.ok("memory_generations", found)
	}
	return nil
}
