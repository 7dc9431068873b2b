package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/config"
	"hookledger/internal/ledger/commit"
	"hookledger/internal/observe"
	"hookledger/migrations"
)

// Process is what a command is given by the operating system.
type Process struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Environ is as from os.Environ.
	Environ []string
	// Stop receives the signals that ask for an end, Reload those that ask to read
	// secrets again. Nil channels never receive.
	Stop   <-chan os.Signal
	Reload <-chan os.Signal
}

// App is what every command shares: the process and the global flags.
type App struct {
	Process
	// ConfigFile is the value of --config, JSON that of --json.
	ConfigFile string
	JSON       bool
}

// Config loads the configuration as --config and the environment name it.
func (a *App) Config() (*config.Loaded, error) {
	return config.Load(a.ConfigFile, a.Environ)
}

// Logger returns the log of a role, on standard error.
func (a *App) Logger(cfg *config.Loaded) (zerolog.Logger, error) {
	return observe.NewLogger(a.Stderr, cfg.Log.Level, cfg.Log.Format)
}

// Quiet is the log of commands that answer by what they print: warnings alone.
func (a *App) Quiet() zerolog.Logger {
	log, err := observe.NewLogger(a.Stderr, "warn", observe.FormatAuto)
	if err != nil {
		return zerolog.Nop()
	}
	return log
}

// Print answers a command: with --json one object, v with its schema put first;
// otherwise what human writes. command is the name within "hookledger.<command>.v1".
func (a *App) Print(command string, v any, human func(io.Writer) error) error {
	if !a.JSON {
		var buf bytes.Buffer
		if err := human(&buf); err != nil {
			return err
		}
		_, err := a.Stdout.Write(buf.Bytes())
		return err
	}
	out, err := MarshalWithSchema(command, v)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(append(out, '\n'))
	return err
}

// MarshalWithSchema marshals v, which must become a JSON object, with
// "schema": "hookledger.<command>.v1" as its first member.
func MarshalWithSchema(command string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write JSON of %s: %w", command, err)
	}
	rest, ok := bytes.CutPrefix(body, []byte("{"))
	if !ok {
		return nil, fmt.Errorf("write JSON of %s: %T is not an object", command, v)
	}
	head := fmt.Sprintf(`{"schema":"hookledger.%s.v1"`, command)
	if len(rest) > 1 {
		head += ","
	}
	return append([]byte(head), harmless(rest)...), nil
}

// harmless writes the characters that JSON may hold as they are, and a terminal may obey,
// as escapes: DEL and the C1 controls (U+009B begins a sequence as ESC [ does), and the
// directions of writing. They stand in strings alone, and mean the same there.
func harmless(text []byte) []byte {
	steers := func(r rune) bool {
		return r >= 0x7f && r < 0xa0 || r >= 0x200e && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}
	if bytes.IndexFunc(text, steers) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if steers(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// Say tells a person something on standard error, where it never mixes with output.
func (a *App) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

// OpenDatabase connects a command to Postgres and checks that its schema is this
// program's. The caller closes the pool.
func (a *App) OpenDatabase(ctx context.Context, cfg *config.Loaded, command string) (*pgxpool.Pool, error) {
	if err := cfg.RequireDatabase(); err != nil {
		return nil, err
	}
	pool, err := NewPool(ctx, cfg, "hookledger "+command, 0)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, pool); err != nil {
		pool.Close()
		return nil, SchemaError(err)
	}
	return pool, nil
}

// NewPool makes the pool of one process. connections is what its work needs, used
// unless database.max_connections says otherwise; zero is pgx's default. No COMMIT of it is
// cancelled, whoever gives up on it.
func NewPool(ctx context.Context, cfg *config.Loaded, application string, connections int) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.Database.URL)
	if err != nil {
		return nil, Usage(errors.New("database.url cannot be read as a connection URL"))
	}
	switch {
	case cfg.Database.MaxConnections > 0:
		pc.MaxConns = int32(cfg.Database.MaxConnections)
	case connections > 0:
		pc.MaxConns = int32(connections)
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = application
	}
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Where nothing is prepared, as behind a pooler that does not know how, pgx has to
		// be told what is a uuid.
		conn.TypeMap().RegisterDefaultPgType([16]byte{}, "uuid")
		conn.TypeMap().RegisterDefaultPgType([][16]byte{}, "_uuid")
		return nil
	}
	commit.Pool(pc)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// ReadOnly runs f in a read-only transaction that sees one moment. It works through a
// pooler: nothing is prepared on the server.
func ReadOnly(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
	if err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	return nil
}

// SchemaError marks a schema that this program does not fit as a matter of setup.
func SchemaError(err error) error {
	if errors.Is(err, migrations.ErrSchemaOlder) || errors.Is(err, migrations.ErrSchemaNewer) {
		return Usage(err)
	}
	return err
}

// TopicError marks a topic that is missing or refused as a matter of setup.
func TopicError(err error) error {
	var refused *broker.RefusedError
	if errors.Is(err, broker.ErrNoTopic) || errors.As(err, &refused) {
		return Usage(err)
	}
	return err
}

// Group makes a command that only holds others.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return Usage(fmt.Errorf("%s needs a command: see `%s --help`", c.CommandPath(), c.CommandPath()))
	}}
	c.AddCommand(children...)
	return c
}
