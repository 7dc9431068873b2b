package signature

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hookledger/schema/provider"
)

// A real shell with real openssl and curl posts what Snippet says, to a server that
// verifies it.
func TestSnippet_IsAcceptedWhenPasted(t *testing.T) {
	t.Parallel()
	generic := func(s provider.SignatureConfig) provider.Config {
		c := config("generic", `k'"$(x)\ -5f1e0c`)
		c.Signature = s
		return c
	}
	for name, c := range map[string]provider.Config{
		"stripe":    config("stripe", stripeSecret),
		"standard":  config("standardwebhooks", standardSecret),
		"generic":   generic(provider.SignatureConfig{Header: "X-Signature", Prefix: "sha256="}),
		"sha512":    generic(provider.SignatureConfig{Header: "X-Signature", Algorithm: "sha512", Encoding: "base64"}),
		"sha1 time": generic(provider.SignatureConfig{Header: "X-Signature", Algorithm: "sha1", TimestampHeader: "X-Time", Encoding: "base64url"}),
		"millis":    generic(provider.SignatureConfig{Header: "X-Signature", TimestampHeader: "X-Time", TimestampFormat: "unix_ms", Template: "v0:{ts}:{body}"}),
		"all":       generic(provider.SignatureConfig{Header: "X-Signature", TimestampHeader: "X-Time", TimestampFormat: "rfc3339", Template: "{header:X-Event}|{url}|{ts}|{body}", URL: "https://it's"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, sig := verifierOf(t, c)
			type received struct {
				body string
				err  error
			}
			got := make(chan received, 2)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, err := v.Verify(Request{Header: r.Header, Body: body, At: time.Now()})
				if err == nil && r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("got content type %q", r.Header.Get("Content-Type"))
				}
				got <- received{string(body), err}
			}))
			defer server.Close()
			header := http.Header{"Content-Type": {"application/json"}, "X-Event": {IDPlaceholder}, "Webhook-Id": {"msg_" + IDPlaceholder}}
			script, err := Snippet(sig, c.Secrets[0].Value, server.URL+"/webhooks/x?a=b", header, []byte(`{"id":"`+IDPlaceholder+`","note":"it's $5 \"100%\" \\ é"}`))
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for range 2 {
				out, err := exec.Command("sh", "-c", script).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s\n%s", err, out, script)
				}
				r := <-got
				if r.err != nil {
					t.Fatalf("%v: %s\n%s", r.err, r.body, script)
				}
				if !strings.HasPrefix(r.body, `{"id":"dev_`) || !strings.HasSuffix(r.body, `","note":"it's $5 \"100%\" \\ é"}`) {
					t.Errorf("got body %s", r.body)
				}
				ids[r.body] = true
			}
			if len(ids) != 2 {
				t.Errorf("got %d bodies, want another ID at each run", len(ids))
			}
		})
	}
}
