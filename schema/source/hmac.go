package source

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

// TuneHMAC applies the knobs of an HMAC in a header: the Tune of providers that leave
// them to the configuration.
func TuneHMAC(sig *Signature, c SignatureConfig, p *Problems) {
	if c.Header == "" {
		p.Add("signature.header", "is missing; it names the HTTP header that carries the signature")
	} else {
		sig.Header = HeaderName("signature.header", c.Header, p)
	}
	sig.Algorithm = "hmac-sha256"
	if c.Algorithm != "" {
		sig.Algorithm = "hmac-" + strings.TrimPrefix(c.Algorithm, "hmac-")
		p.OneOf("signature.algorithm", sig.Algorithm, "hmac-sha256", "hmac-sha512", "hmac-sha1")
	}
	sig.Encoding = "hex"
	if c.Encoding != "" {
		sig.Encoding = c.Encoding
		p.OneOf("signature.encoding", c.Encoding, "hex", "base64", "base64url")
	}
	sig.Prefix, sig.URL = c.Prefix, c.URL

	if sig.KeyEncoding = c.SecretEncoding; c.SecretEncoding != "" {
		p.OneOf("signature.secret_encoding", c.SecretEncoding, "hex", "base64")
	}
	tunePairs(sig, c, p)

	sig.Template = "{body}"
	if c.TimestampHeader != "" {
		sig.TimestampHeader = HeaderName("signature.timestamp_header", c.TimestampHeader, p)
	}
	if sig.timed() {
		sig.Template = "{ts}.{body}"
		sig.TimestampFormat = FormatUnix
		if c.TimestampFormat != "" {
			sig.TimestampFormat = c.TimestampFormat
			p.OneOf("signature.timestamp_format", c.TimestampFormat, FormatUnix, FormatUnixMS, FormatRFC3339)
		}
	} else if c.Tolerance != 0 || c.TimestampFormat != "" {
		p.Add("signature.timestamp_header", "is missing, and so is pairs.time; tolerance and timestamp_format are about such a value")
	}
	if c.Template != "" {
		sig.Template = c.Template
	}
	checkTemplate(sig, p)
}

// timed tells whether a delivery says when it was signed.
func (s *Signature) timed() bool { return s.TimestampHeader != "" || s.Pairs.Time != "" }

func tunePairs(sig *Signature, c SignatureConfig, p *Problems) {
	if c.Pairs == (PairsConfig{}) {
		return
	}
	sig.Pairs = c.Pairs
	if sig.Pairs.Separator == "" {
		sig.Pairs.Separator = ","
	}
	p.OneOf("signature.pairs.separator", sig.Pairs.Separator, ",", ";")
	if strings.ContainsAny(c.Pairs.Signature+c.Pairs.Time, ",;= ") {
		p.Add("signature.pairs", "names parts, without separators and blanks")
	}
	switch c.Pairs.Signature {
	case "":
		p.Add("signature.pairs.signature", "is missing; it names the parts that are signatures, such as v1")
	case c.Pairs.Time:
		p.Add("signature.pairs.time", "is the name of the signatures too")
	}
	if c.Prefix != "" {
		p.Add("signature.prefix", "has no place in a header of parts")
	}
	if c.Pairs.Time != "" && c.TimestampHeader != "" {
		p.Add("signature.timestamp_header", "and pairs.time are two times; keep one")
	}
}

func checkTemplate(sig *Signature, p *Problems) {
	const key = "signature.template"
	parts, err := SplitTemplate(sig.Template)
	if err != nil {
		p.Add(key, "%v", err)
		return
	}
	count := func(name string) (n int) {
		for _, part := range parts {
			if part.Name == name {
				n++
			}
		}
		return n
	}
	if count("body") != 1 {
		p.Add(key, "must hold {body} once, or the body would not be covered by the signature")
	}
	switch {
	case sig.timed() && count("ts") == 0:
		p.Add(key, "must hold {ts}, or the timestamp would not be covered by the signature")
	case !sig.timed() && count("ts") > 0:
		p.Add("signature.timestamp_header", "is missing, and so is pairs.time; {ts} in the template is its value")
	}
	if (count("url") > 0) != (sig.URL != "") {
		p.Add("signature.url", "and {url} in the template need each other")
	}
	// Without a literal between them, two header values could trade characters.
	for i, part := range parts[1:] {
		if part.Name != "" && parts[i].Name != "" && slices.Contains([]string{parts[i].Name, part.Name}, "header") {
			p.Add(key, "needs a literal between {header:…} and its neighbour, such as a dot")
			return
		}
	}
	for _, part := range parts {
		if part.Name == "header" {
			HeaderName(key, part.Text, p)
		}
	}
}

// TemplatePart is a piece of a signature's template. Name is empty for a literal,
// else body, ts, url or header; Text is the literal, or the canonical name of the header.
type TemplatePart struct{ Name, Text string }

// SplitTemplate reads a template. There is no way to write a literal brace: no
// scheme known signs one.
func SplitTemplate(template string) ([]TemplatePart, error) {
	var parts []TemplatePart
	for rest := template; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(parts, TemplatePart{Text: rest}), nil
		}
		if open > 0 {
			parts = append(parts, TemplatePart{Text: rest[:open]})
		}
		end := strings.IndexByte(rest[open:], '}')
		if rest[open] == '}' || end < 0 {
			return nil, fmt.Errorf("has a brace that is not closed or not opened")
		}
		switch name := rest[open+1 : open+end]; {
		case name == "body", name == "ts", name == "url":
			parts = append(parts, TemplatePart{Name: name})
		case strings.HasPrefix(name, "header:") && len(name) > len("header:"):
			parts = append(parts, TemplatePart{Name: "header", Text: textproto.CanonicalMIMEHeaderKey(name[len("header:"):])})
		default:
			return nil, fmt.Errorf("knows {body}, {ts}, {url} and {header:NAME}, not {%.40s}", name)
		}
		rest = rest[open+end+1:]
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("is empty")
	}
	return parts, nil
}
