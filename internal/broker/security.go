package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Values of SASL.Mechanism.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// TLS says how connections to the brokers are encrypted, and who is believed. Files are
// read again for each new connection, so that a renewed certificate needs no restart.
type TLS struct {
	// Enabled turns TLS on, for every broker.
	Enabled bool `yaml:"enabled"`
	// CAFile holds the certificates, in PEM, that may sign a broker's. Empty: those of
	// the system.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile, in PEM, are what we show to brokers that ask (mTLS).
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is the name that a broker's certificate must have. Empty: the host that
	// was dialled.
	ServerName string `yaml:"server_name"`
}

// SASL says who we are to the brokers.
type SASL struct {
	// Mechanism is Plain, ScramSHA256 or ScramSHA512. Empty: no SASL.
	Mechanism string     `yaml:"mechanism"`
	Username  string     `yaml:"username"`
	Password  Credential `yaml:"password"`
}

// Credential says where a secret is: exactly one field is set. It is read again for
// each new connection.
type Credential struct {
	// Env is the name of an environment variable.
	Env string `yaml:"env"`
	// File is a path. One line feed at its end is not part of the secret.
	File string `yaml:"file"`
}

// read returns the secret. Errors name the place and never the text.
func (c Credential) read() (string, error) {
	text := os.Getenv(c.Env)
	place := "environment variable " + c.Env
	if c.File != "" {
		b, err := os.ReadFile(c.File)
		if err != nil {
			return "", err
		}
		text, place = string(bytes.TrimSuffix(b, []byte("\n"))), "file "+c.File
	}
	if text == "" {
		return "", fmt.Errorf("%s is empty or not set: give it the password", place)
	}
	return text, nil
}

// validateSecurity returns what of TLS and SASL cannot be used, or would put secrets and
// webhooks on a network in the clear. Files are not looked at: see CheckSecurity.
func (c *Config) validateSecurity() []error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	t, s := c.TLS, c.SASL
	if !t.Enabled {
		for _, f := range []struct{ key, value string }{
			{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile}, {"server_name", t.ServerName},
		} {
			if f.value != "" {
				refuse("kafka.tls.%s is set while kafka.tls.enabled is false, so it would mean nothing: set kafka.tls.enabled: true, or remove it", f.key)
			}
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		refuse("kafka.tls.cert_file and kafka.tls.key_file belong together: set both or neither")
	}
	switch s.Mechanism {
	case "":
		if s.Username != "" || s.Password != (Credential{}) {
			refuse("kafka.sasl.mechanism is not set while a username or password is: set %s, %s or %s", ScramSHA512, ScramSHA256, Plain)
		}
	case Plain, ScramSHA256, ScramSHA512:
		if s.Username == "" {
			refuse("kafka.sasl.username is empty: name the user of kafka.sasl.mechanism %s", s.Mechanism)
		}
		if (s.Password.Env == "") == (s.Password.File == "") {
			refuse("kafka.sasl.password: set one of env and file")
		}
	default:
		refuse("kafka.sasl.mechanism is %q: set %s, %s or %s", s.Mechanism, ScramSHA512, ScramSHA256, Plain)
	}
	if s.Mechanism == Plain && !t.Enabled {
		refuse("kafka.sasl.mechanism PLAIN sends the password as it is: set kafka.tls.enabled: true, or use %s", ScramSHA512)
	}
	if !t.Enabled && !c.InsecurePlaintext {
		if far := slices.IndexFunc(c.Brokers, func(addr string) bool { return !IsLoopback(addr) }); far >= 0 {
			refuse("kafka.brokers names %s, another machine, and kafka.tls.enabled is false: webhooks would cross the network unencrypted, and anybody on it could be the broker: set kafka.tls.enabled: true, or kafka.insecure_plaintext: true to accept that", c.Brokers[far])
		}
	}
	return errs
}

// IsLoopback tells whether a host, with or without a port, is this machine. Names other
// than localhost are not looked up.
func IsLoopback(addr string) bool {
	host := addr
	if h, _, err := net.SplitHostPort(addr); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// CheckSecurity reads the files and variables that c names, and returns why a
// connection could not be made with them; nil if it could. Roles call it when they
// start, so that a wrong path is refused instead of retried for ever.
func (c *Config) CheckSecurity() error {
	var errs []error
	if c.TLS.Enabled {
		if _, err := c.TLS.client("broker"); err != nil {
			errs = append(errs, err)
		}
	}
	if c.SASL.Mechanism != "" {
		if _, err := c.SASL.Password.read(); err != nil {
			errs = append(errs, fmt.Errorf("read kafka.sasl.password: %w", err))
		}
	}
	return errors.Join(errs...)
}

// client reads the files and returns the configuration of one connection to host.
func (t TLS) client(host string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if t.ServerName != "" {
		cfg.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read kafka.tls.ca_file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read kafka.tls.ca_file: %s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read kafka.tls.cert_file and key_file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// securityOptions are the dialer and the login of the clients.
func securityOptions(c Config) []kgo.Opt {
	opts := []kgo.Opt{kgo.Dialer(dialer(c))}
	if c.SASL.Mechanism != "" {
		opts = append(opts, kgo.SASL(c.SASL.mechanism()))
	}
	return opts
}

var errPlaintextRefused = errors.New("a broker on another machine is not talked to unencrypted: set kafka.tls.enabled: true, or kafka.insecure_plaintext: true to accept that")

// dialer looks at addresses once more where they are known for certain: brokers name
// each other, and a name may lead anywhere.
func dialer(c Config) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	if !c.TLS.Enabled {
		if !c.InsecurePlaintext {
			d.Control = func(_, address string, _ syscall.RawConn) error {
				if !IsLoopback(address) {
					return errPlaintextRefused
				}
				return nil
			}
		}
		return d.DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("dial broker %s: %w", addr, err)
		}
		cfg, err := c.TLS.client(host)
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
	}
}

// mechanism reads the password when it is needed.
func (s SASL) mechanism() sasl.Mechanism {
	password := func() (string, error) {
		p, err := s.Password.read()
		if err != nil {
			return "", fmt.Errorf("read kafka.sasl.password: %w", err)
		}
		return p, nil
	}
	if s.Mechanism == Plain {
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			p, err := password()
			return plain.Auth{User: s.Username, Pass: p}, err
		})
	}
	login := func(context.Context) (scram.Auth, error) {
		p, err := password()
		return scram.Auth{User: s.Username, Pass: p}, err
	}
	if s.Mechanism == ScramSHA256 {
		return scram.Sha256(login)
	}
	return scram.Sha512(login)
}
