package provider

import (
	"time"

	"hookledger/schema/source"
)

// GoCardless signs the body and sends up to 250 events in it. Sources: gocardless-nodejs
// 10.1.2 webhooks.js and its fixture, developer.gocardless.com, 2026-11.
//
// An item without a usable ID makes the delivery a 400, though the others are stored: success
// would tell GoCardless that all are kept. It repeats the delivery, in which the others are
// known by then, up to eight times, and shows it as failed.
//
// No event has an amount: each names a resource to fetch. So none moves money here; all
// are kept for whoever fetches, each under its own ID, and their actions are kept as the
// status of the resource. The type is resource_type and action, such as payments.paid_out.
var _ = register(source.Definition{
	Name: "gocardless",
	Signature: source.Signature{
		Scheme: source.SchemeHMAC, Header: "Webhook-Signature",
		Algorithm: "hmac-sha256", Encoding: "hex", Template: "{body}",
		BodyAuthenticated: true,
	},
	Deadline: 10 * time.Second, // From memory.
	Event: source.EventConfig{
		Items: "events",
		ID:    at("id"), Type: source.Locator{Join: []string{"resource_type", "action"}, Separator: "."},
		Time: at("created_at"), TimeFormat: source.FormatRFC3339,
	},
	Live:      testsApart,
	NonEffect: "events carry the ID of a resource to fetch, and no amount",
	Statuses: []source.StatusConfig{
		{When: []source.ConditionConfig{is("resource_type", "payments"), present("links.payment")}, Object: "links.payment", Status: at("action")},
		{When: []source.ConditionConfig{is("resource_type", "refunds"), present("links.refund")}, Object: "links.refund", Status: at("action")},
		{When: []source.ConditionConfig{is("resource_type", "payouts"), present("links.payout")}, Object: "links.payout", Status: at("action")},
		{When: []source.ConditionConfig{is("resource_type", "mandates"), present("links.mandate")}, Object: "links.mandate", Status: at("action")},
		{When: []source.ConditionConfig{is("resource_type", "subscriptions"), present("links.subscription")}, Object: "links.subscription", Status: at("action")},
	},
	Success: source.SuccessConfig{Status: 204},
})
