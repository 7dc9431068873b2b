package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func adyenSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "adyen", trust)
}

var adyenFixtures = []fixture{
	{file: "authorisation.json", want: []string{"NC6HT9CRT65ZGN82:AUTHORISATION:true AUTHORISATION 2025-11-29T12:00:00Z: +32500 EUR acct_7 AUTHORISATION NC6HT9CRT65ZGN82; status NC6HT9CRT65ZGN82=AUTHORISATION"}},
	{file: "authorisation_isk.json", want: []string{"NC6HT9CRT65ZGN84:AUTHORISATION:true AUTHORISATION 2025-11-29T12:00:00Z: +1500 ISK acct_7 AUTHORISATION NC6HT9CRT65ZGN84; status NC6HT9CRT65ZGN84=AUTHORISATION"}},
	{file: "authorisation_refused.json", want: []string{"NC6HT9CRT65ZGN83:AUTHORISATION:false AUTHORISATION 2025-11-29T12:00:00Z: status NC6HT9CRT65ZGN83=REFUSED"}},
	{file: "batch_captures.json", want: []string{
		"CAP1:CAPTURE:true CAPTURE 2025-11-29T12:00:00Z: status CAP1=CAPTURE",
		"CAP2:CAPTURE:true CAPTURE 2025-11-29T12:00:00Z: status CAP2=CAPTURE",
	}},
	{file: "batch_refunds.json", want: []string{
		"REF1:REFUND:true REFUND 2025-11-29T12:00:00Z: -5000 EUR acct_7 REFUND REF1; status REF1=REFUND",
		"REF2:REFUND:true REFUND 2025-11-29T12:00:00Z: -5000 EUR acct_7 REFUND REF2; status REF2=REFUND",
		"REF3:REFUND:false REFUND 2025-11-29T12:00:00Z: status REF3=REFUSED",
	}},
	{file: "cancel_or_refund.json", want: []string{"COR1:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "cancel_or_refund_cancelled.json", want: []string{"COR2:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "cancel_or_refund_unsaid.json", want: []string{"COR3:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "capture_failed.json", want: []string{"CAP2:CAPTURE_FAILED:true CAPTURE_FAILED 2025-11-29T12:00:00Z: -12500 EUR acct_7 CAPTURE_FAILED CAP2"}},
	{file: "chargeback_reversed.json", want: []string{"DSP1:CHARGEBACK_REVERSED:true CHARGEBACK_REVERSED 2025-11-29T12:00:00Z: +10000 EUR acct_7 CHARGEBACK_REVERSED DSP1"}},
	{file: "chargebacks.json", want: []string{
		"DSP1:NOTIFICATION_OF_CHARGEBACK:true NOTIFICATION_OF_CHARGEBACK 2025-11-29T12:00:00Z: status DSP1=NOTIFICATION_OF_CHARGEBACK",
		"DSP1:CHARGEBACK:true CHARGEBACK 2025-11-29T12:00:00Z: -10000 EUR acct_7 CHARGEBACK DSP1",
	}},
	{file: "refund_failed.json", want: []string{"REF1:REFUND_FAILED:true REFUND_FAILED 2025-11-29T12:00:00Z: +5000 EUR acct_7 REFUND_FAILED REF1"}},
	{file: "report_available.json", want: []string{"settlement_detail_report_batch_1.csv:REPORT_AVAILABLE:true REPORT_AVAILABLE 2025-11-29T12:00:00Z: ignored"}},
}

func TestAdyen_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, adyenSource(t, ""), "adyen", adyenFixtures)
}

func TestAdyen_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := adyenSource(t, "")
	// Two refunds of one amount in one delivery, one of which failed later; a chargeback
	// that was reversed.
	wantStory(t, s, "adyen", adyenFixtures, "27500 EUR acct_7",
		"authorisation.json", "batch_captures.json", "batch_refunds.json", "refund_failed.json", "chargebacks.json", "chargeback_reversed.json")
}

// Whether CANCEL_OR_REFUND refunded is not signed.
func TestAdyen_UnsignedFieldsMoveMoneyOnlyIfTrusted(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"cancel_or_refund.json":           "COR1:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: -5000 EUR acct_7 CANCEL_OR_REFUND COR1; status COR1=CANCEL_OR_REFUND",
		"cancel_or_refund_cancelled.json": "COR2:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: status COR2=CANCEL_OR_REFUND",
		"cancel_or_refund_unsaid.json":    "COR3:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine bad_direction",
	} {
		f := fixture{file: file}
		if got := f.describe(t, adyenSource(t, "body"), "adyen"); len(got) != 1 || got[0] != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func adyenManualCaptureSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "adyen-manual-capture", trust)
}

