package chaos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookledger/internal/e2e/checker"
)

// Sources of the deliveries.
const (
	sourceStripe = "stripe"
	sourceAcme   = "acme"
)

// delivery is a webhook to be made: its exact bytes, and what the checker must know.
type delivery struct {
	tell checker.Delivery
	body []byte
	// skew is how far the clock of who signs is off.
	skew time.Duration
	// forged deliveries are signed with another secret.
	forged bool
}

// author writes deliveries from a seed.
type author struct {
	rnd  *rand.Rand
	seed uint64
	n    int
}

// accounts are shared by all sources and by payments.
const accounts = 10

func account(i int) string { return fmt.Sprintf("acct-%02d", i) }

// workload makes the deliveries of a plan, in order: money of two sources, in and out,
// repeats, repeats with another envelope or other money, two events of one movement,
// states, events that mean nothing, poison, forgeries.
func workload(p *Plan) []*delivery {
	a := &author{rnd: stream(p.Seed, streamEvents), seed: p.Seed}
	var all []*delivery
	for len(all) < p.Deliveries {
		for _, d := range a.event() {
			all = append(all, d)
			for range []int{0, 0, 0, 1, 1, 2}[a.rnd.IntN(6)] {
				all = append(all, d)
			}
		}
	}
	order := stream(p.Seed, streamOrder)
	order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:p.Deliveries]
}

// event makes one event, or two that belong together.
func (a *author) event() []*delivery {
	a.n++
	name := fmt.Sprintf("%d-%04d", a.seed, a.n)
	who, currency, amount := account(a.rnd.IntN(accounts)), []string{"EUR", "USD"}[a.rnd.IntN(2)], 1+a.rnd.Int64N(99_999)
	switch kind := a.rnd.IntN(100); {
	case kind < 28:
		return []*delivery{a.stripe(name, who, currency, amount, 0)}
	case kind < 46:
		return []*delivery{a.payment("payment.succeeded", name, name, who, currency, amount)}
	case kind < 66:
		return []*delivery{a.payout(name, who, currency, amount)}
	case kind < 74: // two events tell of one movement
		return []*delivery{
			a.payment("payment.succeeded", name, name, who, currency, amount),
			a.payment("payment.captured", name+"b", name, who, currency, amount),
		}
	case kind < 79: // one ID, two amounts: whichever comes first stands
		return []*delivery{
			a.payment("payment.succeeded", name, name, who, currency, amount),
			a.payment("payment.succeeded", name, name, who, currency, amount+1),
		}
	case kind < 84: // one ID and meaning, two envelopes
		return []*delivery{
			a.payment("payment.succeeded", name, name, who, currency, amount),
			a.payment("payment.succeeded", name, name, who, currency, amount),
		}
	case kind < 91:
		return []*delivery{a.state(name, a.rnd.IntN(12))}
	case kind < 95:
		return []*delivery{a.acme(name, fmt.Sprintf(`"type":"customer.updated","user_id":%q`, who), checker.Delivery{Account: who})}
	case kind < 96:
		d := a.payment("payment.succeeded", name, name, who, currency, amount)
		d.body = []byte(strings.Replace(string(d.body), fmt.Sprintf(`"amount":%d`, amount), `"amount":"a lot"`, 1))
		d.tell.Expect = checker.ExpectQuarantine
		return []*delivery{a.sealed(d)}
	default:
		d := a.stripe(name, who, currency, amount, 0)
		d.forged, d.tell.Expect = true, checker.ExpectRefused
		return []*delivery{d}
	}
}

// clockSteps are deliveries of senders whose clocks were stepped: within the tolerance
// they count, beyond it they are refused.
func (a *author) clockSteps() []*delivery {
	var all []*delivery
	for i, skew := range []time.Duration{-2 * time.Minute, 2 * time.Minute, -10 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
		d := a.stripe(fmt.Sprintf("%d-clock-%d", a.seed, i), account(i), "EUR", 7, skew)
		if skew.Abs() > 5*time.Minute {
			d.tell.Expect = checker.ExpectRefused
		}
		all = append(all, d)
	}
	return all
}

