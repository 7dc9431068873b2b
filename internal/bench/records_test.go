package bench

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/schema"
)

// bodyText is a webhook of 1 KiB as Stripe sends it, shortened. The places of what
// differs between two are as wide as what stands there.
const bodyText = `{"id":"evt_00000000000000000000","object":"event","api_version":"2025-10-29.clover","created":1764417600,"data":{"object":{` +
	`"id":"pi_00000000000000000000","object":"payment_intent","amount":5000,"amount_capturable":0,"amount_details":{"tip":{}},"amount_received":5000,` +
	`"application":null,"automatic_payment_methods":{"allow_redirects":"always","enabled":true},"canceled_at":null,"capture_method":"automatic_async",` +
	`"confirmation_method":"automatic","created":1764417540,"currency":"usd","customer":"cus_R8h3","description":"Order 6735","invoice":null,` +
	`"last_payment_error":null,"latest_charge":"ch_3Pq7","livemode":true,"metadata":{"account_id":"acct_00000000","order_id":"6735"},` +
	`"next_action":null,"payment_method":"pm_1Pq7","payment_method_options":{"card":{"request_three_d_secure":"automatic"}},` +
	`"payment_method_types":["card","link"],"receipt_email":null,"status":"succeeded","transfer_group":null}},` +
	`"livemode":true,"pending_webhooks":1,"request":{"id":"req_8Hk2","idempotency_key":"00000000-0000-4000-8000-000000000000"},"type":"payment_intent.succeeded"}`

var (
	idAt      = strings.Index(bodyText, "evt_") + len("evt_")
	intentAt  = strings.Index(bodyText, `"pi_`) + len(`"pi_`)
	accountAt = strings.Index(bodyText, "acct_") + len("acct_")
)

const (
	idDigits      = 20
	accountDigits = 8
)

// body is one webhook that is made to be sent, again and again with other numbers.
type body []byte

func newBody() body { return body(bodyText) }

// set makes it event n, about an account.
func (b body) set(n, account uint64) {
	digits(b[idAt:idAt+idDigits], n)
	digits(b[intentAt:intentAt+idDigits], n)
	digits(b[accountAt:accountAt+accountDigits], account)
}

func digits(place []byte, n uint64) {
	for i := len(place) - 1; i >= 0; i-- {
		place[i] = byte('0' + n%10)
		n /= 10
	}
}

func eventID(n uint64) string { return fmt.Sprintf("evt_%0*d", idDigits, n) }

// spread says to which account event n belongs.
type spread func(n uint64) uint64

// uniform is over ten thousand accounts.
func uniform(n uint64) uint64 { return n * 7919 % 10_000 }

// hot gives one account nine events of ten.
func hot(n uint64) uint64 {
	if n%10 != 0 {
		return 0
	}
	return uniform(n)
}

// newRecord returns event n as ingest writes it, of the time given.
func newRecord(topic string, n uint64, accounts spread, at time.Time) *kgo.Record {
	text := newBody()
	text.set(n, accounts(n))
	mac := hmac.New(sha256.New, []byte(stripeSecret))
	signedAt := strconv.FormatInt(at.Unix(), 10)
	mac.Write([]byte(signedAt + "."))
	mac.Write(text)
	e := schema.Event{
		Source: "stripe", ID: eventID(n), Type: "payment_intent.succeeded", OccurredAt: time.Unix(1764417600, 0),
		ReceivedAt: at, DeliveryID: fmt.Sprintf("%032x", n), Scheme: "stripe-v1", KeyID: "main",
		SignatureHeaders: []schema.Header{{Key: "stripe-signature", Value: []byte("t=" + signedAt + ",v1=" + hex.EncodeToString(mac.Sum(nil)))}},
		ContentType:      "application/json", Body: text, BodySHA256: sha256.Sum256(text),
	}
	r := &kgo.Record{Topic: topic, Key: e.RecordKey(), Value: text, Timestamp: at}
	for _, h := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	return r
}

// backlogOf fills a new topic with n events, from number first on.
func (b *bench) backlogOf(kafka *testkit.KafkaCluster, first, n int, accounts spread) string {
	b.tb.Helper()
	topic := b.newTopic(kafka)
	b.produce(kafka, topic, first, n, accounts)
	return topic
}

// produce adds n events, from number first on, in batches as small as those of a busy
// receiver: large ones would be packed ten to one, which no topic of webhooks is.
func (b *bench) produce(kafka *testkit.KafkaCluster, topic string, first, n int, accounts spread) {
	b.tb.Helper()
	cl := b.client(kafka, kgo.MaxBufferedRecords(20_000), kgo.ProducerBatchMaxBytes(16<<10), kgo.ProducerLinger(5*time.Millisecond))
	defer cl.Close()
	for i := range n {
		cl.Produce(b.tb.Context(), newRecord(topic, uint64(first+i), accounts, time.Now()), func(_ *kgo.Record, err error) {
			if err != nil {
				b.tb.Errorf("produce: %v", err)
			}
		})
	}
	if err := cl.Flush(b.tb.Context()); err != nil {
		b.tb.Fatal(err)
	}
}

// isBody is what a floor that trusts its input checks.
func isBody(text []byte) bool { return bytes.HasPrefix(text, []byte(`{"id":"evt_`)) }

// keyOf is event n as Postgres knows it.
func keyOf(n uint64) [16]byte { return schema.KeyOf("stripe", eventID(n)) }
