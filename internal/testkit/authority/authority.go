package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Authority is a certificate authority of one test.
type Authority struct {
	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// issued numbers the files.
	issued atomic.Int64
	// File holds the authority's own certificate, in PEM.
	File string
}

// Certificate is one that an Authority signed, for servers and clients alike.
type Certificate struct {
	// CertFile and KeyFile are in PEM, the key in PKCS #8.
	CertFile, KeyFile string
}

// New makes a certificate authority, whose files are removed after the test.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "hookledger test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(tb)
	a.File = filepath.Join(a.dir, "ca.pem")
	a.writePEM(a.File, "CERTIFICATE", a.sign(a.cert, &a.key.PublicKey))
	return a
}

// Issue signs a certificate for a common name, good for the hosts given (names or
// addresses) until notAfter from now, and writes it to files of its own.
func (a *Authority) Issue(commonName string, notAfter time.Duration, hosts ...string) Certificate {
	a.tb.Helper()
	return a.IssueTo(filepath.Join(a.dir, fmt.Sprintf("%s-%d", commonName, a.issued.Add(1))), commonName, notAfter, hosts...)
}

// IssueTo is Issue with the start of the files' names, so that one can be replaced.
func (a *Authority) IssueTo(path, commonName string, notAfter time.Duration, hosts ...string) Certificate {
	a.tb.Helper()
	key := newKey(a.tb)
	template := &x509.Certificate{
		SerialNumber: serial(a.tb), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(notAfter),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	c := Certificate{CertFile: path + ".pem", KeyFile: path + ".key"}
	a.writePEM(c.CertFile, "CERTIFICATE", a.sign(template, &key.PublicKey))
	a.writePEM(c.KeyFile, "PRIVATE KEY", private)
	return c
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Server is what a listener shows with c.
func (c Certificate) Server(tb testing.TB) *tls.Config {
	tb.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		a.tb.Fatalf("sign certificate of %s: %v", template.Subject, err)
	}
	if template == a.cert {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.tb.Fatal(err)
		}
	}
	return der
}

// writePEM replaces the file at once, as who renews certificates should.
func (a *Authority) writePEM(path, kind string, der []byte) {
	a.tb.Helper()
	next := path + ".new"
	if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		a.tb.Fatal(err)
	}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