// stripe credits what was received, which is not what was asked for.
func (a *author) stripe(name, who, currency string, amount int64, skew time.Duration) *delivery {
	body := fmt.Sprintf(`{
  "id": "evt_%s", "object": "event", "type": "payment_intent.succeeded", "created": %d, "livemode": true,
  "data": {"object": {"id": "pi_%[1]s", "amount": %[3]d, "amount_received": %[4]d, "currency": %[5]q,
    "description": %[6]s, "metadata": {"account_id": %[7]q}}}
}`, name, time.Now().Add(skew).Unix(), amount+5, amount, strings.ToLower(currency), a.prose(), who)
	return a.sealed(&delivery{body: []byte(body), skew: skew, tell: checker.Delivery{
		Source: sourceStripe, EventID: "evt_" + name, Account: who, Amount: amount, Currency: currency,
	}})
}

// payment credits; captured and succeeded of one payment are one movement.
func (a *author) payment(kind, name, movement, who, currency string, amount int64) *delivery {
	return a.acme(name, fmt.Sprintf(`"type":%q,"payment_id":"p-%s","user_id":%q,"amount":%d,"currency":%q`, kind, movement, who, amount, currency),
		checker.Delivery{Account: who, Amount: amount, Currency: currency, Movement: "p-" + movement})
}

// payout debits an amount that is written with decimals.
func (a *author) payout(name, who, currency string, amount int64) *delivery {
	return a.acme(name, fmt.Sprintf(`"type":"payout.paid","payout_id":"po-%s","user_id":%q,"amount":"%d.%02d","currency":%q`,
		name, who, amount/100, amount%100, strings.ToLower(currency)),
		checker.Delivery{Account: who, Amount: -amount, Currency: currency})
}

// ranks orders states that occurred in one second.
var ranks = map[string]int64{"pending": 10, "authorized": 20, "paid": 30, "refunded": 40}

// state tells the state of one of a few objects at some moment, of which several events
// of any order tell.
func (a *author) state(name string, object int) *delivery {
	status := pick(a.rnd, []string{"pending", "authorized", "paid", "refunded"})
	s := checker.State{Object: fmt.Sprintf("order-%d", object), Status: status, Rank: ranks[status], At: time.Now().Unix() + a.rnd.Int64N(5)}
	return a.acme(name, fmt.Sprintf(`"type":"order.state","order":%q,"status":%q,"created_at":%q`, s.Object, status, time.Unix(s.At, 0).UTC().Format(time.RFC3339)),
		checker.Delivery{State: s})
}

func (a *author) acme(name, fields string, tell checker.Delivery) *delivery {
	if !strings.Contains(fields, "created_at") {
		fields += fmt.Sprintf(`,"created_at":%q`, time.Now().UTC().Format(time.RFC3339))
	}
	tell.Source, tell.EventID = sourceAcme, "acme/"+name
	return a.sealed(&delivery{tell: tell, body: []byte(fmt.Sprintf(`{"note":%s,%s, "id":%q}`+"\n", a.prose(), fields, tell.EventID))})
}

func (a *author) sealed(d *delivery) *delivery {
	sum := sha256.Sum256(d.body)
	d.tell.Seed, d.tell.SHA256 = a.seed, hex.EncodeToString(sum[:])
	return d
}

// prose is a JSON string that a round trip through a parser would not leave alone.
func (a *author) prose() string {
	words := []string{`naïve`, `na\u00efve`, `a\/b`, `<&>`, `☃`, `\ud83d\ude00`, `  `, `1.0`, "\u2028", `\"`, `日本`}
	var b strings.Builder
	for range 2 + a.rnd.IntN(6) {
		b.WriteString(words[a.rnd.IntN(len(words))])
	}
	return `"` + b.String() + `"`
}

// sign makes the headers of a delivery, by hand and from the providers' documentation.
func (d *delivery) sign(secret string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if d.forged {
		secret += "x"
	}
	mac := hmac.New(sha256.New, []byte(secret))
	if d.tell.Source == sourceStripe {
		t := strconv.FormatInt(time.Now().Add(d.skew).Unix(), 10)
		mac.Write([]byte(t + "."))
		mac.Write(d.body)
		h.Set("Stripe-Signature", "t="+t+",v1="+hex.EncodeToString(mac.Sum(nil)))
		return h
	}
	mac.Write(d.body)
	h.Set("X-Acme-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return h
}
