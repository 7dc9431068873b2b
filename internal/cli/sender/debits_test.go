package sender

import (
	"testing"

	"hookledger/schema/provider"
)

// A source without a rule that debits is sent credits, whatever share of debits was
// asked for.
func TestNewEvent_SourceThatCannotDebitIsCredited(t *testing.T) {
	t.Parallel()
	source, err := provider.New(provider.Config{
		Name: "coinbase", Provider: "coinbasecommerce",
		Secrets: []provider.SecretConfig{{Value: "test"}},
		Account: []string{"event.data.metadata.account_id"},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEvent(source, &Options{Accounts: 1, Debits: 1, Currencies: []string{"EUR"}, Seed: 1}, 0)
	if err != nil || e.fact.Amount <= 0 {
		t.Errorf("got amount %d and error %v, want a credit", e.fact.Amount, err)
	}
}
