package ingest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/ingest/signature"
	"hookledger/internal/testkit"
	"hookledger/schema/provider"
)

// goCardlessItem is an event of full size, metadata at GoCardless's limit of three keys.
func goCardlessItem(n int) string {
	return fmt.Sprintf(`{"id":"EV%04d","created_at":"2025-11-29T12:00:00.000Z","resource_type":"payments","action":"paid_out",`+
		`"links":{"payment":"PM%04d","payout":"PO123","parent_event":"EV0001","organisation":"OR123"},`+
		`"details":{"origin":"gocardless","cause":"payment_paid_out","description":"The payment has been paid out.","scheme":"sepa_core","reason_code":"","bank_account_id":null},`+
		`"metadata":{"a":"1","b":"2","c":"3"},"resource_metadata":{"account_id":"acct_%d","order":"7","x":"y"}}`, n, n, n)
}

func goCardlessBatch(items ...string) string {
	return `{"events":[` + strings.Join(items, ",") + `],"meta":{"webhook_id":"WB123"}}`
}

// batchOf returns a server with a source of GoCardless, and how to post to it.
func batchOf(t *testing.T) (*bundle, func(body string) answer) {
	t.Helper()
	b := setup(t, options{only: []provider.Config{doorOf("gc", "gocardless", canarySecret, nil)}})
	return b, func(body string) answer {
		return b.do(b.signedMessage("gc", canarySecret, signature.Message{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}))
	}
}

// stored returns how often each item stands in the topic, and checks their bytes.
func (b *bundle) stored(items []string) map[string]int {
	b.t.Helper()
	bytesOf := map[string]string{}
	for i, item := range items {
		bytesOf[fmt.Sprintf("EV%04d", i)] = item
	}
	count := map[string]int{}
	for _, r := range b.records() {
		ev := decode(b.t, r)
		count[ev.ID]++
		if string(ev.Body) != bytesOf[ev.ID] || string(r.Key) != ev.ID {
			b.t.Errorf("%s: got %s, want its own bytes", ev.ID, ev.Body)
		}
	}
	return count
}

// The largest delivery there is: 250 events, each a record of its own; any part of it that
// comes again brings no other ID.
func TestBatch_Of250IsStoredItemByItem(t *testing.T) {
	t.Parallel()
	b, post := batchOf(t)
	items := make([]string, 250)
	for i := range items {
		items[i] = goCardlessItem(i)
	}
	for _, body := range []string{
		goCardlessBatch(items...), goCardlessBatch(items...), goCardlessBatch(items[100:175]...), goCardlessBatch(items[249]), goCardlessBatch(),
	} {
		if a := post(body); a.code != http.StatusNoContent || a.body != "" {
			t.Fatalf("got %d %s, want 204", a.code, a.body)
		}
	}
	count := b.stored(items)
	if len(count) != len(items) {
		t.Errorf("got %d IDs, want %d", len(count), len(items))
	}
	if count["EV0000"] != 2 || count["EV0100"] != 3 || count["EV0249"] != 3 {
		t.Errorf("EV0000 %d, EV0100 %d and EV0249 %d times, want 2, 3 and 3", count["EV0000"], count["EV0100"], count["EV0249"])
	}
}

// One item that cannot be kept is never answered with success, and does not hold back the
// others: they are stored, whatever the answer.
func TestBatch_UnusableItemIsRefusedAndHoldsBackNobody(t *testing.T) {
	t.Parallel()
	b, post := batchOf(t)
	items := make([]string, 250)
	for i := range items {
		items[i] = goCardlessItem(i)
	}
	broken := append([]string{}, items...)
	for name, item := range map[string]string{
		"no ID": `{"resource_type":"payments","action":"paid_out"}`, "number as ID": `{"id":17,"resource_type":"payments","action":"paid_out"}`,
		"long ID": `{"id":"` + strings.Repeat("x", 256) + `","resource_type":"payments","action":"paid_out"}`, "no object": `"EV0017"`,
	} {
		broken[17] = item
		for range 2 {
			a := post(goCardlessBatch(broken...))
			if p := problemOf(t, a); a.code != 400 || p != "bad-event" && p != "bad-body" {
				t.Errorf("%s: got %d %s, want 400", name, a.code, p)
			}
		}
	}
	count := b.stored(items)
	if len(count) != 249 || count["EV0017"] != 0 || count["EV0018"] != 8 {
		t.Errorf("got %d IDs, EV0017 %d and EV0018 %d times, want 249 without EV0017", len(count), count["EV0017"], count["EV0018"])
	}
	if !strings.Contains(b.logs.String(), "1 of 250 items are unusable: item 17 of events: ") {
		t.Errorf("the log does not say which item: %s", b.logs.String())
	}
	// Mended by the provider, all of it is answered with success.
	if a := post(goCardlessBatch(items...)); a.code != http.StatusNoContent {
		t.Errorf("got %d %s", a.code, a.body)
	}
	if count := b.stored(items); len(count) != 250 {
		t.Errorf("got %d IDs, want 250", len(count))
	}
}

// Of records in three partitions one partition takes none: the answer is 503, with or
// without an unusable item, and the repeat stores what is missing under the same IDs.
func TestBatch_OneRecordThatIsNotStoredIs503(t *testing.T) {
	t.Parallel()
	b, post := batchOf(t)
	items := make([]string, 250)
	for i := range items {
		items[i] = goCardlessItem(i)
	}
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{2}, Err: kerr.NotEnoughReplicas, Count: -1})
	for _, body := range []string{goCardlessBatch(items...), goCardlessBatch(append([]string{`{"id":7}`}, items...)...)} {
		if a := post(body); a.code != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 503", a.code, a.body)
		}
	}
	fault.Remove()
	testkit.Eventually(t, time.Minute, func() error {
		if a := post(goCardlessBatch(items...)); a.code != http.StatusNoContent {
			return fmt.Errorf("got %d %s", a.code, a.body)
		}
		return nil
	})
	if count := b.stored(items); len(count) != len(items) {
		t.Errorf("got %d IDs, want %d", len(count), len(items))
	}
}
