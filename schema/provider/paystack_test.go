package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func paystackSource(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "paystack",
		Account: []string{"data.metadata.account_id", "data.recipient.metadata.account_id"},
	})
}

var paystackFixtures = []fixture{
	{file: "charge.dispute.create.json", want: []string{"charge.dispute.create:358950 charge.dispute.create 2025-11-30T17:00:01Z: status 358950=awaiting-merchant-feedback"}},
	{file: "charge.success.json", want: []string{"charge.success:302961 charge.success 2025-11-29T12:00:00Z: +10000 NGN acct_7 charge.success qTPrJoy9Bx"}},
	{file: "charge.success_text_amount.json", want: []string{"charge.success:302962 charge.success 2025-11-29T12:00:00Z: +2500 NGN acct_7 charge.success qTPrJoy9By"}},
	{file: "charge.success_xof.json", want: []string{"charge.success:302963 charge.success 2025-11-29T12:00:00Z: quarantine bad_currency"}},
	{file: "refund.pending.json", want: []string{"refund.pending:qTPrJoy9Bx refund.pending -: status qTPrJoy9Bx=pending"}},
	{file: "refund.processed.json", want: []string{"refund.processed:132013318360 refund.processed -: -4000 NGN acct_7 refund.processed refund.processed:132013318360"}},
	{file: "refund.processed_no_account.json", want: []string{"refund.processed:132013318362 refund.processed -: quarantine missing_account"}},
	{file: "refund.processed_second.json", want: []string{"refund.processed:123457 refund.processed -: -4000 NGN acct_7 refund.processed refund.processed:123457"}},
	{file: "subscription.create.json", want: []string{"subscription.create:8842 subscription.create 2025-11-29T12:00:00Z: ignored"}},
	{file: "transfer.failed.json", want: []string{"transfer.failed:37272793 transfer.failed 2025-11-30T07:20:50Z: status 2jhbs3=failed"}},
	{file: "transfer.reversed.json", want: []string{"transfer.reversed:37272792 transfer.reversed 2025-11-30T09:20:50Z: -3000 NGN acct_7 transfer 1jhbs3ozmen0k7y5efmw; +3000 NGN acct_7 transfer.reversed 1jhbs3ozmen0k7y5efmw"}},
	{file: "transfer.success.json", want: []string{"transfer.success:37272792 transfer.success 2025-11-30T07:20:50Z: -3000 NGN acct_7 transfer 1jhbs3ozmen0k7y5efmw"}},
}

func TestPaystack_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, paystackSource(t), "paystack", paystackFixtures)
}

func TestPaystack_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := paystackSource(t)
	wantStory(t, s, "paystack", paystackFixtures, "2000 NGN acct_7",
		"charge.success.json", "refund.pending.json", "refund.processed.json", "refund.processed_second.json",
		"charge.dispute.create.json", "transfer.success.json", "transfer.reversed.json", "transfer.failed.json")
	wantStory(t, s, "paystack", paystackFixtures, "7000 NGN acct_7", "charge.success.json", "transfer.success.json")
}
