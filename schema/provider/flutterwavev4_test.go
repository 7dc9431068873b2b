package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func flutterwaveV4Source(t testing.TB) *provider.Source {
	t.Helper()
	return mustSource(t, provider.Config{
		Name: "x", Provider: "flutterwave-v4",
		Account: []string{"data.meta.account_id"},
	})
}

var flutterwaveV4Fixtures = []fixture{
	{file: "charge.completed.json", want: []string{"wbk_qFVb1 charge.completed 2025-11-29T12:00:00Z: +150050 NGN acct_7 charge.completed chg_0JHgF1; status chg_0JHgF1=succeeded"}},
	{file: "charge.completed_failed.json", want: []string{"wbk_qFVb2 charge.completed 2025-11-29T12:00:00Z: status chg_0JHgF2=failed"}},
	{file: "charge.completed_too_precise.json", want: []string{"wbk_qFVb3 charge.completed 2025-11-29T12:00:00Z: quarantine bad_amount"}},
	{file: "charge.completed_xof.json", want: []string{"wbk_qFVb4 charge.completed 2025-11-29T12:00:00Z: +5000 XOF acct_7 charge.completed chg_0JHgF4; status chg_0JHgF4=succeeded"}},
	{file: "refund.completed.json", want: []string{"wbk_qFVb5 refund.completed 2025-11-29T12:00:00Z: status rfd_1=succeeded"}},
	{file: "unknown_type.json", want: []string{"wbk_qFVb6 bill.completed 2025-11-29T12:00:00Z: ignored"}},
}

func TestFlutterwaveV4_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, flutterwaveV4Source(t), "flutterwave-v4", flutterwaveV4Fixtures)
}
