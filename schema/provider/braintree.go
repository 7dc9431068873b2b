package provider

import (
	"time"

	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// Braintree signs one field of a form, which is XML in base64. It is read as an object:
// notification.kind, notification.subject.transaction.amount. There is no ID; kind, time
// and subject together are one. Before it sends anything, Braintree asks by GET whether
// the address is ours. Sources: node and Python libraries, 2026-11.
//
// A transaction that settled, and the latest of a subscription that was charged, move money by
// their own ID, so told of twice they are one movement: a sale credits, a credit (refund)
// debits. Not all kinds of payment have such notifications, refunds of cards among them. A
// chargeback debits from its opening and is given back when it is won; retrievals and
// pre-arbitrations move nothing. Disputes do not name the customer and go to quarantine, unless
// the account is the order, and in the configuration as such for all. refund_failed is status alone: whether the refund was told of
// before is not known. From memory, not verified: that transactions[0] is the latest, and the
// fields of disputes.
var _ = register(source.Definition{
	Name: "braintree",
	Signature: source.Signature{
		Scheme: source.SchemeBraintree,
		// bt_payload is the event, and all of it is signed.
		BodyAuthenticated: true,
	},
	Knobs: []string{"public_key"},
	Tune: func(_ *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.PublicKey == "" {
			p.Add("signature.public_key", "is missing; it is the public key that belongs to the private key in secrets")
		}
	},
	Methods:  []string{http.MethodPost, http.MethodGet},
	Deadline: 30 * time.Second, // From memory.
	Event: source.EventConfig{
		Body: source.BodyForm,
		Type: at("notification.kind"),
		Time: at("notification.timestamp"), TimeFormat: source.FormatRFC3339,
	},
	Read:  readBraintree,
	Write: writeBraintree,
	ID:    braintreeID,
	AccountNote: []string{
		"Disputes do not name the customer: quarantine, unless the account is the order, for all:",
		"account: [notification.subject.transaction.order-id, notification.subject.dispute.transaction.order-id]",
	},
	Account:  []string{"notification.subject.transaction.customer.id", "notification.subject.subscription.transactions[0].customer.id"},
	Live:     testsApart,
	Required: map[string]string{"public_key": "PUBLIC-KEY"},
	Postings: []source.PostingConfig{{
		Key: "transaction", Type: []string{"transaction_settled"},
		Amount: "notification.subject.transaction.amount", Unit: source.UnitMajor, Currency: at("notification.subject.transaction.currency-iso-code"),
		Direction: source.Direction{Path: "notification.subject.transaction.type", Credit: []string{"sale"}, Debit: []string{"credit"}},
		Movement:  "notification.subject.transaction.id",
	}, {
		Key: "transaction", Type: []string{"subscription_charged_successfully"},
		Amount: "notification.subject.subscription.transactions[0].amount", Unit: source.UnitMajor, Currency: at("notification.subject.subscription.transactions[0].currency-iso-code"),
		Direction: source.Direction{Path: "notification.subject.subscription.transactions[0].type", Credit: []string{"sale"}, Debit: []string{"credit"}},
		Movement:  "notification.subject.subscription.transactions[0].id",
	}, {
		// Every later event makes the debit too, so that order and gaps do not matter.
		Key: "dispute", Type: []string{"dispute_opened", "dispute_lost", "dispute_accepted", "dispute_expired", "dispute_won"},
		When:   []source.ConditionConfig{is("notification.subject.dispute.kind", "chargeback")},
		Amount: "notification.subject.dispute.amount", Unit: source.UnitMajor, Currency: at("notification.subject.dispute.currency-iso-code"), Direction: debits,
		Movement: "notification.subject.dispute.id",
	}, {
		Type:   []string{"dispute_won"},
		When:   []source.ConditionConfig{is("notification.subject.dispute.kind", "chargeback")},
		Amount: "notification.subject.dispute.amount", Unit: source.UnitMajor, Currency: at("notification.subject.dispute.currency-iso-code"), Direction: credits,
		Movement: "notification.subject.dispute.id",
	}},
	Statuses: []source.StatusConfig{
		{Type: []string{"dispute_opened", "dispute_under_review", "dispute_disputed", "dispute_auto_accepted"}, Object: "notification.subject.dispute.id", Status: at("notification.subject.dispute.status")},
		{Type: []string{"transaction_settlement_declined", "transaction_disbursed", "refund_failed"}, Object: "notification.subject.transaction.id", Status: at("notification.kind")},
		{Type: []string{"subscription_charged_unsuccessfully", "subscription_canceled", "subscription_expired", "subscription_went_past_due"}, Object: "notification.subject.subscription.id", Status: at("notification.subject.subscription.status")},
	},
	Ignored: []source.Note{
		{Types: []string{"disbursement", "disbursement_exception"}, Why: "the merchant's own payout, of no account"},
		{Types: []string{"check"}, Why: "a test of the address"},
	},
})

// braintreeID hashes kind, time and the subject's ID, or all of a subject without one.
func braintreeID(_ source.Delivery, v *schema.Value) (string, error) {
	kind, err := word(v, "notification.kind")
	if err != nil {
		return "", err
	}
	time, err := word(v, "notification.timestamp")
	if err != nil {
		return "", err
	}
	subject, ok := v.At(schema.MustPath("notification.subject"))
	if !ok {
		return "", errors.New("there is nothing at notification.subject")
	}
	what := string(subject.Raw())
	for i, name := range subject.Keys() {
		if id := subject.Items()[i].Get("id"); id != nil {
			text, _ := id.Literal()
			what = name + "\x00" + text
			break
		}
	}
	sum := sha256.Sum256([]byte(kind + "\x00" + time + "\x00" + what))
	return hex.EncodeToString(sum[:]), nil
}

func readBraintree(_ string, body []byte) (*schema.Value, error) {
	form, err := source.ReadForm(body)
	if err != nil {
		return nil, err
	}
	payload, err := word(form, "bt_payload")
	if err != nil {
		return nil, err
	}
	text, err := base64.StdEncoding.DecodeString(payload) // line feeds are skipped
	if err != nil {
		return nil, errors.New("bt_payload is not base64")
	}
	return readXML(text)
}

// maxXMLDepth bounds the nesting of elements.
const maxXMLDepth = 32

// readXML reads elements as objects: of those with attribute type="array" the children
// are a list, nil="true" is null, and the text of what has no children is a string.
func readXML(text []byte) (*schema.Value, error) {
	decoder := xml.NewDecoder(strings.NewReader(string(text)))
	root := map[string]any{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("the payload is not XML")
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil, errors.New("the payload's XML declares types, which no notification does")
		case xml.StartElement:
			if len(root) > 0 {
				return nil, errors.New("the payload's XML has two roots")
			}
			if root[t.Name.Local], err = readElement(decoder, t, 1); err != nil {
				return nil, err
			}
		}
	}
	if len(root) == 0 {
		return nil, errors.New("the payload is not XML")
	}
	encoded, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("read XML: %w", err)
	}
	return schema.ParseJSON(encoded, schema.Limits{})
}

