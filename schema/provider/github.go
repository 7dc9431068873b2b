package provider

import (
	"time"

	"hookledger/schema/source"
)

// github is the style in which GitHub signs, and many who copied it: X-Hub-Signature-256
// with the prefix sha256=, over the body. The prefix never chooses the algorithm: a sender
// who could would choose the weakest. The delivery's ID is a header and not signed, so
// postings need a movement. Sources: @octokit/webhooks-methods 6.0.0, go-github v66.0.0,
// docs.github.com (validating webhook deliveries), 2026-11. What events mean is
// configured, as for a generic source.
var _ = register(source.Definition{
	Name: "github",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "X-Hub-Signature-256",
		Algorithm: "hmac-sha256", Encoding: "hex", Prefix: "sha256=", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 10 * time.Second, // From memory.
	Event: source.EventConfig{
		ID: source.Locator{Header: "X-Github-Delivery"}, Type: source.Locator{Header: "X-Github-Event"},
	},
})
