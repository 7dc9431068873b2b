package amend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/schema"
)

// Request says which event to amend, to what, who asks and why.
type Request struct {
	// Source and EventID name the event.
	Source, EventID string
	// Meaning is what the event means today; nil takes back what stands, and no more.
	Meaning *schema.Meaning
	// Record is where the bytes lie that Meaning was read from; unused without one.
	Record Place
	// By and Reason are kept; both are needed.
	By, Reason string
	// DryRun does the same work and rolls it back.
	DryRun bool
}

// Place is a record of the topic.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Amendment is what was written, or would be.
type Amendment struct {
	// ID is empty if there was nothing to mend, and in a dry run.
	ID      string
	Entries []Entry
	Moves   []Move
	// SameEffect counts postings that another event has told of with equal money.
	SameEffect int
}

// Entry is one entry of an amendment. Amount is in minor units of Currency.
type Entry struct {
	Account, Contra string
	Amount          int64
	Currency        string
	Rule, Movement  string
	// Opposite takes back what stood.
	Opposite bool

	effect schema.EffectKey
	line   int32
}

// Move is what one balance gains or loses, and what it is then.
type Move struct {
	Account, Currency string
	Amount, Balance   int64
}

// Errors of Amend, each with what to do instead.
var (
	ErrUnknown    = errors.New("the event is not on record: it may be in the topic unread, or in quarantine")
	ErrMoneyless  = errors.New("the event moved no money: after a change of the mapping, replay it (`hookledger replay reset`), which is safe")
	ErrSameEffect = errors.New("its money is on record under another event, which is the one to amend")
	ErrMismatch   = errors.New("another event tells of the same movement with other money: amend that one, or mend the mapping's movement")
)

// errRace says that another transaction wrote an entry of the same movement meanwhile.
var errRace = errors.New("another transaction was faster")

const maxReruns = 5

// Amend writes an amendment of the event of r. It fails with one of the errors above, and
// then nothing was written; after any other error of COMMIT the outcome is unknown, and
// asking again is safe. It needs the rights of hookledger_operator.
func Amend(ctx context.Context, pool *pgxpool.Pool, r Request) (Amendment, error) {
	for rerun := 0; ; rerun++ {
		var done Amendment
		err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			a := &amending{tx: tx, request: &r, key: schema.KeyOf(r.Source, r.EventID)}
			done, err = a.run(ctx)
			if err == nil && r.DryRun {
				err = errDryRun
			}
			return err
		})
		var pg *pgconn.PgError
		switch {
		case err == nil:
			return done, nil
		case errors.Is(err, errDryRun):
			done.ID = ""
			return done, nil
		case rerun < maxReruns && (errors.Is(err, errRace) || errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")):
		default:
			return Amendment{}, fmt.Errorf("amend event %s of %s: %w", strconv.Quote(r.EventID), strconv.Quote(r.Source), err)
		}
	}
}

// errDryRun rolls back.
var errDryRun = errors.New("dry run")

// amending is one transaction of Amend.
type amending struct {
	tx      pgx.Tx
	request *Request
	key     schema.EventKey
}

