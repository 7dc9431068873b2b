package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/internal/testkit/authority"
)

func TestConfig_RefusesPlaintextToOtherMachinesAndHalfASecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*Config)
		want string // empty: accepted
	}{
		"this machine":           {func(c *Config) { c.Brokers = []string{"127.0.0.1:9092", "localhost:1", "[::1]:9092"} }, ""},
		"another machine":        {func(c *Config) { c.Brokers = []string{"127.0.0.1:9092", "kafka-1:9092"} }, "kafka.insecure_plaintext: true"},
		"another address":        {func(c *Config) { c.Brokers = []string{"10.0.0.1:9092"} }, "kafka.tls.enabled: true"},
		"another, accepted":      {func(c *Config) { c.Brokers, c.InsecurePlaintext = []string{"kafka-1:9092"}, true }, ""},
		"another, TLS":           {func(c *Config) { c.Brokers, c.TLS.Enabled = []string{"kafka-1:9092"}, true }, ""},
		"CA without TLS":         {func(c *Config) { c.TLS.CAFile = "ca.pem" }, "kafka.tls.ca_file is set while kafka.tls.enabled is false"},
		"certificate, no key":    {func(c *Config) { c.TLS = TLS{Enabled: true, CertFile: "c"} }, "belong together"},
		"PLAIN in the clear":     {func(c *Config) { c.SASL = SASL{Plain, "u", Credential{Env: "P"}} }, "set kafka.tls.enabled: true, or use SCRAM-SHA-512"},
		"PLAIN, insecure":        {func(c *Config) { c.SASL, c.InsecurePlaintext = SASL{Plain, "u", Credential{Env: "P"}}, true }, "PLAIN sends the password as it is"},
		"PLAIN within TLS":       {func(c *Config) { c.SASL, c.TLS.Enabled = SASL{Plain, "u", Credential{Env: "P"}}, true }, ""},
		"SCRAM on loopback":      {func(c *Config) { c.SASL = SASL{ScramSHA256, "u", Credential{File: "p"}} }, ""},
		"unknown mechanism":      {func(c *Config) { c.SASL = SASL{"GSSAPI", "u", Credential{Env: "P"}} }, `"GSSAPI"`},
		"no user":                {func(c *Config) { c.SASL = SASL{ScramSHA512, "", Credential{Env: "P"}} }, "kafka.sasl.username is empty"},
		"two passwords":          {func(c *Config) { c.SASL = SASL{ScramSHA512, "u", Credential{"P", "f"}} }, "set one of env and file"},
		"password, no mechanism": {func(c *Config) { c.SASL = SASL{"", "u", Credential{}} }, "kafka.sasl.mechanism is not set"},
	} {
		cfg := DefaultConfig()
		c.edit(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestCheckSecurity_NamesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.TLS = TLS{Enabled: true, CAFile: junk}
	cfg.SASL = SASL{ScramSHA256, "u", Credential{Env: "HL_NOT_SET"}}
	_, err := Open(cfg, zerolog.Nop())
	for _, want := range []string{"kafka.tls.ca_file", "no certificate in PEM", "kafka.sasl.password", "HL_NOT_SET"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("the error quotes a file: %v", err)
	}
	cfg.TLS = TLS{Enabled: true, CertFile: junk, KeyFile: junk}
	if err := cfg.CheckSecurity(); err == nil || !strings.Contains(err.Error(), "kafka.tls.cert_file and key_file") {
		t.Errorf("got %v", err)
	}
}

// A broker on this machine may name one elsewhere. Nothing is sent there either.
func TestDialer_LooksAtTheAddressItself(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// 192.0.2.0/24 is for documentation: nobody is there.
	if _, err := dialer(DefaultConfig())(ctx, "tcp", "192.0.2.1:9092"); !errors.Is(err, errPlaintextRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// login is a way to a broker and what must become of it; empty is a success.
type login struct {
	name string
	tls  TLS
	sasl SASL
	addr string
	want string
}

// try asks the broker something, with the options that roles use.
func (l login) try(t *testing.T) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Brokers, cfg.TLS, cfg.SASL = []string{l.addr}, l.tls, l.sasl
	if err := cfg.Validate(); err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(append(Options(cfg, zerolog.Nop()), kgo.RetryTimeout(time.Nanosecond), kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	switch err := cl.Ping(ctx); {
	case l.want == "" && err != nil:
		t.Errorf("%s: got %v, want an answer", l.name, err)
	case l.want != "" && (err == nil || !strings.Contains(err.Error(), l.want)):
		t.Errorf("%s: got %v, want %q", l.name, err, l.want)
	case err != nil && strings.Contains(err.Error(), "canary"):
		t.Errorf("%s: the error quotes a password: %v", l.name, err)
	}
}

func password(t *testing.T, text string) Credential {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Credential{File: path}
}

func TestOptions_TLSAndSASLOnKfake(t *testing.T) {
	t.Parallel()
	ca, other := authority.New(t), authority.New(t)
	server := ca.Issue("broker", time.Hour, "127.0.0.1", "broker.example").Server(t)
	server.ClientAuth, server.ClientCAs = tls.VerifyClientCertIfGiven, ca.Pool()
	right, wrong := password(t, "canary-right"), password(t, "canary-wrong")
	believed := TLS{Enabled: true, CAFile: ca.File}
	for _, mechanism := range []string{Plain, ScramSHA256, ScramSHA512} {
		addr := testkit.Kfake(t, kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser(mechanism, "u", "canary-right")).ListenAddrs()[0]
		for _, l := range []login{
			{name: "right", tls: believed, sasl: SASL{mechanism, "u", right}},
			{name: "wrong password", tls: believed, sasl: SASL{mechanism, "u", wrong}, want: "EOF"}, // kfake just hangs up
			{name: "another CA", tls: TLS{Enabled: true, CAFile: other.File}, sasl: SASL{mechanism, "u", right}, want: "unknown authority"},
			{name: "the system's CAs", tls: TLS{Enabled: true}, sasl: SASL{mechanism, "u", right}, want: "unknown authority"},
			{name: "name of the certificate", tls: TLS{Enabled: true, CAFile: ca.File, ServerName: "broker.example"}, sasl: SASL{mechanism, "u", right}},
			{name: "another name", tls: TLS{Enabled: true, CAFile: ca.File, ServerName: "db.example"}, sasl: SASL{mechanism, "u", right}, want: "not db.example"},
		} {
			l.addr, l.name = addr, mechanism+", "+l.name
			l.try(t)
		}
	}
}

// What is renewed in place is used by the next connection.
func TestOptions_PasswordIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	addr := testkit.Kfake(t, kfake.EnableSASL(), kfake.Superuser(ScramSHA512, "u", "second")).ListenAddrs()[0]
	cfg := DefaultConfig()
	cfg.Brokers, cfg.SASL = []string{addr}, SASL{ScramSHA512, "u", password(t, "first")}
	cl, err := Open(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	once, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := cl.Ping(once); err == nil {
		t.Fatal("a wrong password was taken")
	}
	if err := os.WriteFile(cfg.SASL.Password.File, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error { return cl.Ping(t.Context()) })
}

func TestOptions_TLSAndSASLOnApacheKafka(t *testing.T) {
	t.Parallel()
	k := testkit.NewSecureKafka(t)
	k.AddUser("u", "canary-right")
	right, wrong := password(t, "canary-right"), password(t, "canary-wrong")
	ca := TLS{Enabled: true, CAFile: k.Authority.File}
	refused := kerr.SaslAuthenticationFailed.Error()
	for _, l := range []login{
		{name: "SCRAM-SHA-256", addr: k.SASL, tls: ca, sasl: SASL{ScramSHA256, "u", right}},
		{name: "SCRAM-SHA-512", addr: k.SASL, tls: ca, sasl: SASL{ScramSHA512, "u", right}},
		{name: "PLAIN", addr: k.SASL, tls: ca, sasl: SASL{Plain, testkit.PlainUser, password(t, testkit.PlainPassword)}},
		{name: "SCRAM, wrong password", addr: k.SASL, tls: ca, sasl: SASL{ScramSHA512, "u", wrong}, want: refused},
		{name: "PLAIN, wrong password", addr: k.SASL, tls: ca, sasl: SASL{Plain, testkit.PlainUser, wrong}, want: refused},
		{name: "SCRAM without TLS", addr: k.SASL, sasl: SASL{ScramSHA512, "u", right}, want: "plaintext connection speaking to a tls endpoint"},
		{name: "another CA", addr: k.SASL, tls: TLS{Enabled: true, CAFile: authority.New(t).File}, sasl: SASL{ScramSHA512, "u", right}, want: "unknown authority"},
		{name: "mTLS", addr: k.MTLS, tls: mutual(k.Authority, k.Authority.Issue("worker", time.Hour))},
		{name: "mTLS without a certificate", addr: k.MTLS, tls: ca, want: "tls: bad certificate"},
		{name: "mTLS, signed by another", addr: k.MTLS, tls: mutual(k.Authority, authority.New(t).Issue("worker", time.Hour)), want: "tls"},
		{name: "mTLS, ended", addr: k.MTLS, tls: mutual(k.Authority, k.Authority.Issue("worker", -time.Minute)), want: "tls"},
	} {
		t.Run(fmt.Sprint(l.name), func(t *testing.T) { l.try(t) })
	}
}

func mutual(ca *authority.Authority, c authority.Certificate) TLS {
	return TLS{Enabled: true, CAFile: ca.File, CertFile: c.CertFile, KeyFile: c.KeyFile}
}
