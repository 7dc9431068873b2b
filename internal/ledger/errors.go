package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"hookledger/schema"
)

// ErrPositionMoved says that Postgres does not hold the position the caller believes
// in: somebody moved it, or Postgres lost commits. The caller must drop what it has
// read, and look up its position again as at assignment.
var ErrPositionMoved = errors.New("position moved: read it again")

// errRace says that another transaction decided first about an event, a state or a
// row of this batch. The same batch can run again at once.
var errRace = errors.New("another transaction was faster")

// errWall says that something of a batch that looked new stands already.
var errWall = fmt.Errorf("%w: what looked new is known", errRace)

// WaitError says that a record is good but cannot be read with this program or this
// configuration. Its partition waits, with an incident; nothing is quarantined.
type WaitError struct {
	// Kind is the kind of the incident, unknown_source or unknown_version.
	Kind   string
	Detail string
	// Offset is that of the record.
	Offset int64
}

// Kinds of a WaitError.
const (
	KindUnknownSource  = "unknown_source"
	KindUnknownVersion = "unknown_version"
)

// Error says what waits and what mends it.
func (e *WaitError) Error() string {
	text := fmt.Sprintf("record at offset %d waits: %s: %s", e.Offset, e.Kind, e.Detail)
	if e.Kind == KindUnknownSource {
		return text + ": configure the source on this worker"
	}
	return text // schema.ErrUnknownVersion says it
}

// dataError says that Postgres, or our own arithmetic, refuses what a record says.
// It bisects the batch; a record that causes it alone is quarantined with reason.
type dataError struct {
	reason string
	detail string
	err    error
}

func (e *dataError) Error() string { return e.reason + ": " + e.detail }
func (e *dataError) Unwrap() error { return e.err }

// Reasons for quarantine that this package gives, beside those of schema.DecodeError
// and schema.MappingError.
const (
	reasonOverflow       = "balance_overflow"
	reasonRefused        = "refused_by_database"
	reasonEffectMismatch = "effect_mismatch"
	reasonBadText        = "bad_text"
)

const (
	codeNumericOutOfRange = "22003"
	codeDivisionByZero    = "22012"
	codeNotNull           = "23502"
	codeUnique            = "23505"
	codeCheck             = "23514"
)

// classify turns the error of a statement that carries data of records into a
// *dataError if the data is to blame, into errRace if a count guard fired, and
// leaves every other error as it is: those are retried.
//
// Class 22 is data. 23502 and 23514 are data only from the two tables whose
// constraints speak about amounts: a missing partition of a table raises 23514 too
// (Postgres 15), without the name of a constraint, and is no fault of a record.
func classify(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	amounts := pg.TableName == "accounts" || pg.TableName == "ledger_entries"
	data := false
	switch {
	case pg.Code == codeDivisionByZero: // only a guard divides, see queryAccounts
		return fmt.Errorf("%w: %w", errRace, err)
	case pg.Code == codeUnique && (pg.TableName == "ledger_entries" || strings.HasPrefix(pg.TableName, "processed_events")):
		// Only queryAddEvents and queryAddEntries let one through.
		return fmt.Errorf("%w: %w", errWall, err)
	case pg.Code == codeNumericOutOfRange:
		return &dataError{reasonOverflow, "a sum does not fit 64 bits", err}
	case len(pg.Code) == 5 && pg.Code[:2] == "22":
		data = true
	case pg.Code == codeNotNull:
		data = amounts && pg.ColumnName != ""
	case pg.Code == codeCheck:
		data = amounts && pg.ConstraintName != ""
	}
	if !data {
		return err
	}
	// Message and names only: the detail of a Postgres error repeats the row.
	detail := fmt.Sprintf("SQLSTATE %s: %s", pg.Code, pg.Message)
	return &dataError{reasonRefused, detail, err}
}

// asMappingError returns the reason and detail of a mapping error.
func asMappingError(err error) (reason, detail string, ok bool) {
	var m *schema.MappingError
	if !errors.As(err, &m) {
		return "", "", false
	}
	return m.Reason, m.Detail, true
}