func (a *amending) run(ctx context.Context) (Amendment, error) {
	if _, err := a.tx.Exec(ctx, sqlSettings, pgx.QueryExecModeExec); err != nil {
		return Amendment{}, fmt.Errorf("set timeouts: %w", err)
	}
	if _, err := a.tx.Exec(ctx, sqlLockEvent, pgx.QueryExecModeExec, fmt.Sprintf("hookledger amend %x", a.key)); err != nil {
		return Amendment{}, fmt.Errorf("lock event: %w", err)
	}
	stands, err := a.standing(ctx)
	if err != nil {
		return Amendment{}, err
	}
	if !stands.any {
		if err := a.mayBegin(ctx); err != nil {
			return Amendment{}, err
		}
	}
	entries, same, err := a.plan(ctx, stands)
	if err != nil || len(entries) == 0 {
		return Amendment{SameEffect: same}, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	keyEntries(entries, id)
	if err := a.write(ctx, id, entries); err != nil {
		return Amendment{}, err
	}
	moves, err := a.addUp(ctx, entries)
	if err != nil {
		return Amendment{}, err
	}
	if _, err := a.tx.Exec(ctx, sqlNoTimeout, pgx.QueryExecModeExec); err != nil {
		return Amendment{}, fmt.Errorf("end the timeout: %w", err)
	}
	return Amendment{ID: uuidText(id), Entries: entries, Moves: moves, SameEffect: same}, nil
}

// standing is what the event's entries and those of its amendments add up to.
type standing struct {
	any  bool
	sums []Entry
}

func (a *amending) standing(ctx context.Context) (standing, error) {
	var s standing
	rows, err := a.tx.Query(ctx, sqlStanding, pgx.QueryExecModeExec, uuid(a.key))
	if err != nil {
		return s, fmt.Errorf("read what stands: %w", err)
	}
	var e Entry
	_, err = pgx.ForEachRow(rows, []any{&e.Account, &e.Contra, &e.Currency, &e.Rule, &e.Movement, &e.Amount}, func() error {
		s.any = true
		if e.Amount != 0 {
			s.sums = append(s.sums, e)
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("read what stands: %w", err)
	}
	return s, nil
}

// mayBegin judges an event without any entry. One that a person discarded may get its
// money after all.
func (a *amending) mayBegin(ctx context.Context) error {
	var outcome string
	err := a.tx.QueryRow(ctx, sqlOutcome, pgx.QueryExecModeExec, uuid(a.key)).Scan(&outcome)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrUnknown
	case err != nil:
		return fmt.Errorf("read outcome: %w", err)
	case outcome == "same_effect":
		return ErrSameEffect
	case outcome != "discarded":
		return ErrMoneyless
	}
	return nil
}

// plan lists the opposites of what stands and the postings of today, or nothing if they
// are the same money.
func (a *amending) plan(ctx context.Context, s standing) ([]Entry, int, error) {
	var postings []Entry
	same := 0
	if m := a.request.Meaning; m != nil {
		natural := m.EffectKeys(a.request.Source)
		told, err := a.told(ctx, natural)
		if err != nil {
			return nil, 0, err
		}
		for i, p := range m.Postings {
			e := Entry{Account: p.Account, Contra: p.Contra, Amount: p.Amount, Currency: p.Currency, Rule: p.Rule, Movement: p.Movement}
			switch t := told[natural[i]]; {
			case t == nil:
				e.effect = natural[i]
			case t.own: // taken back here, so this one gets a key of the amendment's own
			case t.account == p.Account && t.currency == p.Currency && t.amount == p.Amount:
				same++
				continue
			default:
				return nil, 0, ErrMismatch
			}
			postings = append(postings, e)
		}
	}
	if sameMoney(s.sums, postings) {
		return nil, same, nil
	}
	var entries []Entry
	for _, e := range s.sums {
		e.Amount, e.Opposite = -e.Amount, true
		entries = append(entries, e)
	}
	return append(entries, postings...), same, nil
}

// told is an entry that has the effect key of a posting.
type told struct {
	own               bool
	account, currency string
	amount            int64
}

func (a *amending) told(ctx context.Context, effects []schema.EffectKey) (map[schema.EffectKey]*told, error) {
	list := make([]pgtype.UUID, len(effects))
	for i, k := range effects {
		list[i] = uuid(k)
	}
	rows, err := a.tx.Query(ctx, sqlTold, pgx.QueryExecModeExec, list, uuid(a.key))
	if err != nil {
		return nil, fmt.Errorf("read who told of it: %w", err)
	}
	found := make(map[schema.EffectKey]*told)
	var effect pgtype.UUID
	var t told
	_, err = pgx.ForEachRow(rows, []any{&effect, &t.own, &t.account, &t.currency, &t.amount}, func() error {
		one := t
		found[effect.Bytes] = &one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read who told of it: %w", err)
	}
	return found, nil
}

// sameMoney tells whether both add up to the same.
func sameMoney(a, b []Entry) bool {
	sums := make(map[Entry]int64)
	for sign, list := range map[int64][]Entry{1: a, -1: b} {
		for _, e := range list {
			sums[Entry{Account: e.Account, Contra: e.Contra, Currency: e.Currency, Rule: e.Rule, Movement: e.Movement}] += sign * e.Amount
		}
	}
	for _, n := range sums {
		if n != 0 {
			return false
		}
	}
	return true
}

// ownSource and ownRule stand for a source and a rule in the effect keys of an amendment's
// own. No source can have this key.
const (
	ownSource = "_amendments"
	ownRule   = "amendment"
)

// keyEntries numbers the entries, gives those without one an effect key of the amendment's
// own, and sorts them as everything that locks is.
func keyEntries(entries []Entry, id [16]byte) {
	m := schema.Meaning{Postings: make([]schema.Posting, len(entries))}
	for i := range m.Postings {
		m.Postings[i] = schema.Posting{Rule: ownRule, Movement: uuidText(id)}
	}
	for i, own := range m.EffectKeys(ownSource) {
		entries[i].line = int32(i)
		if entries[i].effect == (schema.EffectKey{}) {
			entries[i].effect = own
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return slices.Compare(a.effect[:], b.effect[:]) })
}

// write inserts the amendment and its entries.
func (a *amending) write(ctx context.Context, id [16]byte, entries []Entry) error {
	r, kind := a.request, "reverse"
	var meaning pgtype.UUID
	var topic *string
	var partition *int32
	var offset *int64
	if r.Meaning != nil {
		kind, meaning = "amend", uuid(r.Meaning.Hash())
		topic, partition, offset = &r.Record.Topic, &r.Record.Partition, &r.Record.Offset
		// The row says what its event means, for other bodies to be compared with.
		if _, err := a.tx.Exec(ctx, sqlMeaning, pgx.QueryExecModeExec, uuid(a.key), meaning); err != nil {
			return fmt.Errorf("write meaning: %w", err)
		}
	}
	if _, err := a.tx.Exec(ctx, sqlAmendment, pgx.QueryExecModeExec, uuid(id), uuid(a.key), r.Source, r.EventID, kind, meaning,
		topic, partition, offset, r.By, r.Reason); err != nil {
		return fmt.Errorf("write amendment: %w", err)
	}
	for _, e := range entries {
		tag, err := a.tx.Exec(ctx, sqlEntry, pgx.QueryExecModeExec, uuid(e.effect), uuid(id), e.line, e.Account, e.Contra, e.Currency,
			e.Amount, e.Rule, e.Movement)
		if err != nil {
			return fmt.Errorf("write entry: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return errRace
		}
	}
	return nil
}

// addUp adds the entries to the balances, sorted by account and currency.
func (a *amending) addUp(ctx context.Context, entries []Entry) ([]Move, error) {
	type sum struct {
		Move
		entries int64
	}
	var sums []sum
	for _, e := range entries {
		i, found := slices.BinarySearchFunc(sums, e, func(s sum, e Entry) int {
			return cmp.Or(strings.Compare(s.Account, e.Account), strings.Compare(s.Currency, e.Currency))
		})
		if !found {
			sums = slices.Insert(sums, i, sum{Move: Move{Account: e.Account, Currency: e.Currency}})
		}
		s := &sums[i]
		if e.Amount > 0 && s.Amount > math.MaxInt64-e.Amount || e.Amount < 0 && s.Amount < math.MinInt64-e.Amount {
			return nil, errors.New("a sum does not fit 64 bits")
		}
		s.Amount += e.Amount
		s.entries++
	}
	moves := make([]Move, len(sums))
	for i, s := range sums {
		if err := a.tx.QueryRow(ctx, sqlAccount, pgx.QueryExecModeExec, s.Account, s.Currency, s.Amount, s.entries).Scan(&s.Balance); err != nil {
			return nil, fmt.Errorf("add to account: %w", err)
		}
		moves[i] = s.Move
	}
	return moves, nil
}

func uuid[T ~[16]byte](b T) pgtype.UUID { return pgtype.UUID{Bytes: b, Valid: true} }

func uuidText(id [16]byte) string { return uuid(id).String() }