func readElement(decoder *xml.Decoder, start xml.StartElement, depth int) (any, error) {
	if depth > maxXMLDepth {
		return nil, fmt.Errorf("the payload's XML is nested deeper than %d", maxXMLDepth)
	}
	isList, isNull := false, false
	for _, a := range start.Attr {
		isList = isList || a.Name.Local == "type" && a.Value == "array"
		isNull = isNull || a.Name.Local == "nil" && a.Value == "true"
	}
	var text strings.Builder
	var list []any
	fields := map[string]any{}
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("the payload is not XML")
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			value, err := readElement(decoder, t, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
			if _, twice := fields[t.Name.Local]; twice && !isList {
				return nil, errors.New("an element of the payload's XML is there twice")
			}
			fields[t.Name.Local] = value
		case xml.EndElement:
			switch {
			case isList:
				return append([]any{}, list...), nil
			case len(fields) > 0:
				return fields, nil
			case isNull:
				return nil, nil
			}
			return strings.TrimSpace(text.String()), nil
		}
	}
}

// writeBraintree writes fields as readBraintree reads them.
func writeBraintree(fields map[string]any) ([]byte, error) {
	var text strings.Builder
	if err := writeElements(&text, fields); err != nil {
		return nil, err
	}
	payload := base64.StdEncoding.EncodeToString([]byte(text.String()))
	return []byte(url.Values{"bt_payload": {payload + "\n"}}.Encode()), nil
}

func writeElements(b *strings.Builder, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(b, "<%s>", name)
		if inner, ok := fields[name].(map[string]any); ok {
			if err := writeElements(b, inner); err != nil {
				return err
			}
		} else if err := xml.EscapeText(b, []byte(fmt.Sprint(fields[name]))); err != nil {
			return fmt.Errorf("write XML: %w", err)
		}
		fmt.Fprintf(b, "</%s>", name)
	}
	return nil
}
