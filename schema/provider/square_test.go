package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func squareSource(t testing.TB) *provider.Source {
	t.Helper()
	// One account for each payment: the only identity that refunds and disputes share with it.
	return mustSource(t, provider.Config{
		Name: "x", Provider: "square",
		Account:   []string{"data.object.payment.id", "data.object.refund.payment_id", "data.object.dispute.disputed_payment.payment_id"},
		Signature: provider.SignatureConfig{URL: "https://example.com/webhooks/square"},
	})
}

var squareFixtures = []fixture{
	{file: "dispute.created.json", want: []string{"e-dc dispute.created 2025-12-01T12:00:00Z: -1600 USD hYy9pRFVxp dispute XDgyFu7yo1; status XDgyFu7yo1=EVIDENCE_REQUIRED"}},
	{file: "dispute.created_inquiry.json", want: []string{"e-di dispute.created 2025-12-01T12:00:00Z: status Iq1=INQUIRY_EVIDENCE_REQUIRED"}},
	{file: "dispute.state.updated_won.json", want: []string{"e-dw dispute.state.updated 2025-12-20T12:00:00Z: -1600 USD hYy9pRFVxp dispute XDgyFu7yo1; +1600 USD hYy9pRFVxp dispute_won XDgyFu7yo1; status XDgyFu7yo1=WON"}},
	{file: "order.updated.json", want: []string{"e-or order.updated 2025-11-29T12:00:01Z: ignored"}},
	{file: "payment.created.json", want: []string{"e-pc payment.created 2025-11-29T12:00:00Z: status hYy9pRFVxp=APPROVED"}},
	{file: "payment.updated.json", want: []string{"e-pu payment.updated 2025-11-29T12:00:00Z: +2300 USD hYy9pRFVxp payment hYy9pRFVxp; status hYy9pRFVxp=COMPLETED"}},
	{file: "payment.updated_after_refund.json", want: []string{"e-pr payment.updated 2025-11-29T13:01:01Z: +2300 USD hYy9pRFVxp payment hYy9pRFVxp; status hYy9pRFVxp=COMPLETED"}},
	{file: "payment.updated_jpy.json", want: []string{"e-pj payment.updated 2025-11-29T12:00:00Z: +1500 JPY jPy1 payment jPy1; status jPy1=COMPLETED"}},
	{file: "payout.paid.json", want: []string{"e-po payout.paid 2025-12-03T00:00:00Z: status po_f3c0=PAID"}},
	{file: "refund.created.json", want: []string{"e-rc refund.created 2025-11-29T13:00:00Z: status hYy9pRFVxp_R1=PENDING"}},
	{file: "refund.updated.json", want: []string{"e-ru refund.updated 2025-11-29T13:01:00Z: -700 USD hYy9pRFVxp refund hYy9pRFVxp_R1; status hYy9pRFVxp_R1=COMPLETED"}},
	{file: "refund.updated_failed.json", want: []string{"e-rf refund.updated 2025-11-29T14:00:00Z: status hYy9pRFVxp_R3=FAILED"}},
	{file: "refund.updated_second.json", want: []string{"e-r2 refund.updated 2025-11-29T13:30:00Z: -700 USD hYy9pRFVxp refund hYy9pRFVxp_R2; status hYy9pRFVxp_R2=COMPLETED"}},
}

func TestSquare_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, squareSource(t), "square", squareFixtures)
}

func TestSquare_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := squareSource(t)
	wantStory(t, s, "square", squareFixtures, "900 USD hYy9pRFVxp",
		"payment.created.json", "payment.updated.json", "payment.updated_after_refund.json", "refund.created.json", "refund.updated.json",
		"refund.updated_second.json", "refund.updated_failed.json", "dispute.created.json", "dispute.state.updated_won.json")
	// The dispute alone, and its end alone.
	wantStory(t, s, "square", squareFixtures, "-1600 USD hYy9pRFVxp", "dispute.created.json")
	wantStory(t, s, "square", squareFixtures, "0 USD hYy9pRFVxp", "dispute.state.updated_won.json")
}
