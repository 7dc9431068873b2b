package provider_test

import (
	"testing"

	"hookledger/schema/provider"
)

func prodamusSource(t testing.TB, trust string) *provider.Source {
	t.Helper()
	return sourceOf(t, "prodamus", trust)
}

var prodamusFixtures = []fixture{
	{file: "order_denied.form", want: []string{"10002:order_denied order_denied 2025-11-29T12:00:00Z: status 10002=order_denied"}},
	{file: "success.form", want: []string{"10001 success 2025-11-29T12:00:00Z: +100000 RUB acct_7 success 10001"}},
}

func TestProdamus_Meaning(t *testing.T) {
	t.Parallel()
	checkFixtures(t, prodamusSource(t, ""), "prodamus", prodamusFixtures)
}
