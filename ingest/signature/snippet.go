package signature

import (
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hookledger/schema/source"
)

// IDPlaceholder stands in the body and the headers given to Snippet where the shell
// shall put an ID of its own, new at each run.
const IDPlaceholder = "__hookledger_id__"

// Snippet returns lines for a POSIX shell that sign body and post it to url. The shell
// computes time and signature with date and openssl, so the lines work when pasted at
// any time. They hold the secret: they are for development.
func Snippet(sig source.Signature, secret source.Secret, url string, header http.Header, body []byte) (string, error) {
	s, err := newScheme(sig)
	if err != nil {
		return "", err
	}
	script, ok := s.(scripting)
	if !ok {
		return "", fmt.Errorf("sign in a shell: scheme %s cannot be written in a few lines; use hookledger send", sig.Scheme)
	}
	l, err := s.lock([]byte(secret))
	if err != nil {
		return "", fmt.Errorf("sign in a shell: %w", err)
	}
	key, err := hmacKey(l)
	if err != nil {
		return "", fmt.Errorf("sign in a shell: %w", err)
	}
	signed, err := script.snippet(shellMessage{header})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("( id=dev_$(openssl rand -hex 8); t=" + shellTime(sig.TimestampFormat) + "\n")
	b.WriteString("  body=" + quoteID(string(body)) + "\n")
	b.WriteString("  sig=$(printf %s " + signed.text + " | " + opensslMAC(key, signed.encoding) + ")\n")
	b.WriteString("  curl -sS -i -X POST " + quote(url))
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(signed.names(), name) {
			b.WriteString(" \\\n    -H " + quoteID(name+": "+header.Get(name)))
		}
	}
	for _, h := range signed.headers {
		b.WriteString(" \\\n    -H " + h.shell())
	}
	b.WriteString(" \\\n    --data-binary \"$body\" )\n")
	return b.String(), nil
}

// shellMessage is the message of Snippet, with placeholders.
type shellMessage struct{ header http.Header }

// shellSignature is how a shell builds a signature: text is the word to be signed,
// headers use "$t", "$id" and "$sig".
type shellSignature struct {
	text     string
	encoding string
	headers  []shellHeader
}

type shellHeader struct{ name, value string }

func (h shellHeader) shell() string { return quote(h.name+": ") + h.value }

func (s shellSignature) names() []string {
	var names []string
	for _, h := range s.headers {
		names = append(names, h.name)
	}
	return names
}

func (s *hmacScheme) snippet(m shellMessage) (shellSignature, error) { //nolint:unparam // As scripting has it.
	out := shellSignature{encoding: s.sig.Encoding}
	for _, part := range s.parts {
		switch part.Name {
		case "":
			out.text += quote(part.Text)
		case "body":
			out.text += `"$body"`
		case "ts":
			out.text += `"$t"`
		case "url":
			out.text += quote(s.sig.URL)
		case "header":
			out.text += quoteID(m.header.Get(part.Text))
		}
	}
	if s.sig.TimestampHeader != "" {
		out.headers = append(out.headers, shellHeader{s.sig.TimestampHeader, `"$t"`})
	}
	value := quote(s.sig.Prefix) + `"$sig"`
	if p := s.sig.Pairs; p.Time != "" {
		value = quote(p.Time+"=") + `"$t"` + quote(p.Separator+p.Signature+"=") + value
	} else if p.Signature != "" {
		value = quote(p.Signature+"=") + value
	}
	out.headers = append(out.headers, shellHeader{s.sig.Header, value})
	return out, nil
}

func (s stripeScheme) snippet(shellMessage) (shellSignature, error) { //nolint:unparam // As scripting has it.
	return shellSignature{
		text: `"$t.$body"`, encoding: "hex",
		headers: []shellHeader{{s.sig.Header, `"t=$t,v1=$sig"`}},
	}, nil
}

func (s standardScheme) snippet(m shellMessage) (shellSignature, error) {
	id := m.header.Get(s.sig.IDHeader)
	if id == "" {
		return shellSignature{}, errors.New("message has no header " + s.sig.IDHeader)
	}
	return shellSignature{
		text: quoteID(id) + `".$t.$body"`, encoding: "base64",
		headers: []shellHeader{{s.sig.IDHeader, quoteID(id)}, {s.sig.TimestampHeader, `"$t"`}, {s.sig.Header, `"v1,$sig"`}},
	}, nil
}

// opensslMAC takes the key in hexadecimal, so that no secret needs quoting; OpenSSL
// and LibreSSL both know the form.
func opensslMAC(key *hmacLock, encoding string) string {
	digest := map[int]string{20: "sha1", 32: "sha256", sha512.Size: "sha512"}[key.newHash().Size()]
	cmd := "openssl dgst -" + digest + " -mac HMAC -macopt hexkey:" + hex.EncodeToString(key.key)
	switch encoding {
	case "base64":
		return cmd + " -binary | openssl base64 -A"
	case "base64url":
		return cmd + " -binary | openssl base64 -A | tr '+/' '-_'"
	}
	return cmd + " -hex | sed 's/^.* //'"
}

func shellTime(format string) string {
	switch format {
	case "rfc3339":
		return "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	case "unix_ms":
		return "$(date +%s)000"
	}
	return "$(date +%s)"
}

// quote returns s as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteID is quote with $id for IDPlaceholder.
func quoteID(s string) string {
	return strings.ReplaceAll(quote(s), IDPlaceholder, `'"$id"'`)
}
