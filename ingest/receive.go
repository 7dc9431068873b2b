package ingest

import (
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest/listener"
	"hookledger/ingest/signature"
	"hookledger/internal/crashpoint"
	"hookledger/schema/provider"
)

// refusal is why a delivery is not answered with success.
type refusal struct {
	problem problem
	// reason is a stable word, a label of the metric; detail is for the log.
	reason string
	detail string
}

// receive handles one request to /webhooks/{source}, whatever its method. The order of
// the stages is the order of what they cost and of what may be believed: nothing of the
// body is looked at before its signature holds.
func (s *Server) receive(c echo.Context) error {
	w, r := c.Response().Writer, c.Request()
	d := &delivery{id: newDeliveryID(), begun: time.Now()}
	defer s.recovered(w, d)

	src, ok := s.doors[c.Param("source")]
	if !ok {
		s.refuse(w, r, d, &refusal{notFound, "unknown_source", ""})
		return nil
	}
	d.source = src.source
	if no := s.screen(r, src.source); no != nil {
		s.refuse(w, r, d, no)
		return nil
	}
	body, reserved, no := s.read(w, r)
	d.receivedAt, d.bytes = s.now(), len(body)
	if no != nil {
		s.budget.release(reserved) // before the answer, which may linger
		s.refuse(w, r, d, no)
		return nil
	}
	defer s.budget.release(reserved)
	crashpoint.Reach("ingest.read")
	verified, no := s.verify(d, src, r, body)
	if no != nil {
		s.refuse(w, r, d, no)
		return nil
	}
	if reply := verified.Reply(); reply != "" {
		s.reply(w, d, reply)
		return nil
	}
	crashpoint.Reach("ingest.verified")
	items, ack, no := s.accept(d, src, r, verified)
	if no != nil {
		s.refuse(w, r, d, no)
		return nil
	}
	crashpoint.Reach("ingest.acknowledged")
	s.succeed(w, d, ack, items)
	crashpoint.Reach("ingest.answered")
	return nil
}

// screen judges what is known before the body: the method, the headers, and whether
// the broker answers at all.
func (s *Server) screen(r *http.Request, src *provider.Source) *refusal {
	if !src.Allows(r.Method) {
		return &refusal{badMethod, "method", ""}
	}
	for _, value := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(value), "identity") {
			return &refusal{badEncoding, "content_encoding", ""}
		}
	}
	types := r.Header["Content-Type"]
	if len(types) > 1 || r.Method != http.MethodGet && !src.Accepts(r.Header.Get("Content-Type")) {
		return &refusal{badMediaType, "content_type", ""}
	}
	if r.ContentLength > int64(s.config.MaxBodyBytes) {
		return &refusal{bodyTooLarge, "body_too_large", "by Content-Length"}
	}
	if s.state.Load() == stateStarting {
		return &refusal{unavailable, "starting", ""}
	}
	if !s.health.allow() {
		return &refusal{unavailable, "circuit_open", ""}
	}
	return nil
}

// read reads the whole raw body. What it reserved is to be released in every case.
func (s *Server) read(w http.ResponseWriter, r *http.Request) ([]byte, int, *refusal) {
	body, reserved, err := readBody(http.MaxBytesReader(w, r.Body, int64(s.config.MaxBodyBytes)), r.ContentLength, s.config.MaxBodyBytes, &s.budget)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, reserved, &refusal{bodyTooLarge, "body_too_large", ""}
	case errors.Is(err, errNoRoom):
		return nil, reserved, &refusal{overloaded, "no_room", ""}
	case err != nil:
		return nil, reserved, &refusal{unreadBody, "body_unread", ""}
	}
	return body, reserved, nil
}

// verify believes or refuses a delivery.
func (s *Server) verify(d *delivery, src *door, r *http.Request, body []byte) (signature.Verified, *refusal) {
	verified, err := src.verifier.Verify(signature.Request{
		Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body, Remote: s.sender(r), At: d.receivedAt,
	})
	if err != nil {
		return signature.Verified{}, refusedSignature(err)
	}
	s.metrics.matches.WithLabelValues(src.source.Name(), verified.KeyID()).Inc()
	s.metrics.lastMatch.WithLabelValues(src.source.Name(), verified.KeyID()).Set(float64(d.receivedAt.UnixMilli()) / 1000)
	return verified, nil
}

// reply answers a challenge, by which a provider checks that the address is ours. It is
// no promise about any event.
func (s *Server) reply(w http.ResponseWriter, d *delivery, text string) {
	s.count(d, http.StatusOK)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(text)) // who sent it is gone, or hears
	s.log.Info().Str("source", d.source.Name()).Str("delivery_id", d.id).Msg("challenge answered")
}

// accept is the way from verified bytes to acknowledged records. Of a batch with items that
// cannot be identified the others are stored, and the delivery is refused.
func (s *Server) accept(d *delivery, src *door, r *http.Request, verified signature.Verified) ([]provider.Item, acknowledged, *refusal) {
	header := r.Header
	items, err := src.source.Identify(provider.Delivery{
		ID: d.id, Method: r.Method, Query: r.URL.RawQuery, Header: header, Body: verified.Body(),
	})
	if err != nil && len(items) == 0 {
		return nil, acknowledged{}, refusedEvent(err)
	}
	trace := traceParent(header)
	records := make([]*kgo.Record, len(items))
	for i, item := range items {
		records[i] = newRecord(d, verified, item, trace)
	}
	ack, produceErr := s.producer.produce(records, within(src.source.Deadline(), time.Since(d.begun)))
	if produceErr != nil {
		return nil, acknowledged{}, refusedRecord(produceErr)
	}
	if err != nil {
		// One item that nobody can keep shall not hold back the others for ever, and success
		// would say that it is kept. Sent again, the others are known.
		return nil, acknowledged{}, refusedEvent(err)
	}
	return items, ack, nil
}

