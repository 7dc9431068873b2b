package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// versionTable is where goose records what was applied.
const versionTable = "hookledger_schema"

// Errors of Check.
var (
	// ErrSchemaOlder: the database lacks migrations of this program.
	ErrSchemaOlder = errors.New("database schema is older than this program: run `hookledger migrate up`")
	// ErrSchemaNewer: the database has migrations that this program does not know.
	ErrSchemaNewer = errors.New("database schema is newer than this program: " +
		"deploy the release that migrated it, or run that release's `hookledger migrate down`")
)

// Migration is one numbered change of the schema.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is zero if the migration is not applied.
	AppliedAt time.Time
}

// Up applies every migration that the database lacks. Like Down and Status it fails with
// ErrSchemaNewer on a schema that this program does not know. It is safe to call from
// several processes at once: they take turns.
func Up(ctx context.Context, databaseURL string) error {
	return withProvider(ctx, databaseURL, func(p *goose.Provider) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate up: %w", explain(err))
		}
		return nil
	})
}

// Down takes back the latest applied migration, with everything its tables hold. It
// does nothing if none is applied.
func Down(ctx context.Context, databaseURL string) error {
	return withProvider(ctx, databaseURL, func(p *goose.Provider) error {
		if _, err := p.Down(ctx); err != nil && !errors.Is(err, goose.ErrNoNextVersion) {
			return fmt.Errorf("migrate down: %w", explain(err))
		}
		return nil
	})
}

// Status lists the migrations of this program, oldest first.
func Status(ctx context.Context, databaseURL string) ([]Migration, error) {
	var list []Migration
	err := withProvider(ctx, databaseURL, func(p *goose.Provider) error {
		states, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("migrate status: %w", explain(err))
		}
		for _, s := range states {
			list = append(list, Migration{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt})
		}
		return nil
	})
	return list, err
}

// Check returns nil if the database has the schema of this program, and otherwise an
// error that wraps ErrSchemaOlder or ErrSchemaNewer. It needs SELECT alone.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	want, err := latest()
	if err != nil {
		return err
	}
	var have int64
	// Works through a pooler: nothing is prepared on the server.
	err = pool.QueryRow(ctx, "select coalesce(max(version_id), 0) from "+versionTable+" where is_applied",
		pgx.QueryExecModeExec).Scan(&have)
	var pgErr *pgconn.PgError
	const undefinedTable = "42P01"
	if errors.As(err, &pgErr) && pgErr.Code == undefinedTable {
		have, err = 0, nil
	}
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch {
	case have < want:
		return fmt.Errorf("schema version is %d, want %d: %w", have, want, ErrSchemaOlder)
	case have > want:
		return newer(have, want)
	}
	return nil
}

// withProvider runs f on a connection of its own. It fails with ErrSchemaNewer, and
// runs nothing, on a schema that this program does not know.
func withProvider(ctx context.Context, databaseURL string, f func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("parse database url: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithSessionLocker(sessionLock{}),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("load migrations: %w", err)
	}
	want, err := latest()
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", explain(err))
	}
	if have > want {
		return newer(have, want)
	}
	return f(p)
}

func newer(have, want int64) error {
	return fmt.Errorf("schema version is %d, want %d: %w", have, want, ErrSchemaNewer)
}

// latest is the version of the newest embedded file.
func latest() (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("list embedded migrations (%d found): %w", len(names), err)
	}
	last := names[len(names)-1] // Glob sorts, and all versions have five digits
	number, _, _ := strings.Cut(last, "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read version of migration %s: %w", last, err)
	}
	return version, nil
}

// explain adds the hint of a Postgres error, which its Error method leaves out.
func explain(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Hint != "" {
		return fmt.Errorf("%w: %s", err, pgErr.Hint)
	}
	return err
}

// sessionLock makes processes that migrate one schema take turns. It waits in the
// server; goose's own locker polls once a second at best.
type sessionLock struct{}

const lockKey = "hashtextextended('hookledger migrations ' || coalesce(current_schema(), ''), 0)"

// SessionLock waits until no other session migrates this schema, or ctx ends.
func (sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "select pg_advisory_lock("+lockKey+")"); err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}
	return nil
}

// SessionUnlock lets the next session migrate.
func (sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "select pg_advisory_unlock("+lockKey+")"); err != nil {
		return fmt.Errorf("release migration lock: %w", err)
	}
	return nil
}
