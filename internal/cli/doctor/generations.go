package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger/memory"
)

// generations makes `hookledger doctor generations`.
func generations(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "generations",
		Short: "Show the generations of the memory of events",
		Long: `Show the generations of the memory of events. Workers open a new one every dedupe.rotate,
and empty the oldest one when all of it is older than dedupe.keep; nobody needs to do
that by hand. Forgetting moves no money: the ledger itself never forgets.`,
		Args: cobra.NoArgs,
		Example: `  hookledger doctor generations
  hookledger doctor generations --json | jq .in_use`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withMemory(c.Context(), a, func(ctx context.Context, cfg *config.Loaded, pool *pgxpool.Pool) error {
				out, err := readMemory(ctx, cfg, pool)
				if err != nil {
					return err
				}
				return a.Print("doctor-generations", out, func(w io.Writer) error { return printMemory(w, out) })
			})
		},
	}
	c.AddCommand(rotate(a), forget(a))
	return c
}

func rotate(a *app.App) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Open the next generation now",
		Long: `Open the next generation now, whatever the age of the open one. Workers need not stop, and
go on in the new one with their next batch. The next rotation on schedule is dedupe.rotate
from now. There are eight generations: opened faster than they are forgotten, they run
out, and then none is opened until the oldest one is forgotten.`,
		Args: cobra.NoArgs,
		Example: `  hookledger doctor generations rotate --dry-run
  hookledger doctor generations rotate`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withMemory(c.Context(), a, func(ctx context.Context, _ *config.Loaded, pool *pgxpool.Pool) error {
				return runRotate(ctx, a, pool, dryRun)
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be opened, change nothing")
	return c
}

func forget(a *app.App) *cobra.Command {
	var dryRun, oldest bool
	c := &cobra.Command{
		Use:   "forget",
		Short: "Empty the generations that are older than dedupe.keep",
		Long: `Empty the generations that are older than dedupe.keep: all that workers have not emptied
yet. With --oldest, empty the oldest closed one whatever its age. Workers need not stop.

No money moves, neither now nor when a forgotten event comes again. But it costs more
then, and what was ignored is mapped by today's configuration as if it were new.

A generation that somebody reads cannot be emptied: it says who that is, and waits for
nobody.`,
		Args: cobra.NoArgs,
		Example: `  hookledger doctor generations forget --dry-run
  hookledger doctor generations forget
  hookledger doctor generations forget --oldest   # the disk is full`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withMemory(c.Context(), a, func(ctx context.Context, cfg *config.Loaded, pool *pgxpool.Pool) error {
				return runForget(ctx, a, cfg, pool, dryRun, oldest)
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be forgotten, change nothing")
	c.Flags().BoolVar(&oldest, "oldest", false, "forget the oldest closed generation even if it is younger than dedupe.keep")
	return c
}

// withMemory runs f on the database.
func withMemory(ctx context.Context, a *app.App, f func(context.Context, *config.Loaded, *pgxpool.Pool) error) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pool, err := a.OpenDatabase(ctx, cfg, "doctor generations")
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(ctx, cfg, pool)
}

// memoryAnswer is hookledger.doctor-generations.v1.
type memoryAnswer struct {
	Open          int          `json:"open"`
	Oldest        int          `json:"oldest"`
	InUse         int          `json:"in_use"`
	Forgotten     int64        `json:"forgotten"`
	RotateSeconds float64      `json:"rotate_seconds"`
	KeepSeconds   float64      `json:"keep_seconds"`
	RotateDue     bool         `json:"rotate_due"`
	ForgetDue     bool         `json:"forget_due"`
	Generations   []generation `json:"generations"`
	Notes         []string     `json:"notes"`
}

type generation struct {
	Generation int `json:"generation"`
	// State is open, closed or free.
	State    string  `json:"state"`
	OpenedAt *string `json:"opened_at"`
	ClosedAt *string `json:"closed_at"`
	// Events is what Postgres estimates; null where it never counted.
	Events *int64 `json:"events_estimate"`
	Bytes  int64  `json:"bytes"`

	opened, closed time.Time
}

// sqlSizes: how large each generation is, with its index.
const sqlSizes = `
select g, coalesce(c.reltuples, -1)::bigint, coalesce(pg_total_relation_size(c.oid), 0)
  from generate_series(0, 7) g left join pg_class c on c.oid = to_regclass('processed_events_' || g)
 order by g`

func readMemory(ctx context.Context, cfg *config.Loaded, pool *pgxpool.Pool) (memoryAnswer, error) {
	ring, err := memory.Read(ctx, pool)
	if err != nil {
		return memoryAnswer{}, err
	}
	rotate, keep := cfg.Dedupe.Rotate, cfg.Dedupe.Keep
	out := memoryAnswer{
		Open: ring.Open, Oldest: ring.Oldest, InUse: ring.Used(), Forgotten: ring.Forgotten,
		RotateSeconds: rotate.Seconds(), KeepSeconds: keep.Seconds(),
		RotateDue: ring.RotationDue(rotate), ForgetDue: ring.ForgettingDue(keep), Notes: notesOn(cfg, ring),
	}
	rows, err := pool.Query(ctx, sqlSizes, pgx.QueryExecModeExec)
	if err != nil {
		return memoryAnswer{}, fmt.Errorf("read sizes of generations: %w", err)
	}
	var g generation
	var events int64
	_, err = pgx.ForEachRow(rows, []any{&g.Generation, &events, &g.Bytes}, func() error {
		one := g
		if events >= 0 {
			n := events
			one.Events = &n
		}
		one.State = "free"
		if ring.Uses(g.Generation) {
			one.State, one.opened, one.closed = "closed", ring.OpenedAt[g.Generation], ring.ClosedAt(g.Generation)
			one.OpenedAt, one.ClosedAt = console.JSONTime(one.opened), console.JSONTime(one.closed)
		}
		if g.Generation == ring.Open {
			one.State = "open"
		}
		out.Generations = append(out.Generations, one)
		return nil
	})
	if err != nil {
		return memoryAnswer{}, fmt.Errorf("read sizes of generations: %w", err)
	}
	return out, nil
}

// notesOn says what a person may want to know.
func notesOn(cfg *config.Loaded, ring memory.Ring) []string {
	notes := []string{}
	if w := cfg.MemoryWarning(); w != "" {
		notes = append(notes, w)
	}
	if ring.Full() {
		notes = append(notes, "all generations are in use: none can be opened until the oldest one is forgotten, and the open one grows")
	}
	if ring.RotationDue(cfg.Dedupe.Rotate) && !ring.Full() {
		notes = append(notes, "a rotation is due: a worker makes it within a minute, if one runs")
	}
	if ring.ForgettingDue(cfg.Dedupe.Keep) {
		notes = append(notes, "the oldest generation may be forgotten: a worker does it within minutes, if one runs and nobody reads it")
	}
	return notes
}

func printMemory(w io.Writer, m memoryAnswer) error {
	t := console.NewTable("generation>", "state", "opened", "closed", "events (about)>", "bytes>")
	for _, g := range m.Generations {
		events := "?"
		if g.Events != nil {
			events = strconv.FormatInt(*g.Events, 10)
		}
		t.Row(strconv.Itoa(g.Generation), g.State, console.Time(g.opened), console.Time(g.closed), events, strconv.FormatInt(g.Bytes, 10))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, n := range m.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d in use; %d forgotten since the beginning\n", m.InUse, memory.Generations, m.Forgotten)
	return err
}

// rotateAnswer is hookledger.doctor-generations-rotate.v1.
type rotateAnswer struct {
	Generation int  `json:"generation"`
	Opened     bool `json:"opened"`
	DryRun     bool `json:"dry_run"`
}

func runRotate(ctx context.Context, a *app.App, pool *pgxpool.Pool, dryRun bool) error {
	ring, err := memory.Read(ctx, pool)
	if err != nil {
		return err
	}
	out := rotateAnswer{Generation: (ring.Open + 1) % memory.Generations, DryRun: dryRun}
	switch {
	case ring.Full():
		return memory.ErrFull
	case !dryRun:
		if out.Opened, err = memory.Rotate(ctx, pool, ring, 0); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("generation %d is open", out.Generation)
	switch {
	case dryRun:
		line = fmt.Sprintf("generation %d would be opened; nothing was changed", out.Generation)
	case !out.Opened:
		line = "somebody else opened a generation in this moment; nothing was changed"
	}
	return a.Print("doctor-generations-rotate", out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

// forgetAnswer is hookledger.doctor-generations-forget.v1.
type forgetAnswer struct {
	// Generations are those that were forgotten, or would be.
	Generations []int `json:"generations"`
	DryRun      bool  `json:"dry_run"`
}

func runForget(ctx context.Context, a *app.App, cfg *config.Loaded, pool *pgxpool.Pool, dryRun, oldest bool) error {
	ring, err := memory.Read(ctx, pool)
	if err != nil {
		return err
	}
	keep := cfg.Dedupe.Keep
	if oldest {
		keep = 0
	}
	out := forgetAnswer{Generations: []int{}, DryRun: dryRun}
	// Of a ring that others change meanwhile, only what was due when it was read.
	for due := ring; due.ForgettingDue(keep); due.Oldest = (due.Oldest + 1) % memory.Generations {
		if !dryRun {
			done, err := memory.Forget(ctx, pool, due, keep)
			var busy *memory.BusyError
			switch {
			case errors.As(err, &busy):
				return fmt.Errorf("%d generations were forgotten; %w; end that transaction, or leave it to the workers", len(out.Generations), err)
			case err != nil:
				return err
			case !done:
				return a.Print("doctor-generations-forget", out, func(w io.Writer) error { return printForgotten(w, out, ring, keep, true) })
			}
		}
		out.Generations = append(out.Generations, due.Oldest)
		if oldest {
			break
		}
	}
	return a.Print("doctor-generations-forget", out, func(w io.Writer) error { return printForgotten(w, out, ring, keep, false) })
}

func printForgotten(w io.Writer, out forgetAnswer, ring memory.Ring, keep time.Duration, elsewhere bool) error {
	var names []string
	for _, g := range out.Generations {
		names = append(names, strconv.Itoa(g))
	}
	list := strings.Join(names, ", ")
	var line string
	switch {
	case len(names) > 0 && out.DryRun:
		line = fmt.Sprintf("would be forgotten: generation %s; nothing was changed", list)
	case len(names) > 0:
		line = fmt.Sprintf("forgotten: generation %s", list)
	case elsewhere:
		line = "a worker is at it; nothing was changed here"
	case ring.Used() == 1:
		line = "only the open generation holds events; nothing was changed (`hookledger doctor generations rotate` opens another one)"
	default:
		line = fmt.Sprintf("no generation is older than dedupe.keep (%s): the oldest was closed at %s; nothing was changed (--oldest forgets it all the same)",
			keep, console.Time(ring.ClosedAt(ring.Oldest)))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
