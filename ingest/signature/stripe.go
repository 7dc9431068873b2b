package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"hookledger/schema/source"
)

// stripeScheme reads "t=<unix>,v1=<hex>[,v1=<hex>…][,v0=…]". The signed text is
// "<t>.<body>", the key the whole whsec_ text as it is.
type stripeScheme struct{ sig source.Signature }

const stripeName = "stripe-v1"

func (s stripeScheme) headers() []string { return []string{s.sig.Header} }

func (s stripeScheme) lock(secret []byte) (lock, error) {
	return newHMACLock(stripeName, "", sha256.New, secret)
}

func (s stripeScheme) read(r Request) ([]claim, error) {
	header, err := one(r.Header, s.sig.Header)
	if err != nil {
		return nil, err
	}
	c := claim{}
	ts, versions := "", 0
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, reject(Malformed, "header %s has a part without =", s.sig.Header)
		}
		switch name {
		case "t":
			if ts != "" {
				return nil, reject(Malformed, "header %s has two times", s.sig.Header)
			}
			if ts = value; ts == "" {
				return nil, reject(Malformed, "header %s has an empty time", s.sig.Header)
			}
		case "v1":
			versions++
			// One that is no MAC at all is skipped, as the provider's library does.
			if mac, err := decode(value, "hex", sha256.Size); err == nil {
				c.signatures = append(c.signatures, signature{value: mac})
			}
		}
		// v0 is the scheme of test events, unsigned in effect. It is never looked at, nor
		// is any other version.
	}
	switch {
	case ts == "":
		return nil, reject(Malformed, "header %s has no time", s.sig.Header)
	case versions == 0:
		return nil, reject(UnknownVersion, "header %s has no signature of version v1", s.sig.Header)
	case len(c.signatures) == 0:
		return nil, reject(Malformed, "header %s has no readable signature of version v1", s.sig.Header)
	case versions > maxSignatures:
		return nil, reject(Malformed, "header %s has more than %d signatures", s.sig.Header, maxSignatures)
	}
	if c.signedAt, err = readTime("t of header "+s.sig.Header, ts, s.sig.TimestampFormat); err != nil {
		return nil, err
	}
	c.text = stripeText(ts, r.Body)
	return []claim{c}, nil
}

// stripeText keeps the time as it was written: that is what was signed.
func stripeText(ts string, body []byte) [][]byte {
	return [][]byte{[]byte(ts + "."), body}
}

func (s stripeScheme) sign(key lock, m *Message) error {
	mac, err := macOf(key, func(ts string) [][]byte { return stripeText(ts, m.Body) }, m, s.sig.TimestampFormat)
	if err != nil {
		return err
	}
	m.Header.Set(s.sig.Header, "t="+mac.ts+",v1="+hex.EncodeToString(mac.sum))
	return nil
}