var adyenManualCaptureFixtures = []fixture{
	{file: "authorisation.json", want: []string{"NC6HT9CRT65ZGN82:AUTHORISATION:true AUTHORISATION 2025-11-29T12:00:00Z: status NC6HT9CRT65ZGN82=AUTHORISATION"}},
	{file: "authorisation_isk.json", want: []string{"NC6HT9CRT65ZGN84:AUTHORISATION:true AUTHORISATION 2025-11-29T12:00:00Z: status NC6HT9CRT65ZGN84=AUTHORISATION"}},
	{file: "authorisation_refused.json", want: []string{"NC6HT9CRT65ZGN83:AUTHORISATION:false AUTHORISATION 2025-11-29T12:00:00Z: status NC6HT9CRT65ZGN83=REFUSED"}},
	{file: "batch_captures.json", want: []string{
		"CAP1:CAPTURE:true CAPTURE 2025-11-29T12:00:00Z: +20000 EUR acct_7 CAPTURE CAP1; status CAP1=CAPTURE",
		"CAP2:CAPTURE:true CAPTURE 2025-11-29T12:00:00Z: +12500 EUR acct_7 CAPTURE CAP2; status CAP2=CAPTURE",
	}},
	{file: "batch_refunds.json", want: []string{
		"REF1:REFUND:true REFUND 2025-11-29T12:00:00Z: -5000 EUR acct_7 REFUND REF1; status REF1=REFUND",
		"REF2:REFUND:true REFUND 2025-11-29T12:00:00Z: -5000 EUR acct_7 REFUND REF2; status REF2=REFUND",
		"REF3:REFUND:false REFUND 2025-11-29T12:00:00Z: status REF3=REFUSED",
	}},
	{file: "cancel_or_refund.json", want: []string{"COR1:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "cancel_or_refund_cancelled.json", want: []string{"COR2:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "cancel_or_refund_unsaid.json", want: []string{"COR3:CANCEL_OR_REFUND:true CANCEL_OR_REFUND 2025-11-29T12:00:00Z: quarantine unauthenticated_amount"}},
	{file: "capture_failed.json", want: []string{"CAP2:CAPTURE_FAILED:true CAPTURE_FAILED 2025-11-29T12:00:00Z: -12500 EUR acct_7 CAPTURE_FAILED CAP2"}},
	{file: "chargeback_reversed.json", want: []string{"DSP1:CHARGEBACK_REVERSED:true CHARGEBACK_REVERSED 2025-11-29T12:00:00Z: +10000 EUR acct_7 CHARGEBACK_REVERSED DSP1"}},
	{file: "chargebacks.json", want: []string{
		"DSP1:NOTIFICATION_OF_CHARGEBACK:true NOTIFICATION_OF_CHARGEBACK 2025-11-29T12:00:00Z: status DSP1=NOTIFICATION_OF_CHARGEBACK",
		"DSP1:CHARGEBACK:true CHARGEBACK 2025-11-29T12:00:00Z: -10000 EUR acct_7 CHARGEBACK DSP1",
	}},
	{file: "refund_failed.json", want: []string{"REF1:REFUND_FAILED:true REFUND_FAILED 2025-11-29T12:00:00Z: +5000 EUR acct_7 REFUND_FAILED REF1"}},
	{file: "report_available.json", want: []string{"settlement_detail_report_batch_1.csv:REPORT_AVAILABLE:true REPORT_AVAILABLE 2025-11-29T12:00:00Z: ignored"}},
}

func TestAdyenManualCapture_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, adyenManualCaptureSource(t, ""), "adyen", adyenManualCaptureFixtures)
}

func TestAdyenManualCapture_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := adyenManualCaptureSource(t, "")
	// Two partial captures of one authorisation, one of which failed later.
	wantStory(t, s, "adyen", adyenManualCaptureFixtures, "20000 EUR acct_7", "authorisation.json", "batch_captures.json", "capture_failed.json")
}

func adyenPlatformSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "adyen-platform", trust)
}

var adyenPlatformFixtures = []fixture{
	{file: "transfer.created.json", want: []string{"TRF1:balancePlatform.transfer.created:1 balancePlatform.transfer.created 2025-11-29T11:00:01Z: status TRF1=received"}},
	{file: "transfer.updated_booked.json", want: []string{"TRF1:balancePlatform.transfer.updated:3 balancePlatform.transfer.updated 2025-11-29T11:00:03Z: -9000 EUR BA00000001 transfer TRF1; status TRF1=booked"}},
	{file: "transfer.updated_incoming.json", want: []string{"TRF2:balancePlatform.transfer.updated:2 balancePlatform.transfer.updated 2025-11-29T11:00:02Z: +20000 EUR BA00000001 transfer TRF2; status TRF2=booked"}},
	{file: "transfer.updated_returned.json", want: []string{"TRF1:balancePlatform.transfer.updated:5 balancePlatform.transfer.updated 2025-11-29T11:00:05Z: -9000 EUR BA00000001 transfer TRF1; +9000 EUR BA00000001 transfer_returned TRF1; status TRF1=returned"}},
}

func TestAdyenPlatform_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, adyenPlatformSource(t, ""), "adyen-platform", adyenPlatformFixtures)
}

func TestAdyenPlatform_EveryMovementIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := adyenPlatformSource(t, "")
	wantStory(t, s, "adyen-platform", adyenPlatformFixtures, "20000 EUR BA00000001",
		"transfer.created.json", "transfer.updated_booked.json", "transfer.updated_returned.json", "transfer.updated_incoming.json")
}
