package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func mercadoPagoSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "mercadopago", trust)
}

var mercadoPagoFixtures = []fixture{
	{file: "payment.created.json", query: "data.id=999&type=payment", want: []string{"12345 payment.created 2025-11-29T12:00:00Z: ignored"}},
	{file: "payment.updated.json", query: "data.id=999&type=payment", want: []string{"12346 payment.updated 2025-11-29T12:00:00Z: ignored"}},
}

func TestMercadoPago_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, mercadoPagoSource(t, ""), "mercadopago", mercadoPagoFixtures)
}
