package payments

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
)

// Account is an account as clients see it.
type Account struct {
	AccountID string    `json:"account_id"`
	Balances  []Balance `json:"balances"`
}

// Balance is one of an account; in minor units of its currency.
type Balance struct {
	Currency   string    `json:"currency"`
	Balance    int64     `json:"balance"`
	EntryCount int64     `json:"entry_count"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// getPayment handles GET /v1/payments/{id}. A payment of another client is not there.
func (s *Server) getPayment(x *exchange, c echo.Context) *refusal {
	var id pgtype.UUID
	if len(c.Param("id")) != 36 || id.Scan(c.Param("id")) != nil {
		return notFound.refuse("")
	}
	var p Payment
	err := s.read(x.r.Context(), func(ctx context.Context, conn *pgxpool.Conn) error {
		var stored pgtype.UUID
		err := conn.QueryRow(ctx, queryReadPayment, id, x.token.client).
			Scan(&stored, &p.From, &p.To, &p.Amount, &p.Currency, &p.Reference, &p.Status, &p.CreatedAt)
		p.PaymentID, p.CreatedAt = stored.String(), p.CreatedAt.UTC()
		return err
	})
	return s.answerRead(x, p, err)
}

// getAccount handles GET /v1/accounts/{id}. Who may spend from an account may see it.
func (s *Server) getAccount(x *exchange, c echo.Context) *refusal {
	id := c.Param("id")
	if x.r.URL.RawPath != "" { // then the router matched it, and decodes nothing
		var err error
		if id, err = url.PathUnescape(id); err != nil {
			return notFound.refuse("")
		}
	}
	if !x.token.maySpendFrom(id) {
		return forbidden.refuse("")
	}
	if !isAccount(id) { // nor may Postgres be asked for it, if it is no text
		return notFound.refuse("")
	}
	a := Account{AccountID: id}
	err := s.read(x.r.Context(), func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, queryReadAccount, id)
		if err != nil {
			return err
		}
		a.Balances, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Balance, error) {
			var b Balance
			err := row.Scan(&b.Currency, &b.Balance, &b.EntryCount, &b.UpdatedAt)
			b.UpdatedAt = b.UpdatedAt.UTC()
			return b, err
		})
		if err == nil && len(a.Balances) == 0 {
			return pgx.ErrNoRows
		}
		return err
	})
	return s.answerRead(x, a, err)
}

// read runs f on a connection, within the answer timeout.
func (s *Server) read(ctx context.Context, f func(context.Context, *pgxpool.Conn) error) error {
	if err := s.watch.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.AnswerTimeout)
	defer cancel()
	conn, err := s.door.db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return f(ctx, conn)
}

func (s *Server) answerRead(x *exchange, v any, err error) *refusal {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return notFound.refuse("")
	case errors.Is(err, errBusyPool):
		return &refusal{problem: overloaded, cause: err}
	case err != nil:
		return &refusal{problem: unavailable, cause: err}
	}
	body, err := encode(v)
	if err != nil {
		return &refusal{problem: internalFault, cause: err}
	}
	x.w.Header().Set("Content-Type", "application/json")
	s.write(x, http.StatusOK, body)
	return nil
}

// OpenAPI is the description of the interface, OpenAPI 3.1 as JSON. A test holds it
// against the handlers.
//
//go:embed openapi.json
var OpenAPI []byte

// serveOpenAPI handles GET /openapi.json. It needs no token: it holds no secret.
func serveOpenAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/json", OpenAPI)
}
