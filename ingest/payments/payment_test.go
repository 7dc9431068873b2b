package payments

import (
	"testing"
)

func TestPost_PaysOnceAndReplays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fund("shop:1", 1000)
	first := b.post("k1", payment("shop:1", "x", 300))
	if first.code != 201 {
		t.Fatal(first)
	}
	again := b.post(`"k1"`, payment("shop:1", "x", 300))
	if again.code != 201 || string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want the same as %s", again, first)
	}
	if b.balance("shop:1") != 700 || b.balance("x") != 300 {
		t.Errorf("balances: got %d and %d, want 700 and 300", b.balance("shop:1"), b.balance("x"))
	}
	poor := b.post("k2", payment("shop:1", "x", 701))
	if poor.code != 402 || poor.problem() != "insufficient-funds" {
		t.Errorf("got %s, want 402", poor)
	}
	if r := b.post("k2", payment("shop:1", "x", 1)); r.code != 422 {
		t.Errorf("got %s, want 422", r)
	}
	t.Log(first, poor, b.get("/v1/accounts/shop:1", shopToken), b.get(first.header.Get("Location"), shopToken))
	b.lawful()
}
