package provider

import (
	"net/http"

	"hookledger/schema/source"
)

// Robokassa hashes sum, number and the shop's own parameters (Shp_…) with password #2; the
// hash is chosen in the shop's settings. Fee, e-mail and the like are not covered. Only
// success is notified, once for each number, in roubles. Test payments have passwords of
// their own: give them a source of their own, or a test would pay a live order.
// Source: docs.robokassa.ru (notifications and redirects), 2026-11.
//
// A payment credits OutSum, decimal text that may have more zeros than kopecks. One without a
// number of its own (InvId 0) cannot be told from another, and goes to quarantine. Refunds and
// chargebacks are not notified. The account has to be in a signed field, such as Shp_account.
var _ = register(source.Definition{
	Name: "robokassa",
	Signature: source.Signature{
		Scheme: source.SchemeRobokassa, Algorithm: "md5",
		Covers: []string{"OutSum", "InvId", "Shp_*", "shp_*", "SHP_*"},
	},
	Knobs: []string{"algorithm"},
	Tune: func(sig *source.Signature, c source.SignatureConfig, p *source.Problems) {
		if c.Algorithm != "" {
			sig.Algorithm = c.Algorithm
			p.OneOf("signature.algorithm", c.Algorithm, "md5", "ripemd160", "sha1", "sha256", "sha384", "sha512")
		}
	},
	Methods: []string{http.MethodPost, http.MethodGet},
	Event: source.EventConfig{
		Body: source.BodyForm,
		ID:   at("InvId"),
		Type: source.Locator{Const: "payment"},
	},
	Answer: func(success source.Answer, items []source.Item) source.Answer {
		success.ContentType = "text/plain; charset=utf-8"
		if len(items) == 1 {
			success.Body = "OK" + items[0].ID
		}
		return success
	},
	// Sent with tests alone, and not signed.
	Live:       source.LiveFlag{Paths: []string{"IsTest"}, Live: []string{"0"}, Test: []string{"1"}, Missing: "live"},
	NumericIDs: true,
	Account:    []string{"Shp_account", "InvId"},
	Postings: []source.PostingConfig{{
		Type:   []string{"payment"},
		Amount: "OutSum", Unit: source.UnitMajor, Currency: source.Locator{Const: "RUB"}, Direction: credits,
		Movement: "InvId",
	}, {
		Key: "unnumbered", Type: []string{"payment"}, When: []source.ConditionConfig{is("InvId", "0")},
		Unclear: "the shop gave it no number (InvId 0), so it cannot be told from another payment",
	}},
})
