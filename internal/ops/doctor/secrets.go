package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

// soon is how long before its end a secret or a certificate is spoken of.
const soon = 14 * 24 * time.Hour

// secrets reads every secret as ingest does when it starts.
func (e *examination) secrets() {
	for _, c := range e.Config.Sources {
		check := "secrets of " + c.Name
		before := len(e.findings)
		source, err := provider.New(c)
		if err == nil {
			var odd oddities
			_, err = signature.NewKeyring(source, zerolog.New(&odd).Level(zerolog.WarnLevel))
			for _, o := range odd {
				e.add(Warning, check, o.KeyID+": "+o.Message, "deliveries may be refused, or accepted from who guessed it", "compare it with the provider's dashboard; write it without quotes, spaces or line ends")
			}
		}
		if err != nil {
			e.add(Problem, check, err.Error(), "ingest does not start on this machine", "correct the secret; on a machine that runs consume alone it may be missing")
			continue
		}
		e.validity(check, c.Secrets)
		if len(e.findings) == before {
			e.ok(check, fmt.Sprintf("%d readable", len(c.Secrets)))
		}
	}
}

func (e *examination) validity(check string, secrets []provider.SecretConfig) {
	now, valid, lasting := e.Now(), 0, 0
	var next time.Time
	for _, s := range secrets {
		if now.Before(s.NotBefore) || !s.NotAfter.IsZero() && now.After(s.NotAfter) {
			continue
		}
		valid++
		if s.NotAfter.IsZero() || s.NotAfter.Sub(now) > soon {
			lasting++
		} else if s.NotAfter.After(next) {
			next = s.NotAfter
		}
	}
	switch {
	case valid == 0:
		e.add(Problem, check, "none is valid now", "every delivery is refused", "add the secret that the provider signs with, or correct not_before and not_after")
	case lasting == 0:
		e.add(Warning, check, "the last one ends "+next.UTC().Format(time.RFC3339), "from then on every delivery is refused", "add the next secret to the list, and remove not_after of the last")
	}
}

// tokens looks at who may pay.
func (e *examination) tokens() {
	now := e.Now()
	for i, t := range e.Config.Payments.Tokens {
		check, before := fmt.Sprintf("payments token %d of %s", i+1, t.Client), len(e.findings)
		text, place := string(t.Value), "its value"
		switch {
		case t.Env != "":
			text, place = os.Getenv(t.Env), "environment variable "+t.Env
		case t.File != "":
			content, err := os.ReadFile(t.File)
			text, place = string(bytes.TrimSuffix(content, []byte("\n"))), "file "+t.File
			if err != nil {
				place = err.Error()
			}
		}
		switch {
		case text == "":
			e.add(Problem, check, "nothing is there: "+place, "payments does not start on this machine", "put the token there; on a machine that runs other roles alone it may be missing")
		case strings.TrimSpace(text) != text:
			e.add(Warning, check, "it begins or ends with white space, which is taken for a part of it", "the client is answered 401", "write it without spaces or line ends")
		}
		if !t.NotAfter.IsZero() && t.NotAfter.Sub(now) < soon {
			e.add(Warning, check, "it ends "+t.NotAfter.UTC().Format(time.RFC3339), "from then on the client is answered 401, unless it has another", "give the client the next one")
		}
		if len(t.From) == 0 {
			e.add(Note, check, "it may spend from every account", "who gets hold of it can empty them all", "name the accounts in from, such as shop:*")
		}
		if len(e.findings) == before {
			e.ok(check, "readable, and bound to its accounts")
		}
	}
}

// oddities are the warnings of a keyring, as it logs them.
type oddities []struct {
	KeyID   string `json:"key_id"`
	Message string `json:"message"`
}

// Write takes one line of the log.
func (o *oddities) Write(line []byte) (int, error) {
	for one := range bytes.Lines(line) {
		var w struct {
			KeyID   string `json:"key_id"`
			Message string `json:"message"`
		}
		if json.Unmarshal(one, &w) == nil && w.Message != "" {
			*o = append(*o, w)
		}
	}
	return len(line), nil
}

// certificates looks at the files that end by themselves.
func (e *examination) certificates() {
	for _, c := range []struct{ key, path, harm string }{
		{"ingest.tls.cert_file", e.Config.Ingest.TLS.CertFile, "providers refuse to deliver"},
		{"kafka.tls.cert_file", e.Config.Kafka.TLS.CertFile, "brokers refuse us"},
		{"kafka.tls.ca_file", e.Config.Kafka.TLS.CAFile, "we refuse the brokers"},
	} {
		if c.path == "" {
			continue
		}
		ends, err := certificateEnd(c.path)
		if err != nil {
			e.add(Problem, c.key, err.Error(), "roles that need it do not start", "correct the path, or the rights of the file")
			continue
		}
		verdict, left := Warning, ends.Sub(e.Now())
		if left < 0 {
			verdict = Problem
		}
		e.unless(left > soon, verdict, c.key, "ends "+ends.UTC().Format(time.RFC3339), "from then on "+c.harm, "renew it; the file is read again by itself")
	}
}

// certificateEnd is when the first certificate of a file ends.
func certificateEnd(path string) (time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("read %s: %w", path, err)
	}
	return cert.NotAfter, nil
}