// shortestWait is how long an acknowledgement is waited for even when the provider's
// deadline is all but over: what is stored then is known when it comes again.
const shortestWait = 100 * time.Millisecond

// within is how long the broker has, so that the answer is at the provider before its
// deadline; a tenth of that is for the way. A 503 in time says more than an answer that
// nobody waits for.
func within(deadline, passed time.Duration) time.Duration {
	if deadline == 0 {
		return math.MaxInt64
	}
	return max(deadline-deadline/10-passed, shortestWait)
}

func refusedSignature(err error) *refusal {
	if errors.Is(err, signature.ErrUnavailable) {
		return &refusal{keyUnavailable, "key_unavailable", err.Error()}
	}
	var rejection *signature.Rejection
	if !errors.As(err, &rejection) {
		return &refusal{badSignature, "signature", err.Error()}
	}
	no := &refusal{badSignature, "signature_" + string(rejection.Reason), rejection.Detail}
	switch rejection.Reason {
	case signature.Stale:
		no.problem = staleTimestamp
	case signature.Future:
		no.problem = futureTimestamp
	}
	return no
}

func refusedEvent(err error) *refusal {
	var unidentified *provider.IdentifyError
	if !errors.As(err, &unidentified) {
		return &refusal{badBody, "event", err.Error()}
	}
	if unidentified.Reason == provider.IdentifyBody {
		return &refusal{badBody, unidentified.Reason, unidentified.Detail}
	}
	return &refusal{badEvent, unidentified.Reason, unidentified.Detail}
}

func refusedRecord(err error) *refusal {
	switch {
	case errors.Is(err, errBufferFull):
		return &refusal{overloaded, "buffer_full", ""}
	case errors.Is(err, errCircuitOpen):
		return &refusal{unavailable, "partition_circuit_open", ""}
	case errors.Is(err, errAckTimeout):
		return &refusal{notAcknowledged, "ack_timeout", ""}
	}
	return &refusal{notAcknowledged, "produce_error", err.Error()}
}

// succeed writes the answer that counts. It takes the acknowledgement so that there is
// no other way to it.
func (s *Server) succeed(w http.ResponseWriter, d *delivery, ack acknowledged, items []provider.Item) {
	if !ack.sealed {
		panic("success without an acknowledgement")
	}
	answer := d.source.Success(items)
	s.count(d, answer.Status)
	s.metrics.accepted.WithLabelValues(d.source.Name()).Add(float64(len(items)))
	if answer.ContentType != "" {
		w.Header().Set("Content-Type", answer.ContentType)
	} else {
		w.Header()["Content-Type"] = nil // none is sniffed
	}
	if answer.Status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body)))
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write([]byte(answer.Body)) // who sent it is gone, or hears
	if e := s.log.Debug(); e.Enabled() {
		for _, item := range items {
			s.log.Debug().Str("source", d.source.Name()).Str("event_id", item.ID).Str("type", item.Type).Str("delivery_id", d.id).Msg("event accepted")
		}
	}
}

// refuse counts, logs and answers a delivery that is not accepted.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, d *delivery, no *refusal) {
	s.count(d, no.problem.status)
	s.metrics.refusals.WithLabelValues(d.label(), no.reason).Inc()
	s.refusals.Info().
		Str("source", d.label()).Str("reason", no.reason).Int("status", no.problem.status).
		Str("detail", no.detail).Str("delivery_id", d.id).Str("remote", r.RemoteAddr).
		Int64("content_length", r.ContentLength).Int("bytes", d.bytes).
		Msg("delivery refused")
	switch no.problem.name {
	case badMethod.name:
		w.Header().Set("Allow", d.methods())
	case badEncoding.name:
		w.Header().Set("Accept-Encoding", "identity")
	}
	if d.receivedAt.IsZero() || no.problem.name == bodyTooLarge.name || no.problem.name == overloaded.name {
		listener.AnswerEarly(w, r, func() { writeProblem(w, no.problem, d.id) })
		return
	}
	writeProblem(w, no.problem, d.id)
}

func (s *Server) count(d *delivery, status int) {
	s.metrics.deliveries.WithLabelValues(d.label(), strconv.Itoa(status)).Inc()
}

// methods are those the source's deliveries come with, for the header Allow.
func (d *delivery) methods() string {
	if d.source == nil {
		return http.MethodPost
	}
	return strings.Join(d.source.Methods(), ", ")
}

// label is the source's name in metrics and logs.
func (d *delivery) label() string {
	if d.source == nil {
		return unknownSource
	}
	return d.source.Name()
}

// recovered answers 500 after a panic, so that one delivery cannot end the process.
func (s *Server) recovered(w http.ResponseWriter, d *delivery) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	s.count(d, internal.status)
	s.metrics.refusals.WithLabelValues(d.label(), "panic").Inc()
	// The cause may quote what was being read.
	s.log.Error().Str("source", d.label()).Str("delivery_id", d.id).Str("stack", string(debug.Stack())).Msg("panic while receiving a delivery")
	writeProblem(w, internal, d.id)
}
