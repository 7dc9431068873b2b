package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"testing"

	"hookledger/schema/provider"
)

// BenchmarkVerify beside a bare HMAC of the same bytes:
// go test -bench Verify -benchmem ./ingest/signature
func BenchmarkVerify(b *testing.B) {
	sha512Config := config("generic", acmeSecret)
	sha512Config.Signature.Algorithm = "sha512"
	schemes := []struct {
		name    string
		config  provider.Config
		newHash func() hash.Hash
	}{
		{"stripe", config("stripe", stripeSecret), sha256.New},
		{"standardwebhooks", config("standardwebhooks", standardSecret), sha256.New},
		{"generic-sha256", config("generic", acmeSecret), sha256.New},
		{"generic-sha512", sha512Config, sha512.New},
	}
	for _, size := range []int{256, 1 << 10, 16 << 10} {
		body := []byte(strings.Repeat("x", size))
		for _, s := range schemes {
			v, sig := verifierOf(b, s.config)
			r := signed(b, sig, s.config.Secrets[0].Value, Message{Header: http.Header{"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}}, Body: body, At: noon})
			b.Run(fmt.Sprintf("scheme=%s/size=%d", s.name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Verify(r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, bare := range []struct {
			name    string
			newHash func() hash.Hash
		}{{"bare-sha256", sha256.New}, {"bare-sha512", sha512.New}} {
			want := hex.EncodeToString(hmac.New(bare.newHash, []byte(acmeSecret)).Sum(nil))
			b.Run(fmt.Sprintf("scheme=%s/size=%d", bare.name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					mac := hmac.New(bare.newHash, []byte(acmeSecret))
					mac.Write(body)
					got, err := hex.DecodeString(want)
					if err != nil || hmac.Equal(got, mac.Sum(nil)) {
						b.Fatal("equal")
					}
				}
			})
		}
	}
}
