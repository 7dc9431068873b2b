package payments

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/transfer"
)

// answer is what a request is told, once its key is done.
type answer struct {
	code     int
	body     []byte
	replayed bool
}

// Payment is a payment as clients see it.
type Payment struct {
	PaymentID string    `json:"payment_id"`
	Status    string    `json:"status"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Reference string    `json:"reference"`
	CreatedAt time.Time `json:"created_at"`
}

// statusSucceeded is the one status that a payment has: one that does not succeed has
// no row.
const statusSucceeded = "succeeded"

// errLostClaim says that the claim is somebody else's by now, or about to be.
var errLostClaim = errors.New("the claim was taken over")

// errBusyLocks says that locks, of accounts or of whole tables, were not had in time, again
// and again.
var errBusyLocks = errors.New("the accounts or the tables are locked")

// made is a payment that is about to happen.
type made struct {
	transfer transfer.Transfer
	meaning  [16]byte
	body     []byte
}

func newPayment(r *request, c *claim) (*made, error) {
	o := &r.order
	m := &made{transfer: transfer.Transfer{
		PaymentID: newPaymentID(c.at), From: o.from, To: o.to, Amount: o.amount, Currency: o.currency, OccurredAt: c.at,
	}}
	hash := hashOf(r.client, o.from, o.to, fmt.Sprint(o.amount), o.currency, o.reference)
	copy(m.meaning[:], hash[:])
	var err error
	m.body, err = encode(Payment{
		PaymentID: uuidText(m.transfer.PaymentID), Status: statusSucceeded,
		From: o.from, To: o.to, Amount: o.amount, Currency: o.currency, Reference: o.reference, CreatedAt: c.at.UTC(),
	})
	return m, err
}

// encode writes JSON without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// newPaymentID returns a UUID of version 7 (RFC 9562): its time keeps new rows together
// in the index, its 74 random bits make it unguessable enough to be told.
func newPaymentID(at time.Time) [16]byte {
	var id [16]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(id[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

func uuidText(id [16]byte) string { return pgtype.UUID{Bytes: id, Valid: true}.String() }

// pay is the work: one transaction, in one write, that begins with the question whether
// the claim still holds: answer and payment, entries, balances, all or nothing.
func (d *door) pay(ctx context.Context, conn *pgxpool.Conn, r *request, c *claim, m *made) error {
	t := d.db.beginWork(conn)
	o := &r.order
	t.add(stepFence, queryPaid, d.fence(r, c, &answer{code: http.StatusCreated, body: m.body},
		pgtype.UUID{Bytes: m.transfer.PaymentID, Valid: true}, o.from, o.to, o.amount, o.currency, o.reference,
		pgtype.UUID{Bytes: m.meaning, Valid: true})...)
	m.transfer.Queue(&t.batch)
	t.steps = append(t.steps, step{name: stepTransfer})
	return t.run(ctx, conn)
}

// refuse keeps a as the answer, for good, if the account does not hold enough.
func (d *door) refuse(ctx context.Context, conn *pgxpool.Conn, r *request, c *claim, a *answer) error {
	t := d.db.beginWork(conn)
	t.add(stepFence, queryRefused, d.fence(r, c, a)...)
	t.add(stepPoor, queryPoor, r.order.from, r.order.currency, r.order.amount)
	return t.run(ctx, conn)
}

// keep makes a the answer without asking again.
func (d *door) keep(ctx context.Context, conn *pgxpool.Conn, r *request, c *claim, a *answer) error {
	t := d.db.beginWork(conn)
	t.add(stepFence, queryRefused, d.fence(r, c, a)...)
	return t.run(ctx, conn)
}

// fence returns the arguments of a statement that only the holder of c can execute, and
// that keeps a.
func (d *door) fence(r *request, c *claim, a *answer, more ...any) []any {
	return append([]any{r.client, r.key, c.attempt, c.at, r.fingerprint[:], int32(a.code), a.body}, more...)
}

// verdict is what a failed attempt at the work means.
type verdict int

const (
	failed    verdict = iota // give up
	lostClaim                // nothing may be done any more
	poor                     // the account does not hold enough
	tooMuch                  // the other account cannot hold more
	rich                     // the account holds enough after all
	busy                     // locks were not had in time
)

// judge tells what the error of an attempt means. The transaction of all but failed was
// rolled back.
func judge(err error) verdict {
	var t *tripError
	if !errors.As(err, &t) || t.unknown {
		return failed
	}
	code := t.code()
	switch {
	case t.step == stepFence && code == codeGuard:
		return lostClaim
	case t.step == stepTransfer && transfer.IsInsufficientFunds(t.err):
		return poor
	case t.step == stepTransfer && transfer.IsBalanceRange(t.err):
		return tooMuch
	case t.step == stepPoor && code == codeGuard:
		return rich
	case code == codeLockNotAvailable, code == codeDeadlock, code == codeSerialization:
		return busy
	}
	return failed
}
