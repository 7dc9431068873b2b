package provider

import "hookledger/schema/source"

// generic is any provider, declared in configuration: an HMAC in a header, and paths
// into the body.
var _ = register(source.Definition{
	Name:      "generic",
	Signature: source.Signature{Scheme: source.SchemeHMAC, BodyAuthenticated: true},
	Knobs:     []string{"header", "algorithm", "encoding", "prefix", "secret_encoding", "pairs", "template", "timestamp_header", "timestamp_format", "tolerance", "url"},
	Tune:      source.TuneHMAC,
})
