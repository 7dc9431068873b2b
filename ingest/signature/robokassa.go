package signature

import (
	"crypto/md5"  //nolint:gosec // What shops choose in the provider's settings; asked for by name.
	"crypto/sha1" //nolint:gosec // The same.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // The same: it is deprecated, and offered to shops.

	"hookledger/schema/source"
)

// robokassaScheme reads the parameter SignatureValue: a hash, chosen in the shop's
// settings, of OutSum:InvId:password#2 and of all Shp_ parameters in the order of their
// names. Source: docs.robokassa.ru, notifications and redirects, 2026-11.
type robokassaScheme struct {
	sig     source.Signature
	newHash func() hash.Hash
}

const robokassaSignature = "SignatureValue"

func newRobokassaScheme(sig source.Signature) (robokassaScheme, error) {
	known := map[string]func() hash.Hash{
		"md5": md5.New, "ripemd160": ripemd160.New, "sha1": sha1.New,
		"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	}
	newHash, ok := known[sig.Algorithm]
	if !ok {
		return robokassaScheme{}, fmt.Errorf("signature algorithm %q is not known", sig.Algorithm)
	}
	return robokassaScheme{sig, newHash}, nil
}

func (s robokassaScheme) headers() []string { return nil }

func (s robokassaScheme) lock(secret []byte) (lock, error) {
	return newHashLock("robokassa-"+s.sig.Algorithm, s.newHash, secret)
}

func (s robokassaScheme) read(r Request) ([]claim, error) {
	fields, err := formFields(r)
	if err != nil {
		return nil, err
	}
	encoded, err := field(fields, robokassaSignature)
	if err != nil {
		return nil, err
	}
	value, err := decode(encoded, "hex", s.newHash().Size())
	if err != nil {
		return nil, reject(Malformed, "field %s: %v", robokassaSignature, err)
	}
	text, err := robokassaText(fields)
	if err != nil {
		return nil, err
	}
	return []claim{{signatures: []signature{{value: value}}, text: text}}, nil
}

// robokassaText takes OutSum as it was received: 100.260000 is not 100.26 here. Sum and
// number are judged, so that no colon in them can make one text of two notifications.
func robokassaText(fields []source.Field) ([][]byte, error) {
	sum, err := field(fields, "OutSum")
	if err != nil {
		return nil, err
	}
	number, err := field(fields, "InvId")
	if err != nil {
		return nil, err
	}
	if strings.Trim(sum, "0123456789.") != "" || strings.Trim(number, "0123456789") != "" {
		return nil, reject(Malformed, "OutSum or InvId is not a number")
	}
	text := [][]byte{[]byte(sum), []byte(":"), []byte(number), []byte(":"), nil}
	own := slices.DeleteFunc(slices.Clone(fields), func(f source.Field) bool {
		return len(f.Name) < 4 || !strings.EqualFold(f.Name[:4], "shp_")
	})
	slices.SortFunc(own, func(a, b source.Field) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range own {
		text = append(text, []byte(":"+f.Name+"="+f.Value))
	}
	return text, nil
}

func (s robokassaScheme) sign(l lock, m *Message) error {
	fields, err := formFields(m.request())
	if err != nil {
		return err
	}
	text, err := robokassaText(fields)
	if err != nil {
		return err
	}
	addField(m, robokassaSignature, strings.ToUpper(hex.EncodeToString(l.(*hashLock).sum(text))))
	return nil
}
