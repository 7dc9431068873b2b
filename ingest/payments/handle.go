package payments

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"hookledger/ingest/listener"
	"hookledger/internal/crashpoint"
)

// exchange is one HTTP request and its answer, filled stage by stage.
type exchange struct {
	op    string
	id    string
	w     http.ResponseWriter
	r     *http.Request
	token *token
	began time.Time
	// read: the whole body was read.
	read bool
}

func newRequestID() string {
	var b [16]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// client is the client's name in metrics and logs.
func (x *exchange) client() string {
	if x.token == nil {
		return unknownClient
	}
	return x.token.client
}

// refusal is why a request is not answered with success.
type refusal struct {
	problem problem
	// detail is for the client; cause is for the log, and may be nil.
	detail string
	cause  error
	// retryAfter goes before that of the problem.
	retryAfter time.Duration
}

func (p problem) refuse(detail string) *refusal { return &refusal{problem: p, detail: detail} }

// handle wraps what every operation needs: a known client within its rate.
func (s *Server) handle(op string, f func(*exchange, echo.Context) *refusal) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := &exchange{op: op, id: newRequestID(), w: c.Response().Writer, r: c.Request(), began: time.Now()}
		defer s.recovered(x)
		no := s.admit(x)
		if no == nil {
			no = f(x, c)
		}
		if no != nil {
			s.refuse(x, *no)
		}
		return nil
	}
}

// admit finds the client by its token and takes one from its bucket.
func (s *Server) admit(x *exchange) *refusal {
	text := bearer(x.r.Header["Authorization"])
	if text == "" {
		return unauthorized.refuse("")
	}
	if x.token = s.tokens.find(text, x.began); x.token == nil {
		return unauthorized.refuse("")
	}
	s.metrics.matches.WithLabelValues(x.token.client, x.token.id).Inc()
	s.metrics.lastMatch.WithLabelValues(x.token.client, x.token.id).Set(float64(x.began.UnixMilli()) / 1000)
	if wait, ok := s.limits.take(x.token.client, x.began); !ok {
		return &refusal{problem: rateLimited, retryAfter: wait}
	}
	return nil
}

// postPayment handles POST /v1/payments. What can be wrong with the request itself is
// judged before its key: none of that is remembered.
func (s *Server) postPayment(x *exchange, _ echo.Context) *refusal {
	if !isJSON(x.r.Header) {
		return badMediaType.refuse("")
	}
	key, err := parseKey(x.r.Header)
	if err != nil {
		return badKey.refuse(err.Error())
	}
	body, no := s.readBody(x)
	if no != nil {
		return no
	}
	r := &request{client: x.token.client, key: key, id: x.id}
	if r.order, err = parseOrder(body); err != nil {
		return badBody.refuse(err.Error())
	}
	if r.fingerprint, err = fingerprint(x.r.Method, x.r.URL.Path, body); err != nil {
		return badBody.refuse(err.Error())
	}
	if !x.token.maySpendFrom(r.order.from) {
		return forbidden.refuse("")
	}
	if err := s.watch.ready(); err != nil {
		return &refusal{problem: unavailable, cause: err}
	}
	a, err := s.settle(x.r.Context(), r)
	if err != nil {
		return refusedWork(err)
	}
	s.succeed(x, a)
	crashpoint.Reach("payments.answered")
	return nil
}

func isJSON(h http.Header) bool {
	for _, value := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(value), "identity") {
			return false
		}
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func (s *Server) readBody(x *exchange) ([]byte, *refusal) {
	if x.r.ContentLength > int64(s.config.MaxBodyBytes) {
		return nil, bodyTooLarge.refuse("")
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, int64(s.config.MaxBodyBytes)))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge.refuse("")
	case err != nil:
		return nil, badBody.refuse("the body ended before its length, or stalled")
	}
	x.read = true
	return body, nil
}

// settled is what serving a request came to.
type settled struct {
	answer *answer
	err    error
}

// errNoAnswer: Postgres has not answered in time. The work goes on.
var errNoAnswer = errors.New("no answer of Postgres in time")

