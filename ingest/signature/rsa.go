package signature

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"

	"hookledger/schema/source"
)

// rsaScheme is an RSA signature (PKCS #1 v1.5, SHA-256, base64) of the body in a header.
// The secrets of such a source are the provider's public keys, in PEM.
type rsaScheme struct{ sig source.Signature }

func (s rsaScheme) headers() []string { return []string{s.sig.Header} }

func (s rsaScheme) lock(secret []byte) (lock, error) {
	key, err := publicKey(secret)
	if err != nil {
		return nil, err
	}
	return &rsaLock{name: "rsa-sha256", hash: crypto.SHA256, key: key}, nil
}

func (s rsaScheme) read(r Request) ([]claim, error) {
	value, err := rsaSignature(r, s.sig.Header)
	if err != nil {
		return nil, err
	}
	return []claim{{signatures: []signature{{value: value}}, text: [][]byte{r.Body}}}, nil
}

func rsaSignature(r Request, header string) ([]byte, error) {
	text, err := one(r.Header, header)
	if err != nil {
		return nil, err
	}
	value, err := strictBase64(base64.StdEncoding, text)
	if err != nil || len(value) == 0 {
		return nil, reject(Malformed, "header %s: not in base64", header)
	}
	return value, nil
}

// minRSABits is the shortest key believed: 1024 bits are what one bank still documents.
const minRSABits = 1024

// publicKey reads a public key or a certificate in PEM.
func publicKey(text []byte) (*rsa.PublicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not a public key in PEM (-----BEGIN PUBLIC KEY-----)")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("it holds several keys; give each a secret of its own")
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = cert.PublicKey
		}
	default:
		return nil, errors.New("it is neither a public key nor a certificate; never give a private key away")
	}
	if err != nil {
		return nil, errors.New("it is a public key that cannot be read")
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < minRSABits {
		return nil, errors.New("it is not an RSA key of at least 1024 bits")
	}
	return public, nil
}
