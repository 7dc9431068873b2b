package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"hookledger/internal/e2e/checker"
)

const (
	sourceStripe = "stripe"
	sourceAcme   = "acme"
)

// event is a webhook of the workload: its exact bytes, and what they must do.
type event struct {
	source, id string
	body       []byte
	account    string
	amount     int64 // signed minor units; 0 moves nothing
	currency   string
	expect     string
}

// Streams of random numbers of one seed, so that changing one does not shift another.
const (
	streamEvents = iota + 1
	streamOrder
)

// workload makes n events from a seed: stripe and acme, credits and debits, EUR and
// USD, a few that move no money, over a handful of accounts that both sources share.
func workload(seed uint64, n int) []event {
	rnd := rand.New(rand.NewPCG(seed, streamEvents))
	all := make([]event, n)
	for i := range all {
		account := fmt.Sprintf("acct-%02d", rnd.IntN(12))
		currency := []string{"EUR", "USD"}[rnd.IntN(2)]
		amount := 1 + rnd.Int64N(99_999)
		name := fmt.Sprintf("%d_%04d", seed, i)
		switch kind := rnd.IntN(20); {
		case kind == 0:
			all[i] = acmeNotice(rnd, name, account)
		case kind < 9:
			all[i] = stripePayment(rnd, name, account, amount, currency)
		case kind < 14:
			all[i] = acmePayment(rnd, name, account, amount, currency)
		default:
			all[i] = acmePayout(rnd, name, account, amount, currency)
		}
	}
	return all
}

// stripePayment credits what was received, which is not what was asked for.
func stripePayment(rnd *rand.Rand, name, account string, amount int64, currency string) event {
	body := fmt.Sprintf(`{
  "id": "evt_%s", "object": "event", "type": "payment_intent.succeeded", "created": %d, "livemode": %t,
  "data": {"object": {"id": "pi_%[1]s", "amount": %[4]d, "amount_received": %[5]d, "currency": %[6]q,
    "description": %[7]s, "metadata": {"account_id": %[8]q}}}
}`, name, time.Now().Unix(), rnd.IntN(2) == 0, amount+5, amount, strings.ToLower(currency), prose(rnd), account)
	return event{source: sourceStripe, id: "evt_" + name, body: []byte(body), account: account, amount: amount, currency: currency}
}

func acmePayment(rnd *rand.Rand, name, account string, amount int64, currency string) event {
	body := fmt.Sprintf(`{"note":%s,"amount":%d,"type":"payment.succeeded","currency":%q,"payment_id":"p-%s","user_id":%q,"created_at":%q,"id":"acme/%[4]s"}`+"\n",
		prose(rnd), amount, currency, name, account, time.Now().UTC().Format(time.RFC3339))
	return event{source: sourceAcme, id: "acme/" + name, body: []byte(body), account: account, amount: amount, currency: currency}
}

// acmePayout debits an amount that is written with decimals.
func acmePayout(rnd *rand.Rand, name, account string, amount int64, currency string) event {
	literal := fmt.Sprintf("%d.%02d", amount/100, amount%100)
	if rnd.IntN(2) == 0 {
		literal = `"` + literal + `"`
	}
	body := fmt.Sprintf("\t{ \"id\" : \"acme/%s\",\r\n \"type\":\"payout.paid\", \"payout_id\":\"po-%[1]s\", \"amount\":%s, \"currency\":%q, \"user_id\":%q, \"note\":%s }",
		name, literal, strings.ToLower(currency), account, prose(rnd))
	return event{source: sourceAcme, id: "acme/" + name, body: []byte(body), account: account, amount: -amount, currency: currency}
}

// acmeNotice is an event of a type that means nothing in money.
func acmeNotice(rnd *rand.Rand, name, account string) event {
	body := fmt.Sprintf(`{"id":"acme/%s","type":"customer.updated","user_id":%q,"note":%s}`, name, account, prose(rnd))
	return event{source: sourceAcme, id: "acme/" + name, body: []byte(body), account: account}
}

// prose is a JSON string that a round trip through a parser would not leave alone.
func prose(rnd *rand.Rand) string {
	words := []string{`naïve`, `na\u00efve`, `a\/b`, `<&>`, `☃`, `\ud83d\ude00`, `  `, `1.0`, "\u2028", `\"`, `日本`}
	var b strings.Builder
	for range 2 + rnd.IntN(6) {
		b.WriteString(words[rnd.IntN(len(words))])
	}
	return `"` + b.String() + `"`
}

// delivery begins a line of the history.
func (e *event) delivery(seed uint64, i int) checker.Delivery {
	sum := sha256.Sum256(e.body)
	return checker.Delivery{
		Seed: seed, I: i, Source: e.source, EventID: e.id, Account: e.account, Amount: e.amount, Currency: e.currency,
		SHA256: hex.EncodeToString(sum[:]), Expect: e.expect,
	}
}
