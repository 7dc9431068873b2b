package ingest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var update = flag.Bool("update", false, "write the golden files")

// TestReceive_RecordIsTheContract pins the whole record of a delivery: key, value and
// headers. What differs from run to run is replaced: the ID of the delivery, the time of
// receiving and signatures. (The clock cannot be a fixed one: kgo gives up a record by
// the age of its timestamp.)
func TestReceive_RecordIsTheContract(t *testing.T) {
	t.Parallel()
	at := time.Now().UTC()
	b := setup(t, options{now: func() time.Time { return at }})
	stripe := b.signedAt("stripe", "", `{"id":"evt_1","object":"event","created":1764417590,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1"}},"note":"é \u00e9 \/"}`, at.Add(-3*time.Second))
	stripe.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	batch := b.signed("batch", "", `{"events": [ {"id":"b1", "type":"payment.succeeded"}, {"id":"b2"} ]}`)
	standard := b.signedAt("standard", "msg_1", `{"type":"payment.succeeded","timestamp":"2026-11-29T13:00:00.5+01:00"}`, at)
	var out bytes.Buffer
	if a := b.do(stripe); a.code != 200 {
		t.Fatalf("got %d %s", a.code, a.body)
	}
	if a := b.do(standard); a.code != 200 {
		t.Fatalf("got %d %s", a.code, a.body)
	}
	if a := b.do(batch); a.code != 200 {
		t.Fatalf("got %d %s", a.code, a.body)
	}
	records := map[string]*kgo.Record{}
	ids := map[string]string{}
	for _, r := range b.records() {
		ev := decode(t, r)
		records[ev.ID] = r
		ids[ev.ID] = ev.DeliveryID
		if len(ev.DeliveryID) != 32 {
			t.Errorf("delivery ID %q, want 32 hexadecimal digits", ev.DeliveryID)
		}
	}
	if ids["b1"] != ids["b2"] || ids["b1"] == ids["evt_1"] {
		t.Errorf("got delivery IDs %v, want one per delivery", ids)
	}
	for _, id := range []string{"evt_1", "msg_1", "b1", "b2"} {
		r := records[id]
		if r == nil {
			t.Fatalf("no record of %s", id)
		}
		if !r.Timestamp.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("record %s: got timestamp %s, want received_at %s", id, r.Timestamp, at)
		}
		changing := strings.NewReplacer(ids[id], "<delivery>", at.Format("2006-01-02T15:04:05.000000000Z07:00"), "<received>",
			stripe.Header.Get("Stripe-Signature"), "<signature>", standard.Header.Get("Webhook-Signature"), "<signature>",
			standard.Header.Get("Webhook-Timestamp"), "<signed>", batch.Header.Get("X-Signature"), "<signature>")
		fmt.Fprintf(&out, "key: %s\nvalue: %s\n", r.Key, r.Value)
		for _, h := range r.Headers {
			fmt.Fprintf(&out, "%s: %s\n", h.Key, changing.Replace(string(h.Value)))
		}
		out.WriteString("\n")
	}
	const golden = "testdata/records.golden"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the record changed; it is a contract. Got:\n%s\nwant:\n%s", out.Bytes(), want)
	}
}

func TestTraceParent_PassesOnlyWhatIsValid(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for value, want := range map[string]string{
		good:                      good,
		"":                        "",
		strings.ToUpper(good):     "",
		good + "-00":              "",
		"ff" + good[2:]:           "",
		"cc" + good[2:] + "-what": "",
		"cc" + good[2:] + "-00":   "cc" + good[2:] + "-00",
		good[:len(good)-1]:        "",
		"00-" + strings.Repeat("0", 32) + good[35:]: "",
		good[:36] + strings.Repeat("0", 16) + "-01": "",
		good + "\n": "",
	} {
		h := map[string][]string{}
		if value != "" {
			h["Traceparent"] = []string{value}
		}
		if got := traceParent(h); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
	if got := traceParent(map[string][]string{"Traceparent": {good, good}}); got != "" {
		t.Errorf("two headers: got %q, want none", got)
	}
}
