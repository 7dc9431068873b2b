package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hookledger/schema"
	"hookledger/schema/source"
)

// mercadoPagoScheme reads x-signature: ts=…,v1=…, an HMAC-SHA256 of
// "id:<data.id of the URL>;request-id:<x-request-id>;ts:<ts>;". The body is not signed.
// Whether the provider signs the ID as it stands in the URL or in lower case changed in
// 2026, so both are tried; its libraries disagree on the unit of ts, so its size decides.
// Source: webhook helpers of the provider's npm and Go libraries, 2026-11.
type mercadoPagoScheme struct{ sig source.Signature }

func (s mercadoPagoScheme) headers() []string { return []string{s.sig.Header, s.sig.IDHeader} }

func (s mercadoPagoScheme) lock(secret []byte) (lock, error) {
	return newHMACLock("mercadopago-v1", "", sha256.New, secret)
}

func (s mercadoPagoScheme) read(r Request) ([]claim, error) {
	header, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	trimmed := make([]string, 0, 4)
	for part := range strings.SplitSeq(header, ",") {
		trimmed = append(trimmed, trimOWS(part))
	}
	p, err := readPairs(strings.Join(trimmed, ","), s.sig.Header, source.PairsConfig{Separator: ",", Time: "ts", Signature: "v1"}, "hex", sha256.Size)
	if err != nil {
		return nil, err
	}
	c := claim{}
	if c.signedAt, err = mercadoPagoTime(p.ts, s.sig.Header); err != nil {
		return nil, err
	}
	id, requestID, err := s.signed(r)
	if err != nil {
		return nil, err
	}
	c.text = mercadoPagoText(id, requestID, p.ts)
	for _, value := range p.values {
		c.signatures = append(c.signatures, signature{value: value})
		if lower := strings.ToLower(id); lower != id {
			c.signatures = append(c.signatures, signature{value: value, text: mercadoPagoText(lower, requestID, p.ts)})
		}
	}
	return []claim{c}, nil
}

// signed returns what is signed beside the time; either may be missing, and then is not
// part of the text.
func (s mercadoPagoScheme) signed(r Request) (id, requestID string, err error) {
	query, err := url.ParseQuery(r.Query)
	if err != nil || !isPrintable(r.Query) {
		return "", "", reject(Malformed, "the query of the URL is not encoded as it should be")
	}
	switch ids := query["data.id"]; len(ids) {
	case 0:
	case 1:
		id = ids[0]
	default:
		return "", "", reject(DuplicateHeader, "parameter data.id of the URL is there %d times", len(ids))
	}
	requestID, err = one(r.Header, s.sig.IDHeader)
	var rejection *Rejection
	if errors.As(err, &rejection) && rejection.Reason == MissingHeader {
		requestID, err = "", nil
	}
	if strings.Contains(id, ";") || strings.Contains(requestID, ";") {
		return "", "", reject(Malformed, "an ID holds a semicolon, so the signed text could be read in two ways")
	}
	return id, requestID, err
}

func mercadoPagoText(id, requestID, ts string) [][]byte {
	text := ""
	if id != "" {
		text += "id:" + id + ";"
	}
	if requestID != "" {
		text += "request-id:" + requestID + ";"
	}
	return [][]byte{[]byte(text + "ts:" + ts + ";")}
}

// mercadoPagoTime takes a number for milliseconds from 10^11 on: as seconds that would be
// the year 5138.
func mercadoPagoTime(ts, header string) (time.Time, error) {
	format := source.FormatUnix
	if len(ts) > 11 {
		format = source.FormatUnixMS
	}
	return readTime("ts of header "+header, ts, format)
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

func (s mercadoPagoScheme) keep(r Request) []schema.Header {
	return []schema.Header{{Key: keptQuery, Value: []byte(r.Query)}}
}

func (s mercadoPagoScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	if m.Method == http.MethodGet {
		return errors.New("notifications are posted")
	}
	id, requestID, err := s.signed(m.request())
	if err != nil {
		return err
	}
	ts := writeTime(m.At, source.FormatUnixMS)
	m.Header.Set(s.sig.Header, "ts="+ts+",v1="+hex.EncodeToString(key.mac(mercadoPagoText(id, requestID, ts))))
	return nil
}
