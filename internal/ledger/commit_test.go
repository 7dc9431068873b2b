package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hookledger/internal/ledger/commit"
	"hookledger/internal/testkit"
	"hookledger/internal/testkit/standby"
	"hookledger/migrations"
)

// setupStandby is a ledger on a Postgres of its own, whose pool is that of the program.
func setupStandby(t *testing.T) (_ *bundle, url string) {
	t.Helper()
	url = testkit.NewPostgres(t).URL("postgres")
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, open(t, url, commit.Pool))
	b.ledger = New(b.pool, mapBody, Options{StatementTimeout: time.Second, LockTimeout: 300 * time.Millisecond, IdleTimeout: time.Second})
	b.start(0)
	return b, url
}

// untilCommitWaits returns the process of the one COMMIT that waits for its standby.
func (b *bundle) untilCommitWaits() (pid int) {
	b.tb.Helper()
	testkit.Eventually(b.tb, time.Minute, func() error {
		pid = query1[int](b.tb, b.pool, `select coalesce(max(pid), 0) from pg_stat_activity where wait_event = 'SyncRep'`)
		if pid == 0 {
			return errors.New("no COMMIT waits for the standby")
		}
		return nil
	})
	return pid
}

// Whoever applies gives up while COMMIT waits for a standby that is away. The wait goes on:
// nothing is visible that a failover would lose, and the same batch again waits for a lock
// until a standby has the first.
func TestApply_CommitGivenUpIsNotCancelled(t *testing.T) {
	t.Parallel()
	b, url := setupStandby(t)
	standby.Want(t, url, "nowhere")
	batch := b.batch(0, paid(t, "evt_1", "alice", 5))
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ends with giveUp
		_, err := b.ledger.Apply(ctx, batch)
		done <- err
	}()
	b.untilCommitWaits()
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	for range 5 {
		var pg *pgconn.PgError
		again, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := b.ledger.Apply(again, batch)
		cancel()
		if !errors.As(err, &pg) || pg.Code != "55P03" {
			t.Fatalf("again: got %v, want 55P03: the COMMIT that was given up holds the position", err)
		}
		if got := b.balance("alice"); got != 0 {
			t.Fatalf("balance: got %d, want 0: no standby has it", got)
		}
	}
	standby.Want(t, url, "")
	testkit.Eventually(t, time.Minute, func() error {
		c, err := b.ledger.Apply(t.Context(), batch)
		if err == nil && c.Count(Duplicate) != 1 {
			t.Errorf("got %d duplicates, want 1: it was committed", c.Count(Duplicate))
		}
		return err
	})
	if got := b.balance("alice"); got != 5 {
		t.Errorf("balance: got %d, want 5", got)
	}
	b.lawful()
}

// Somebody else cancels the wait. The server answers COMMIT all the same, with a warning:
// that is not success, since a failover may lose it, and the position with it.
func TestApply_CommitWhoseWaitWasCancelledIsUnknown(t *testing.T) {
	t.Parallel()
	b, url := setupStandby(t)
	standby.Want(t, url, "nowhere")
	batch := b.batch(0, paid(t, "evt_1", "alice", 5))
	for i, visible := range []string{"applied", "known"} {
		done := make(chan error, 1)
		go func() { // ends with the cancelled wait
			c, err := b.ledger.Apply(context.WithoutCancel(t.Context()), batch)
			if err != nil && c.Next() != batch.Start {
				err = fmt.Errorf("next is %d beside %w", c.Next(), err)
			}
			done <- err
		}()
		pid := b.untilCommitWaits()
		query1[bool](t, b.pool, `select pg_cancel_backend($1)`, pid)
		if err := <-done; !errors.Is(err, commit.ErrAlone) {
			t.Fatalf("attempt %d, %s: got %v, want ErrAlone", i, visible, err)
		}
		if got := b.balance("alice"); got != 5 {
			t.Errorf("balance: got %d, want 5: Postgres shows what it committed alone", got)
		}
	}
	standby.Want(t, url, "")
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Duplicate: 1})
	b.lawful()
}

// The COMMIT of a pgx.Tx, here that of a position, is not cancelled either; a statement is.
func TestPool_CancelsNoCommitAndEverythingElse(t *testing.T) {
	t.Parallel()
	b, url := setupStandby(t)
	standby.Want(t, url, "nowhere")
	ctx, giveUp := context.WithCancel(t.Context())
	w := PositionWrite{Position: testPosition}
	w.Partition = 1
	done := make(chan error, 1)
	go func() { done <- b.ledger.WritePosition(ctx, w) }() // ends with giveUp
	committing := b.untilCommitWaits()
	giveUp()
	if err := <-done; err == nil {
		t.Error("got no error, with nobody there to have it")
	}
	busy, giveUp := context.WithCancel(t.Context())
	go func() {
		_, err := b.pool.Exec(busy, `select pg_sleep(600)`)
		done <- err
	}()
	sleeping := 0
	testkit.Eventually(t, time.Minute, func() error {
		sleeping = query1[int](t, b.pool, `select coalesce(max(pid), 0) from pg_stat_activity where wait_event = 'PgSleep'`)
		if sleeping == 0 {
			return errors.New("nobody sleeps")
		}
		return nil
	})
	giveUp()
	if err := <-done; err == nil {
		t.Error("got no error of what was given up")
	}
	gone := func(pid int) bool {
		return !query1[bool](t, b.pool, `select exists (select from pg_stat_activity where pid = $1)`, pid)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if !gone(sleeping) {
			return errors.New("the statement was not cancelled")
		}
		return nil
	})
	if gone(committing) {
		t.Error("the COMMIT was cancelled")
	}
	if n := query1[int](t, b.pool, `select count(*) from consumer_progress where partition = 1`); n != 0 {
		t.Error("a position is visible that no standby has")
	}
	standby.Want(t, url, "")
	testkit.Eventually(t, time.Minute, func() error {
		if n := query1[int](t, b.pool, `select count(*) from consumer_progress where partition = 1`); n != 1 {
			return errors.New("the position is not committed")
		}
		return nil
	})
}
