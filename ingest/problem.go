package ingest

import (
	"encoding/json"
	"net/http"
	"strconv"
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

// Every answer other than success. bad-signature is one for all that can be wrong with
// a signature: who probes must not learn whether a key is known.
var (
	badSignature    = problem{name: "bad-signature", status: 400, title: "The signature is missing or does not hold"}
	staleTimestamp  = problem{name: "stale-timestamp", status: 400, title: "The delivery was signed too long ago"}
	futureTimestamp = problem{name: "future-timestamp", status: 400, title: "The delivery was signed in the future"}
	badBody         = problem{name: "bad-body", status: 400, title: "The body is not valid for its content type"}
	badEvent        = problem{name: "bad-event", status: 400, title: "The body holds no event with a usable ID and type"}
	unreadBody      = problem{name: "unread-body", status: 400, title: "The body ended early"}
	notFound        = problem{name: "not-found", status: 404, title: "There is no such source"}
	badMethod       = problem{name: "method-not-allowed", status: 405, title: "Deliveries are posted"}
	bodyTooLarge    = problem{name: "body-too-large", status: 413, title: "The body is too large"}
	badEncoding     = problem{name: "unsupported-encoding", status: 415, title: "The body must not be compressed"}
	badMediaType    = problem{name: "unsupported-media-type", status: 415, title: "The content type is not supported"}
	internal        = problem{name: "internal", status: 500, title: "Something is wrong here", retryAfter: 5}
	notAcknowledged = problem{name: "not-acknowledged", status: 503, title: "The delivery may or may not have been stored; send it again", retryAfter: 5}
	overloaded      = problem{name: "overloaded", status: 503, title: "There is no room for the delivery at the moment; send it again", retryAfter: 1}
	keyUnavailable  = problem{name: "key-unavailable", status: 503, title: "The signature cannot be checked at the moment; send it again", retryAfter: 30}
	unavailable     = problem{name: "unavailable", status: 503, title: "Deliveries cannot be stored at the moment; send it again", retryAfter: 5}
)

// writeProblem answers with p. deliveryID lets operators find the log line.
func writeProblem(w http.ResponseWriter, p problem, deliveryID string) {
	body, err := json.Marshal(struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Status   int    `json:"status"`
		Instance string `json:"instance"`
	}{problemPrefix + p.name, p.title, p.status, "urn:hookledger:delivery:" + deliveryID})
	if err != nil {
		body = nil
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // who sent it is gone, or hears
}
