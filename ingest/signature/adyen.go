package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"hookledger/schema"
	"hookledger/schema/source"
)

// adyenScheme reads standard notifications: every item carries an HMAC-SHA256 of eight of
// its fields, joined by colons without any escape. The key is 32 bytes in hexadecimal.
// Source: hmacValidator of the provider's node and Go libraries, docs.adyen.com
// (verify-hmac-signatures), 2026-11.
type adyenScheme struct{ sig source.Signature }

var (
	adyenItems     = schema.MustPath("notificationItems")
	adyenItem      = schema.MustPath("NotificationRequestItem")
	adyenSignature = schema.MustPath("additionalData.hmacSignature")
	adyenFields    = []schema.Path{
		schema.MustPath("pspReference"), schema.MustPath("originalReference"),
		schema.MustPath("merchantAccountCode"), schema.MustPath("merchantReference"),
		schema.MustPath("amount.value"), schema.MustPath("amount.currency"),
		schema.MustPath("eventCode"), schema.MustPath("success"),
	}
)

// adyenFree is the index of merchantReference, the only field that may hold a colon. With
// a second one the same text could be read as other fields.
const adyenFree = 3

func (s adyenScheme) headers() []string { return nil }

func (s adyenScheme) lock(secret []byte) (lock, error) {
	key, err := keyBytes(secret, "hex")
	if err != nil {
		return nil, err
	}
	return newHMACLock("adyen-item-hmac-sha256", "", sha256.New, key)
}

func (s adyenScheme) read(r Request) ([]claim, error) {
	items, err := adyenRead(r.Body)
	if err != nil {
		return nil, err
	}
	claims := make([]claim, 0, len(items))
	for i, item := range items {
		text, err := adyenText(item)
		if err != nil {
			return nil, reject(Malformed, "item %d: %v", i, err)
		}
		v, ok := item.At(adyenSignature)
		if !ok {
			return nil, reject(MissingHeader, "item %d has no %s", i, adyenSignature)
		}
		encoded, _ := v.Text()
		mac, err := decode(encoded, "base64", sha256.Size)
		if err != nil {
			return nil, reject(Malformed, "item %d: %s is %v", i, adyenSignature, err)
		}
		claims = append(claims, claim{signatures: []signature{{value: mac}}, text: [][]byte{text}})
	}
	return claims, nil
}

// adyenRead parses before anything is verified, as it must be: strictly and within limits.
func adyenRead(body []byte) ([]*schema.Value, error) {
	root, err := schema.ParseJSON(body, schema.Limits{})
	if err != nil {
		return nil, reject(Malformed, "%v", err)
	}
	list, ok := root.At(adyenItems)
	if !ok || list.Kind() != schema.KindArray || len(list.Items()) == 0 {
		return nil, reject(Malformed, "there is no item in %s", adyenItems)
	}
	items := make([]*schema.Value, 0, len(list.Items()))
	for i, v := range list.Items() {
		item, ok := v.At(adyenItem)
		if !ok || item.Kind() != schema.KindObject {
			return nil, reject(Malformed, "item %d has no %s", i, adyenItem)
		}
		items = append(items, item)
	}
	return items, nil
}

// adyenText joins the signed fields. What is missing is empty.
func adyenText(item *schema.Value) ([]byte, error) {
	var text []byte
	for i, path := range adyenFields {
		if i > 0 {
			text = append(text, ':')
		}
		v, ok := item.At(path)
		if !ok || v.Kind() == schema.KindNull {
			continue
		}
		literal, ok := v.Literal()
		if !ok {
			return nil, errors.New("what stands at " + path.String() + " is not a single value")
		}
		if i != adyenFree && strings.Contains(literal, ":") {
			return nil, errors.New("what stands at " + path.String() + " holds a colon, so the signed text could be read in two ways")
		}
		text = append(text, literal...)
	}
	return text, nil
}

// adyenUnsigned stands in a body to be signed where each signature belongs.
const adyenUnsigned = "__hookledger_signature__"

func (s adyenScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	items, err := adyenRead(m.Body)
	if err != nil {
		return err
	}
	for _, item := range items {
		text, err := adyenText(item)
		if err != nil {
			return err
		}
		value := base64.StdEncoding.EncodeToString(key.mac([][]byte{text}))
		raw := item.Raw()
		signed := bytes.Replace(raw, []byte(adyenUnsigned), []byte(value), 1)
		if bytes.Equal(raw, signed) {
			signed = append([]byte(`{"additionalData":{"hmacSignature":"`+value+`"},`), raw[1:]...)
		}
		m.Body = bytes.Replace(m.Body, raw, signed, 1)
	}
	return nil
}
