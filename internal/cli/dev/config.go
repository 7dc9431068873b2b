package dev

import (
	"fmt"
	"strconv"
	"strings"

	"hookledger/internal/config"
)

// generators makes the secret of each development source.
var generators = []struct {
	source   string
	generate func() string
}{
	{"stripe", stripeSecret},
	{"standard", standardSecret},
	{"acme", randomHex},
}

// paymentsToken is the name of the file with the token of the client dev.
const paymentsToken = "payments-token"

// stack is where the parts of a running dev are reached.
type stack struct {
	brokers  []string
	database string
	listen   string
	payments string
	admin    string
}

// writeConfig writes the file with which every command works beside this dev, and loads
// it. Of the environment only what is about logs counts: a broker or a database set for
// something else must not be mixed with ours.
func (f folder) writeConfig(s stack, partitions int, environ []string) (*config.Loaded, error) {
	for _, g := range generators {
		if err := f.keepSecret(g.source, g.generate); err != nil {
			return nil, err
		}
	}
	if err := f.keepSecret(paymentsToken, randomHex); err != nil {
		return nil, err
	}
	text := f.yaml(s, partitions)
	if err := writePrivate(f.config(), text); err != nil {
		return nil, err
	}
	var logs []string
	for _, e := range environ {
		if strings.HasPrefix(e, config.EnvPrefix+"LOG_") {
			logs = append(logs, e)
		}
	}
	return config.Parse(f.config(), []byte(text), logs)
}

func (f folder) yaml(s stack, partitions int) string {
	return fmt.Sprintf(`# Written by hookledger dev at every start: changes here are lost.
kafka:
  brokers: [%s]
  partitions: %d
  replication: 1
  durability: single
database:
  url: %s
ingest:
  listen: %s
  admin: %s
payments:
  listen: %s
  admin: %s
  durability: single
  tokens: [{ client: dev, id: dev, file: %s, from: ["*"] }]
sources:
  - name: stripe
    provider: stripe
    secrets: [{ id: dev, file: %s }]
    account: data.object.metadata.account_id

  - name: standard
    provider: standardwebhooks
    secrets: [{ id: dev, file: %s }]
    postings:
      - { type: payment.succeeded, account: data.account_id, amount: data.amount, unit: minor, currency: data.currency, direction: credit, movement: data.payment_id }
      - { type: payment.refunded, account: data.account_id, amount: data.amount, unit: minor, currency: data.currency, direction: debit, movement: data.refund_id }

  - name: acme
    provider: generic
    signature: { header: X-Signature, algorithm: hmac-sha256, encoding: hex }
    secrets: [{ id: dev, file: %s }]
    event: { id: id, type: type, time: created_at }
    postings:
      - { type: payment.succeeded, account: user_id, amount: amount, unit: minor, currency: currency, direction: credit, movement: payment_id }
      - { type: payment.refunded, account: user_id, amount: amount, unit: minor, currency: currency, direction: debit, movement: refund_id }
`, quoteList(s.brokers), partitions, strconv.Quote(s.database), strconv.Quote(s.listen), strconv.Quote(s.admin),
		strconv.Quote(s.payments), strconv.Quote(s.admin), strconv.Quote(f.secret(paymentsToken)),
		strconv.Quote(f.secret("stripe")), strconv.Quote(f.secret("standard")), strconv.Quote(f.secret("acme")))
}

func quoteList(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = strconv.Quote(s)
	}
	return strings.Join(quoted, ", ")
}
