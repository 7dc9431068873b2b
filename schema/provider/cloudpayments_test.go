package provider_test

import (
	"strings"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
)

func cloudPaymentsSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "cloudpayments", trust)
}

var cloudPaymentsFixtures = []fixture{
	{file: "check.form", query: "type=check", want: []string{"check:509 check 2025-11-29T12:00:00Z: ignored"}},
	{file: "confirm.form", query: "type=confirm", want: []string{"confirm:506 confirm 2025-11-29T12:00:00Z: +15000 RUB acct_7 payment 506"}},
	{file: "fail.form", query: "type=fail", want: []string{"fail:510 fail 2025-11-29T12:00:00Z: ignored"}},
	{file: "pay.form", query: "type=pay", want: []string{"pay:505 pay 2025-11-29T12:00:00Z: +19990 RUB acct_7 payment 505; status 505=Completed"}},
	{file: "pay_authorized.form", query: "type=pay", want: []string{"pay:506 pay 2025-11-29T12:00:00Z: status 506=Authorized"}},
	{file: "refund.json", query: "type=refund", want: []string{"refund:507 refund 2025-11-30T12:00:00Z: -9990 RUB acct_7 refund 507"}},
	{file: "refund_no_currency.form", query: "type=refund", want: []string{"refund:508 refund 2025-11-30T12:00:00Z: quarantine bad_currency"}},
}

func TestCloudPayments_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, cloudPaymentsSource(t, ""), "cloudpayments", cloudPaymentsFixtures)
}

func TestCloudPayments_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := cloudPaymentsSource(t, "")
	// A payment in one step, one in two, and a refund in part.
	wantStory(t, s, "cloudpayments", cloudPaymentsFixtures, "25000 RUB acct_7", "check.form", "pay.form", "pay_authorized.form", "confirm.form", "refund.json")
}

// The address is not signed: a refund sent to that of payments is no credit, nor is what failed.
func TestCloudPayments_AnotherAddressMovesNoMoney(t *testing.T) {
	t.Parallel()
	s := cloudPaymentsSource(t, "")
	for _, f := range []fixture{
		{file: "refund.json", query: "type=pay"},
		{file: "refund.json", query: "type=confirm"},
		{file: "refund_no_currency.form", query: "type=pay"},
		{file: "pay.form", query: "type=refund"},
		{file: "pay_authorized.form", query: "type=confirm"},
		{file: "fail.form", query: "type=pay"},
		{file: "check.form", query: "type=pay"},
		{file: "check.form", query: "type=confirm"},
	} {
		if got := f.describe(t, s, "cloudpayments"); len(got) != 1 || !strings.HasSuffix(got[0], "quarantine unclear_movement") {
			t.Errorf("%s?%s: got %v, want quarantine", f.file, f.query, got)
		}
	}
}

// What tells a payment from the question before it is a field that nobody has before it.
func TestCloudPayments_APaymentShowsThatItWasMade(t *testing.T) {
	t.Parallel()
	s := cloudPaymentsSource(t, "")
	const body = `{"TransactionId":9,"Amount":"1.00","Currency":"RUB","AccountId":"a","Status":"Completed","OperationType":"Payment"FIELD}`
	for field, want := range map[string]string{
		``: "quarantine unclear_movement", `,"AuthCode":""`: "quarantine unclear_movement", `,"Token":null`: "quarantine unclear_movement",
		`,"AuthCode":"A1B2C3"`: "+100 RUB a payment 9", `,"Token":"tk_1"`: "+100 RUB a payment 9", `,"TotalFee":0`: "+100 RUB a payment 9", `,"Rrn":"1"`: "+100 RUB a payment 9",
	} {
		d := provider.Delivery{Query: "type=confirm", Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(strings.Replace(body, "FIELD", field, 1))}
		items, err := s.Identify(d)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Map(&schema.Event{Source: "x", ID: items[0].ID, Type: items[0].Type, ContentType: items[0].ContentType, Body: items[0].Body})
		if got := describe(m, err); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}
