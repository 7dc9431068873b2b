package signature

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/schema/provider"
)

// vector is a case of testdata/vectors.json: deliveries whose verdict was checked with
// the libraries of the providers.
type vector struct {
	ID         string         `json:"id"`
	Provider   string         `json:"provider"`
	Scheme     string         `json:"scheme"`
	Secret     string         `json:"secret"`
	Secrets    []string       `json:"secrets"`
	Headers    map[string]any `json:"headers"`
	Body       string         `json:"body"`
	BodyBase64 string         `json:"body_base64"`
	Expect     string         `json:"expect"`
	Reason     string         `json:"reason"`
	Policy     string         `json:"policy"`
	AtUnix     *int64         `json:"at_unix"`
	Tolerance  int            `json:"tolerance_s"`
	Header     string         `json:"header"`
	Algorithm  string         `json:"algorithm"`
	Encoding   string         `json:"encoding"`
	Prefix     string         `json:"prefix"`
}

func (v vector) config() provider.Config {
	c := provider.Config{Name: "case", Provider: v.Provider, Account: []string{"account"}}
	secrets := v.Secrets
	if len(secrets) == 0 {
		secrets = []string{v.Secret}
	}
	for _, s := range secrets {
		c.Secrets = append(c.Secrets, provider.SecretConfig{Value: provider.Secret(s)})
	}
	c.Signature.Tolerance = time.Duration(v.Tolerance) * time.Second
	if v.Provider == "generic" {
		c.Signature.Header, c.Signature.Algorithm, c.Signature.Encoding, c.Signature.Prefix = v.Header, v.Algorithm, v.Encoding, v.Prefix
		c.Event.ID.Path = "id"
	}
	if v.Provider != "stripe" {
		c.Event.Type.Path = "type"
		c.Postings = []provider.PostingConfig{{Type: []string{"t"}, Amount: "a", Unit: "minor", Currency: provider.Locator{Path: "c"}, Direction: provider.Direction{Always: "credit"}}}
	}
	return c
}

func (v vector) request(t *testing.T) Request {
	t.Helper()
	r := Request{Header: http.Header{}, Body: []byte(v.Body), At: time.Unix(1764417605, 0)}
	if v.BodyBase64 != "" {
		body, err := base64.StdEncoding.DecodeString(v.BodyBase64)
		if err != nil {
			t.Fatal(err)
		}
		r.Body = body
	}
	if v.AtUnix != nil {
		r.At = time.Unix(*v.AtUnix, 0)
	}
	for name, value := range v.Headers {
		switch value := value.(type) {
		case string:
			r.Header.Add(name, value)
		case []any:
			for _, line := range value {
				r.Header.Add(name, line.(string))
			}
		}
	}
	return r
}

// otherPolicy are the cases where we choose otherwise, with the reason. There is none:
// every expectation of the vectors is ours.
var otherPolicy = map[string]string{}

func readVectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVerify_ComesOutAsTheVectorsExpect(t *testing.T) {
	t.Parallel()
	all := readVectors(t)
	if len(all) != 65 {
		t.Fatalf("got %d vectors, want 65", len(all))
	}
	for _, v := range all {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			if why, other := otherPolicy[v.ID]; other {
				t.Logf("we choose otherwise: %s", why)
				return
			}
			got := "valid"
			err := verifyVector(t, v)
			if err != nil {
				got = "invalid"
			}
			if got != v.Expect {
				t.Errorf("%s: got %s (%v), want %s", v.Reason, got, err, v.Expect)
			}
			var rejection *Rejection
			if err != nil && v.Policy != "empty-secret" && !errors.As(err, &rejection) {
				t.Errorf("got %T, want a *Rejection", err)
			}
		})
	}
}

// verifyVector takes the way of a configuration and a delivery.
func verifyVector(t *testing.T, v vector) error {
	t.Helper()
	source, err := provider.New(v.config())
	if err != nil {
		t.Fatalf("configuration: %v", err)
	}
	keys, err := NewKeyring(source, zerolog.Nop())
	if err != nil {
		return err // a secret that cannot be one
	}
	verifier, err := New(source.Signature(), keys)
	if err != nil {
		t.Fatal(err)
	}
	_, err = verifier.Verify(v.request(t))
	return err
}
