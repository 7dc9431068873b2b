package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func mollieClassicSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "mollie-classic", trust)
}

var mollieClassicFixtures = []fixture{
	{file: "payment.form", want: []string{"tr_d0b0E3EA3v:dlv_1 changed -: ignored"}},
}

func TestMollieClassic_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, mollieClassicSource(t, ""), "mollie-classic", mollieClassicFixtures)
}