// settle has the order done and waits for the answer, up to the answer timeout. The work
// does not depend on the client's patience: it ends with a result or a rollback, and
// neither is to be guessed at by cutting it off.
func (s *Server) settle(ctx context.Context, r *request) (*answer, error) {
	done := make(chan settled, 1)
	s.working.Go(func() { // ends at the latest after workTimeout
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
		defer cancel()
		var out settled
		defer func() {
			if cause := recover(); cause != nil {
				s.log.Error().Str("client", r.client).Str("request_id", r.id).Str("stack", string(debug.Stack())).Msg("panic while working on a payment")
				out = settled{err: errors.New("panic")}
			}
			done <- out
		}()
		out.answer, out.err = s.door.serve(ctx, r)
	})
	timer := time.NewTimer(s.config.AnswerTimeout)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.answer, out.err
	case <-timer.C:
		return nil, errNoAnswer
	}
}

func refusedWork(err error) *refusal {
	no := &refusal{problem: unavailable, cause: err}
	var t *tripError
	switch {
	case errors.Is(err, errInProgress), errors.Is(err, errLostClaim):
		no.problem = inProgress
	case errors.Is(err, errKeyReused):
		no.problem = keyReused
	case errors.Is(err, errBusyPool), errors.Is(err, errBusyLocks):
		no.problem = overloaded
	case errors.Is(err, errNoAnswer), errors.As(err, &t) && t.unknown:
		no.problem = unknownOutcome
	}
	return no
}

// succeed writes an answer that was kept, new or not.
func (s *Server) succeed(x *exchange, a *answer) {
	h := x.w.Header()
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
		s.metrics.replays.WithLabelValues(x.client()).Inc()
	}
	if a.code == http.StatusCreated {
		h.Set("Content-Type", "application/json")
		h.Set("Location", locationOf(a.body))
	} else {
		h.Set("Content-Type", problemType)
	}
	s.write(x, a.code, a.body)
	s.log.Debug().Str("client", x.client()).Int("status", a.code).Bool("replayed", a.replayed).Str("request_id", x.id).Msg("payment answered")
}

// locationOf returns the path of the payment in a body of ours.
func locationOf(body []byte) string {
	var p Payment
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	return "/v1/payments/" + p.PaymentID
}

// refuse counts, logs and answers a request that is not answered with success.
func (s *Server) refuse(x *exchange, no refusal) {
	p := no.problem
	s.metrics.refusals.WithLabelValues(x.op, p.name).Inc()
	event := s.refusals.Info()
	if p.status >= 500 {
		event = s.refusals.Warn()
	}
	event.AnErr("cause", no.cause).
		Str("operation", x.op).Str("client", x.client()).Str("reason", p.name).Int("status", p.status).
		Str("detail", no.detail).Str("request_id", x.id).Str("remote", x.r.RemoteAddr).
		Msg("request refused")
	if p.name == keyReused.name {
		s.metrics.reused.WithLabelValues(x.client()).Inc()
	}
	h := x.w.Header()
	switch {
	case no.retryAfter > 0:
		setRetryAfter(h, no.retryAfter)
	case p.retryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	switch p.name {
	case unauthorized.name:
		h.Set("WWW-Authenticate", "Bearer")
	case badMediaType.name:
		h.Set("Accept-Encoding", "identity")
	}
	h.Set("Content-Type", problemType)
	answer := func() { s.write(x, p.status, p.bytes(no.detail, x.id)) }
	if x.read {
		answer()
		return
	}
	listener.AnswerEarly(x.w, x.r, answer)
}

// write writes and counts an answer.
func (s *Server) write(x *exchange, code int, body []byte) {
	s.metrics.responses.WithLabelValues(x.op, x.client(), strconv.Itoa(code)).Inc()
	h := x.w.Header()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(code)
	_, _ = x.w.Write(body) // who sent it is gone, or hears
	s.metrics.duration.WithLabelValues(x.op, strconv.Itoa(code)).Observe(time.Since(x.began).Seconds())
}

// recovered answers 500 after a panic, so that one request cannot end the process.
func (s *Server) recovered(x *exchange) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	// The cause may quote what was being read.
	s.log.Error().Str("client", x.client()).Str("request_id", x.id).Str("stack", string(debug.Stack())).Msg("panic while answering a request")
	s.refuse(x, refusal{problem: internalFault})
}
