package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func braintreeSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	// Here the order is the account of disputes, and the same as the customer.
	c := provider.Config{Name: "x", Provider: "braintree", Trust: trust, Account: []string{
		"notification.subject.transaction.customer.id", "notification.subject.subscription.transactions[0].customer.id",
		"notification.subject.dispute.transaction.order-id",
	}}
	c.Signature.PublicKey = "PUBLIC-KEY"
	return mustSource(t, c)
}

var braintreeFixtures = []fixture{
	{file: "check.form", want: []string{"03b31683a1109f254c93e9c16c2471ea989563e6cbf3abe5980716cd767456ab check 2025-11-29T12:00:00Z: ignored"}},
	{file: "disbursement.form", want: []string{"2752a417abb9bcdb043c7d6c2a29c0143fab3c4408a1226c33e589d1e26773b1 disbursement 2025-11-29T12:00:00Z: ignored"}},
	{file: "dispute_opened.form", want: []string{"26abc3c5ad673a6da45b18277b193b2903982b93e2853d86617f1e84826e63d9 dispute_opened 2025-11-29T12:00:00Z: -4000 EUR acct_7 dispute dsp_1; status dsp_1=open"}},
	{file: "dispute_opened_retrieval.form", want: []string{"eb7289e1219904c8d230b64910ae1ef191cb407c6d3d086519ecd881b59998ba dispute_opened 2025-11-29T12:00:00Z: status dsp_2=open"}},
	{file: "dispute_won.form", want: []string{"1367a0e578fbc77bce82c806e7bc6fa5663bdc4ce9f500fd756e6d0219df4add dispute_won 2025-11-29T12:00:00Z: -4000 EUR acct_7 dispute dsp_1; +4000 EUR acct_7 dispute_won dsp_1"}},
	{file: "subscription_charged_successfully.form", want: []string{"37210647309e35be00258859f4493254a471a254eb64e77e5c2968ed221887c8 subscription_charged_successfully 2025-11-29T12:00:00Z: +999 EUR acct_7 transaction my_txn_5"}},
	{file: "transaction_settled.form", want: []string{"5bb26caca14f0a3ae3b911afee640555d3bfd8ad547564647589bec58cbe4787 transaction_settled 2025-11-29T12:00:00Z: +10000 EUR acct_7 transaction my_txn_1"}},
	{file: "transaction_settled_credit.form", want: []string{"8f66b1bf6966822fdb9a599ed326608de715f86717238952e468955609fb6129 transaction_settled 2025-11-29T12:00:00Z: -2500 EUR acct_7 transaction my_txn_2"}},
}

func TestBraintree_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, braintreeSource(t, ""), "braintree", braintreeFixtures)
}

func TestBraintree_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := braintreeSource(t, "")
	wantStory(t, s, "braintree", braintreeFixtures, "8499 EUR acct_7",
		"transaction_settled.form", "transaction_settled_credit.form", "subscription_charged_successfully.form", "dispute_opened.form", "dispute_won.form")
}
