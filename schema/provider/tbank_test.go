package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func tbankSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "tbank", trust)
}

var tbankFixtures = []fixture{
	{file: "authorized.json", want: []string{"5974256058:AUTHORIZED AUTHORIZED -: status 5974256058=AUTHORIZED"}},
	{file: "confirmed.json", want: []string{"5974256058:CONFIRMED CONFIRMED -: +19900 RUB acct_7 CONFIRMED 5974256058"}},
	{file: "linkaccount.json", want: []string{"13021e10-a3ed-4f14-bcd1-823b5ac37390:ACTIVE ACTIVE -: ignored"}},
	{file: "partial_refunded.json", want: []string{"5974256058:PARTIAL_REFUNDED:5000 PARTIAL_REFUNDED -: quarantine unclear_movement"}},
	{file: "refunded.json", want: []string{"5974256058:REFUNDED REFUNDED -: quarantine unclear_movement"}},
	{file: "rejected.json", want: []string{"5974256059:REJECTED REJECTED -: status 5974256059=REJECTED"}},
}

func TestTBank_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, tbankSource(t, ""), "tbank", tbankFixtures)
}
