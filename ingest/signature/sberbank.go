package signature

import (
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"hookledger/schema/source"
)

// sberbankScheme reads the parameter checksum: an HMAC-SHA256 or an RSA signature
// (SHA-512) of all other parameters but sign_alias, written as name;value; in the order of
// their names. Source: callback notifications in the gateway's documentation (BPC), 2026-11.
type sberbankScheme struct {
	sig source.Signature
	rsa bool
}

const (
	sberbankChecksum = "checksum"
	sberbankAlias    = "sign_alias"
)

func newSberbankScheme(sig source.Signature) (sberbankScheme, error) {
	switch sig.Algorithm {
	case "hmac-sha256":
		return sberbankScheme{sig, false}, nil
	case "rsa-sha512":
		return sberbankScheme{sig, true}, nil
	}
	return sberbankScheme{}, fmt.Errorf("signature algorithm %q is not known", sig.Algorithm)
}

func (s sberbankScheme) headers() []string { return nil }

func (s sberbankScheme) lock(secret []byte) (lock, error) {
	if !s.rsa {
		return newHMACLock("sberbank-hmac-sha256", "", sha256.New, secret)
	}
	key, err := publicKey(secret)
	if err != nil {
		return nil, err
	}
	return &rsaLock{name: "sberbank-rsa-sha512", hash: crypto.SHA512, key: key}, nil
}

func (s sberbankScheme) read(r Request) ([]claim, error) {
	fields, err := formFields(r)
	if err != nil {
		return nil, err
	}
	encoded, err := field(fields, sberbankChecksum)
	if err != nil {
		return nil, err
	}
	value, err := hex.DecodeString(encoded)
	if err != nil || !s.rsa && len(value) != sha256.Size {
		return nil, reject(Malformed, "field %s is not hexadecimal of the right length", sberbankChecksum)
	}
	text, err := sberbankText(fields)
	if err != nil {
		return nil, err
	}
	return []claim{{signatures: []signature{{value: value}}, text: [][]byte{text}}}, nil
}

// sberbankText refuses semicolons: nothing is escaped, so with one in a description two
// lists of parameters could make one text, and callbacks by GET end up in logs.
func sberbankText(fields []source.Field) ([]byte, error) {
	signed := without(fields, sberbankChecksum, sberbankAlias)
	if len(signed) == 0 {
		return nil, reject(Malformed, "there is no parameter that could be signed")
	}
	slices.SortFunc(signed, func(a, b source.Field) int { return strings.Compare(a.Name, b.Name) })
	var text []byte
	for _, f := range signed {
		if strings.Contains(f.Name, ";") || strings.Contains(f.Value, ";") {
			return nil, reject(Malformed, "a parameter holds a semicolon, so the signed text could be read in two ways")
		}
		text = append(text, f.Name+";"+f.Value+";"...)
	}
	return text, nil
}

func (s sberbankScheme) sign(l lock, m *Message) error {
	key, err := hmacKey(l)
	if err != nil {
		return err
	}
	fields, err := formFields(m.request())
	if err != nil {
		return err
	}
	text, err := sberbankText(fields)
	if err != nil {
		return err
	}
	addField(m, sberbankChecksum, strings.ToUpper(hex.EncodeToString(key.mac([][]byte{text}))))
	return nil
}
