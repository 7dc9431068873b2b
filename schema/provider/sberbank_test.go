package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func sberbankSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "sberbank", trust)
}

var sberbankFixtures = []fixture{
	{file: "approved.form", want: []string{"3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:approved approved -: status 3ff6962a-7dcc-4283-ab50-a6d7dd3386fe=approved"}},
	{file: "deposited.form", want: []string{"3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:deposited deposited -: +123456 RUB acct_7 deposited 3ff6962a-7dcc-4283-ab50-a6d7dd3386fe"}},
	{file: "deposited_failed.form", want: []string{"m2:deposited:0 deposited -: ignored"}},
	{file: "refunded.form", want: []string{"3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:refunded:3456:Mon Jan 31 21:46:52 UTC 2022 refunded -: -3456 RUB acct_7 refunded 3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:refunded:3456:Mon Jan 31 21:46:52 UTC 2022"}},
	{file: "refunded_no_amount.form", want: []string{"m3:refunded:Mon Jan 31 21:46:52 UTC 2022 refunded -: quarantine bad_amount"}},
	{file: "refunded_second.form", want: []string{"3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:refunded:3456:Mon Jan 31 21:50:00 UTC 2022 refunded -: -3456 RUB acct_7 refunded 3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:refunded:3456:Mon Jan 31 21:50:00 UTC 2022"}},
	{file: "refunded_undated.form", want: []string{"m4:refunded:3456 refunded -: quarantine unclear_movement"}},
	{file: "refunded_undated_empty.form", want: []string{"m5:refunded:3456: refunded -: quarantine unclear_movement"}},
	{file: "reversed.form", want: []string{"3ff6962a-7dcc-4283-ab50-a6d7dd3386fe:reversed reversed -: quarantine unclear_movement"}},
}

func TestSberbank_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, sberbankSource(t, ""), "sberbank", sberbankFixtures)
}

func TestSberbank_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := sberbankSource(t, "")
	// Two refunds of one amount are told apart by their date.
	wantStory(t, s, "sberbank", sberbankFixtures, "116544 RUB acct_7", "approved.form", "deposited.form", "refunded.form", "refunded_second.form")
}
