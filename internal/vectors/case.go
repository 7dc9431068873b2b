package vectors

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"hookledger/ingest/signature"
)

// Case is a delivery with what its source is configured with. Which fields are set
// depends on the provider.
type Case struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	Scheme   string `json:"scheme"`

	Secret  *string  `json:"secret"`
	Secrets []string `json:"secrets"`

	Method     string               `json:"method"`
	Query      string               `json:"query"`
	Headers    map[string]headerSet `json:"headers"`
	Body       string               `json:"body"`
	BodyBase64 *string              `json:"body_base64"`
	RemoteAddr string               `json:"remote_addr"`
	// AtUnix is the clock of the case; null where time does not matter.
	AtUnix *json.Number `json:"at_unix"`

	// Knobs of the source.
	ToleranceS        *int            `json:"tolerance_s"`
	Header            string          `json:"header"`
	Algorithm         string          `json:"algorithm"`
	Encoding          string          `json:"encoding"`
	Prefix            string          `json:"prefix"`
	Template          string          `json:"template"`
	TimestampHeader   string          `json:"timestamp_header"`
	TimestampFormat   string          `json:"timestamp_format"`
	URL               string          `json:"url"`
	Hash              string          `json:"hash"`
	WebhookID         string          `json:"webhook_id"`
	TerminalKey       string          `json:"terminal_key"`
	MerchantPublicKey string          `json:"merchant_public_key"`
	PublicKey         string          `json:"public_key"`
	CertPEM           string          `json:"cert_pem"`
	JWKS              json.RawMessage `json:"jwks"`

	// err is why the case cannot be read.
	err error
}

// headerSet is the value of a header, or several lines of it.
type headerSet []string

// UnmarshalJSON reads a text or a list of texts.
func (h *headerSet) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*h = headerSet{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(h))
}

// request is the delivery of the case.
func (c *Case) request() (signature.Request, error) {
	r := signature.Request{Method: strings.ToUpper(c.Method), Query: strings.TrimPrefix(c.Query, "?"), Header: http.Header{}, Body: []byte(c.Body), At: time.Now()}
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	if c.BodyBase64 != nil && *c.BodyBase64 != "" {
		body, err := base64.StdEncoding.DecodeString(*c.BodyBase64)
		if err != nil {
			return r, fmt.Errorf("case %s: body_base64: %w", c.ID, err)
		}
		r.Body = body
	}
	if c.AtUnix != nil {
		at, err := c.AtUnix.Float64()
		if err != nil {
			return r, fmt.Errorf("case %s: at_unix: %w", c.ID, err)
		}
		r.At = time.Unix(0, int64(at*float64(time.Second)))
		if whole, err := c.AtUnix.Int64(); err == nil {
			r.At = time.Unix(whole, 0)
		}
	}
	for name, values := range c.Headers {
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
	if c.RemoteAddr != "" {
		addr, err := netip.ParseAddr(c.RemoteAddr)
		if err != nil {
			if both, portErr := netip.ParseAddrPort(c.RemoteAddr); portErr == nil {
				addr, err = both.Addr(), nil
			}
		}
		if err == nil {
			r.Remote = addr // what is no address is that of nobody
		}
	}
	return r, nil
}
