package payments

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem is an answer other than success. Name is stable: it is the last part of the
// type in application/problem+json (RFC 9457). See the table in doc.go.
type problem struct {
	name   string
	status int
	title  string
	// retryAfter is in seconds; 0 for none.
	retryAfter int
}

const problemPrefix = "urn:hookledger:problem:"

const problemType = "application/problem+json"

// Every answer other than success.
var (
	badKey            = problem{name: "bad-idempotency-key", status: 400, title: "The Idempotency-Key is missing or malformed"}
	badBody           = problem{name: "bad-body", status: 400, title: "The body is not a valid payment"}
	unauthorized      = problem{name: "unauthorized", status: 401, title: "The bearer token is missing or not known"}
	insufficientFunds = problem{name: "insufficient-funds", status: 402, title: "The account does not hold enough"}
	forbidden         = problem{name: "forbidden", status: 403, title: "The token has no authority over this account"}
	notFound          = problem{name: "not-found", status: 404, title: "There is no such thing"}
	badMethod         = problem{name: "method-not-allowed", status: 405, title: "The method is not allowed here"}
	inProgress        = problem{name: "in-progress", status: 409, title: "A request with this key is being processed; send it again later", retryAfter: 1}
	bodyTooLarge      = problem{name: "body-too-large", status: 413, title: "The body is too large"}
	badMediaType      = problem{name: "unsupported-media-type", status: 415, title: "The content type is not application/json, or the body is compressed"}
	keyReused         = problem{name: "key-reused", status: 422, title: "The Idempotency-Key was used with another request"}
	balanceRange      = problem{name: "balance-range", status: 422, title: "The balance of the receiving account would be out of range"}
	rateLimited       = problem{name: "rate-limited", status: 429, title: "Too many requests"}
	internalFault     = problem{name: "internal", status: 500, title: "Something is wrong here", retryAfter: 5}
	unknownOutcome    = problem{name: "unknown-outcome", status: 503, title: "The payment may or may not have happened; send it again with the same key", retryAfter: 5}
	unavailable       = problem{name: "unavailable", status: 503, title: "Payments cannot be taken at the moment; send it again with the same key", retryAfter: 5}
	overloaded        = problem{name: "overloaded", status: 503, title: "There is no room for the payment at the moment; send it again with the same key", retryAfter: 1}
)

// bytes returns the body of the answer. detail tells the client what to mend, instance
// lets operators find the log line.
func (p problem) bytes(detail, requestID string) []byte {
	body, err := json.Marshal(struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Status   int    `json:"status"`
		Detail   string `json:"detail,omitempty"`
		Instance string `json:"instance"`
	}{problemPrefix + p.name, p.title, p.status, detail, "urn:hookledger:request:" + requestID})
	if err != nil {
		return nil
	}
	return body
}

// setRetryAfter says when to come back: whole seconds, at least one.
func setRetryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10))
}
