package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificateCheckEvery is how often, at most, the files are looked at.
const certificateCheckEvery = time.Second

// TLS names the certificate of the public listener. Both fields are set, or none: then
// something in front of the listener speaks TLS.
type TLS struct {
	// CertFile holds the certificate and those between it and its root, in PEM.
	CertFile string `yaml:"cert_file"`
	// KeyFile holds the key of the certificate, in PEM.
	KeyFile string `yaml:"key_file"`
}

func (t TLS) enabled() bool { return t.CertFile != "" }

func (t TLS) validate() error {
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("ingest.tls.cert_file and ingest.tls.key_file belong together: set both, or neither and let something in front speak TLS")
	}
	return nil
}

// certificate is the pair of files as last read. It looks at them when a connection
// arrives, so a renewed certificate is shown from the next second on, however it was
// put there; one that cannot be read leaves the old one in use.
type certificate struct {
	files TLS
	now   func() time.Time
	log   zerolog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	seen   [2]fileState
}

// fileState changes when a file is written or replaced.
type fileState struct {
	modified time.Time
	size     int64
}

// loadCertificate reads the files, which must fit each other.
func loadCertificate(files TLS, now func() time.Time, log zerolog.Logger) (*certificate, error) {
	c := &certificate{files: files, now: now, log: log}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// reload reads the files again, whether they changed or not.
func (c *certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load()
}

func (c *certificate) load() error {
	c.looked, c.seen = c.now(), c.state()
	pair, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("read ingest.tls.cert_file and key_file: %w", err)
	}
	if c.pair == nil || !pair.Leaf.Equal(c.pair.Leaf) {
		c.log.Info().Strs("names", names(pair.Leaf)).Time("not_after", pair.Leaf.NotAfter).Bool("reload", c.pair != nil).Msg("certificate loaded")
	}
	c.pair = &pair
	return nil
}

// state is what the files look like; zero for one that cannot be looked at.
func (c *certificate) state() (s [2]fileState) {
	for i, path := range []string{c.files.CertFile, c.files.KeyFile} {
		if info, err := os.Stat(path); err == nil {
			s[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return s
}

// current returns the certificate to show. It is tls.Config.GetCertificate.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= certificateCheckEvery {
		c.looked = now
		if c.state() != c.seen {
			if err := c.load(); err != nil {
				c.log.Error().Err(err).Msg("reload of the certificate; the old one stays in use")
			}
		}
	}
	return c.pair, nil
}

// notAfter is when the certificate ends.
func (c *certificate) notAfter() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair.Leaf.NotAfter
}

// config is what the listener speaks: HTTP/1.1 within TLS 1.2 or newer.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.current}
}

func names(leaf *x509.Certificate) []string {
	all := append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}
