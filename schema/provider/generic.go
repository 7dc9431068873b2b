package provider

import (
	"slices"
	"strings"
)

// generic is any provider, declared in configuration: an HMAC in a header, and paths
// into the body.
var _ = register(definition{
	name:      "generic",
	signature: Signature{Scheme: SchemeHMAC, BodyAuthenticated: true},
	knobs:     []string{"header", "algorithm", "encoding", "prefix", "template", "timestamp_header", "timestamp_format", "tolerance", "url"},
	tune:      tuneHMAC,
})

func tuneHMAC(sig *Signature, c SignatureConfig, p *problems) {
	if c.Header == "" {
		p.add("signature.header", "is missing; it names the HTTP header that carries the signature")
	} else {
		sig.Header = headerName("signature.header", c.Header, p)
	}
	sig.Algorithm = "hmac-sha256"
	if c.Algorithm != "" {
		sig.Algorithm = "hmac-" + strings.TrimPrefix(c.Algorithm, "hmac-")
		p.oneOf("signature.algorithm", sig.Algorithm, "hmac-sha256", "hmac-sha512", "hmac-sha1")
	}
	sig.Encoding = "hex"
	if c.Encoding != "" {
		sig.Encoding = c.Encoding
		p.oneOf("signature.encoding", c.Encoding, "hex", "base64", "base64url")
	}
	sig.Prefix, sig.URL = c.Prefix, c.URL

	sig.Template = "{body}"
	if c.TimestampHeader != "" {
		sig.TimestampHeader = headerName("signature.timestamp_header", c.TimestampHeader, p)
		sig.Template = "{ts}.{body}"
		sig.TimestampFormat = formatUnix
		if c.TimestampFormat != "" {
			sig.TimestampFormat = c.TimestampFormat
			p.oneOf("signature.timestamp_format", c.TimestampFormat, formatUnix, formatUnixMS, formatRFC3339)
		}
	} else if c.Tolerance != 0 || c.TimestampFormat != "" {
		p.add("signature.timestamp_header", "is missing; tolerance and timestamp_format are about its value")
	}
	if c.Template != "" {
		sig.Template = c.Template
	}
	checkTemplate(sig, p)
}

func checkTemplate(sig *Signature, p *problems) {
	const key = "signature.template"
	parts, err := SplitTemplate(sig.Template)
	if err != nil {
		p.add(key, "%v", err)
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
		p.add(key, "must hold {body} once, or the body would not be covered by the signature")
	}
	switch {
	case sig.TimestampHeader != "" && count("ts") == 0:
		p.add(key, "must hold {ts}, or the timestamp would not be covered by the signature")
	case sig.TimestampHeader == "" && count("ts") > 0:
		p.add("signature.timestamp_header", "is missing; {ts} in the template is its value")
	}
	if (count("url") > 0) != (sig.URL != "") {
		p.add("signature.url", "and {url} in the template need each other")
	}
	// Without a literal between them, two header values could trade characters.
	for i, part := range parts[1:] {
		if part.Name != "" && parts[i].Name != "" && slices.Contains([]string{parts[i].Name, part.Name}, "header") {
			p.add(key, "needs a literal between {header:…} and its neighbour, such as a dot")
			return
		}
	}
	for _, part := range parts {
		if part.Name == "header" {
			headerName(key, part.Text, p)
		}
	}
}
