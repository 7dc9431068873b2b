package ingest

import (
	"net/http"
	"testing"
	"time"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

func TestWithin_LeavesTimeForTheAnswer(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := within(d.Deadline, 0); d.Deadline > 0 && (got >= d.Deadline || got < d.Deadline/2) {
			t.Errorf("%s: got %s of %s", name, got, d.Deadline)
		}
	}
	for _, tc := range []struct{ deadline, passed, want time.Duration }{
		{0, time.Hour, 1<<63 - 1}, {5 * time.Second, 0, 4500 * time.Millisecond}, {5 * time.Second, 2 * time.Second, 2500 * time.Millisecond},
		{5 * time.Second, 5 * time.Second, shortestWait}, {5 * time.Second, time.Hour, shortestWait},
	} {
		if got := within(tc.deadline, tc.passed); got != tc.want {
			t.Errorf("deadline %s, %s passed: got %s, want %s", tc.deadline, tc.passed, got, tc.want)
		}
	}
}

// A broker that takes its time longer than the provider waits: who waits five seconds is
// told 503 before that, whatever the ack timeout is, and who waits longer is not.
func TestReceive_AnswersBeforeTheProviderStopsWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t, options{
		only: []provider.Config{doorOf("paddle", "paddle", canarySecret, nil), doorOf("mollie", "mollie", canarySecret, nil)},
	})
	post := func(source, body string) answer {
		m := signature.Message{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
		return b.do(b.signedMessage(source, canarySecret, m))
	}
	arrived, release := b.hold()
	patient := make(chan answer, 1)
	go func() { patient <- post("mollie", `{"id":"event_1","type":"payment.paid"}`) }()
	<-arrived
	a := post("paddle", `{"event_id":"evt_1","event_type":"transaction.paid"}`)
	if p := problemOf(t, a); a.code != 503 || p != "not-acknowledged" || a.took > 50*time.Second {
		t.Errorf("got %d %s after %s, want 503 before the ack timeout", a.code, p, a.took)
	}
	release()
	if a := <-patient; a.code != 200 && a.code != 503 {
		t.Errorf("got %d %s", a.code, a.body)
	}
}
