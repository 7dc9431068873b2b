package vectors

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Read calls use with each case of r: the items of a JSON array, or JSON values one after
// the other. It stops at the first error, of r or of use; what is wrong with one case
// alone is an error of Judge.
func Read(r io.Reader, use func(Case) error) error {
	in := bufio.NewReader(r)
	decoder := json.NewDecoder(in)
	if first, err := firstByte(in); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("read cases: %w", err)
	} else if first == '[' {
		if _, err := decoder.Token(); err != nil {
			return fmt.Errorf("read cases: %w", err)
		}
		for i := 0; decoder.More(); i++ {
			if err := readOne(decoder, i, use); err != nil {
				return err
			}
		}
		if _, err := decoder.Token(); err != nil {
			return fmt.Errorf("read cases: the list is not closed: %w", err)
		}
		return nil
	}
	for i := 0; ; i++ {
		if err := readOne(decoder, i, use); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func readOne(decoder *json.Decoder, i int, use func(Case) error) error {
	var text json.RawMessage
	if err := decoder.Decode(&text); err != nil {
		return fmt.Errorf("read case %d: %w", i, err)
	}
	var c Case
	if err := json.Unmarshal(text, &c); err != nil {
		c.err = fmt.Errorf("read case %d (%s): %w", i, c.ID, err)
	}
	return use(c)
}

// firstByte returns the first byte that is no white space, and leaves it.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n", b) < 0 {
			return b, in.UnreadByte()
		}
	}
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
