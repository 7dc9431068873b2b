package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func robokassaSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "robokassa", trust)
}

var robokassaFixtures = []fixture{
	{file: "payment.form", want: []string{"450009 payment -: +10026 RUB acct_7 payment 450009"}},
	{file: "payment_no_account.form", want: []string{"450010 payment -: +10026 RUB 450010 payment 450010"}},
}

func TestRobokassa_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, robokassaSource(t, ""), "robokassa", robokassaFixtures)
}
