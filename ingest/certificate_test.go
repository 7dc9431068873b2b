package ingest

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/authority"
)

func TestTLS_RenewedCertificateIsShownAndABrokenOneIsNot(t *testing.T) {
	t.Parallel()
	ca := authority.New(t)
	path := filepath.Join(t.TempDir(), "public")
	first := ca.IssueTo(path, "first", time.Hour, "127.0.0.1")
	b := setup(t, options{config: func(c *Config) { c.TLS = TLS{first.CertFile, first.KeyFile} }})
	// shown returns the common name on a new connection.
	shown := func() (string, error) {
		conn, err := tls.Dial("tcp", b.server.Addr().String(), &tls.Config{RootCAs: ca.Pool(), NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			return "", err
		}
		defer conn.Close()
		if p := conn.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
			t.Errorf("got protocol %q, want http/1.1 alone", p)
		}
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
	}
	wantShown := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			got, err := shown()
			if err == nil && got != want {
				err = fmt.Errorf("got the certificate of %q, want %q", got, want)
			}
			if err != nil {
				return err
			}
			return nil
		})
	}
	wantShown("first")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}}}
	defer client.CloseIdleConnections()
	post := func() int {
		t.Helper()
		res, err := client.Post("https://"+b.server.Addr().String()+"/webhooks/acme", "application/json", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := post(); got != http.StatusBadRequest { // not signed: it got as far as the signature
		t.Errorf("got %d, want 400", got)
	}
	ca.IssueTo(path, "second", 2*time.Hour, "127.0.0.1")
	wantShown("second")
	if got := post(); got != http.StatusBadRequest {
		t.Errorf("on the connection from before: got %d, want 400", got)
	}
	if err := os.WriteFile(first.KeyFile, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Reload(); err == nil {
		t.Error("a key that cannot be read was reloaded without an error")
	}
	wantShown("second")
	ca.IssueTo(path, "third", time.Hour, "127.0.0.1")
	if err := b.server.Reload(); err != nil {
		t.Errorf("reload: %v", err)
	}
	if got, err := shown(); got != "third" {
		t.Errorf("at once after a reload: got %q (%v), want third", got, err)
	}
}

func TestTLS_OldVersionsAndPlaintextAreRefused(t *testing.T) {
	t.Parallel()
	ca := authority.New(t)
	c := ca.Issue("x", time.Hour, "127.0.0.1")
	b := setup(t, options{config: func(config *Config) { config.TLS = TLS{c.CertFile, c.KeyFile} }})
	old := &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if conn, err := tls.Dial("tcp", b.server.Addr().String(), old); err == nil {
		conn.Close()
		t.Error("TLS 1.1 was spoken")
	}
	res, err := http.Post("http://"+b.server.Addr().String()+"/webhooks/acme", "application/json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("plaintext: got %d, want 400", res.StatusCode)
	}
}

func TestTLS_HalfOrUnreadableIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.TLS.CertFile = "/nowhere.pem"
	if err := config.Validate(); err == nil {
		t.Error("a certificate without a key was accepted")
	}
	config.TLS.KeyFile = "/nowhere.key"
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := loadCertificate(config.TLS, time.Now, zerolog.Nop()); err == nil {
		t.Error("files that are not there were loaded")
	}
}
