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
)

// BenchmarkVerify beside a bare HMAC of the same bytes, for every scheme that is an HMAC
// of the body: go test -run '^$' -bench Verify -benchmem ./ingest/signature
func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{256, 1 << 10, 16 << 10} {
		body := []byte(`{"id":"evt_1","note":"` + strings.Repeat("x", size-24) + `"}`)
		for name, c := range samples() {
			if !c.wholeBody {
				continue
			}
			v, sig := verifierOf(b, c.config)
			r := signed(b, sig, c.secret(), Message{Method: c.method, Header: c.header, Body: body, At: noon})
			b.Run(fmt.Sprintf("scheme=%s/size=%d", name, size), func(b *testing.B) {
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

// BenchmarkVerifyDerived is of the schemes that read what they sign out of the body.
func BenchmarkVerifyDerived(b *testing.B) {
	for name, c := range samples() {
		if c.wholeBody {
			continue
		}
		v, sig := verifierOf(b, c.config)
		r := signed(b, sig, c.secret(), c.message())
		r.Remote = c.remote
		b.Run("scheme="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A verification allocates a few small values, however long the body is.
func TestVerify_AllocatesTheSameForAnyBody(t *testing.T) {
	for name, c := range samples() {
		if !c.wholeBody {
			continue
		}
		v, sig := verifierOf(t, c.config)
		count := func(size int) float64 {
			body := []byte(strings.Repeat("x", size))
			r := signed(t, sig, c.secret(), Message{Method: c.method, Header: c.header, Body: body, At: noon})
			return testing.AllocsPerRun(200, func() {
				if _, err := v.Verify(r); err != nil {
					t.Fatal(err)
				}
			})
		}
		small, large := count(100), count(1<<20)
		if large > small+1 || small > 12 {
			t.Errorf("%s: got %v allocations for 100 bytes and %v for 1 MiB, want the same and few", name, small, large)
		}
	}
}

var jsonType = http.Header{"Content-Type": {"application/json"}}
