package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

const paymentsTestToken = "shop-token-0123456789"

// payFor posts a payment and returns status, body and whether it was a replay.
func payFor(t *testing.T, addr, token, key, from string, amount int) (int, string, bool) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/payments",
		strings.NewReader(fmt.Sprintf(`{"from":%q,"to":"user_2","amount":%d,"currency":"EUR","reference":"r"}`, from, amount)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}, "Authorization": {"Bearer " + token}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header.Get("Idempotent-Replayed") == "true"
}

func TestPayments_RunPayAndStop(t *testing.T) {
	t.Parallel()
	in := install(t)
	listen, admin := testkit.FreeAddr(t), testkit.FreeAddr(t)
	token := filepath.Join(in.dir, "token")
	if err := os.WriteFile(token, []byte(paymentsTestToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in.run(t, "payments").want(t, app.ExitUsage, "payments.tokens", "there is none")
	text, err := os.ReadFile(in.file)
	if err != nil {
		t.Fatal(err)
	}
	configure := func(durability string) {
		more := fmt.Sprintf("\npayments: { listen: %q, admin: %q, durability: %s, tokens: [{ client: shop, file: %s, from: [\"acct_*\"] }] }\n", listen, admin, durability, token)
		if err := os.WriteFile(in.file, append(append([]byte{}, text...), more...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("replicated")
	in.run(t, "payments").want(t, app.ExitUsage, "hookledger migrate up")
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "payments").want(t, app.ExitUsage, "synchronous_standby_names is empty", "payments.durability: single")
	configure("single")

	p := in.start(t, "payments", admin)
	in.run(t, "ready", "payments").want(t, app.ExitOK)
	if code, body, _ := payFor(t, listen, "not-the-token-0123", "k", "acct_1", 5); code != 401 {
		t.Errorf("got %d %s, want 401", code, body)
	}
	if code, body, _ := payFor(t, listen, paymentsTestToken, "k", "user_1", 5); code != 403 {
		t.Errorf("got %d %s, want 403", code, body)
	}
	if code, body, _ := payFor(t, listen, paymentsTestToken, "poor", "acct_1", 5); code != 402 {
		t.Errorf("got %d %s, want 402", code, body)
	}
	execSQL(t, in.database, `
		with e as (insert into ledger_entries (amount, applied_at, effect_key, amendment_id, line, currency, account_id, contra, rule, movement_id)
			values (100, now(), gen_random_uuid(), gen_random_uuid(), 0, 'EUR', 'acct_1', 'test', 'test', 'test'))
		insert into accounts (balance, entry_count, updated_at, account_id, currency) values (100, 1, now(), 'acct_1', 'EUR')`)
	code, first, _ := payFor(t, listen, paymentsTestToken, "k", "acct_1", 5)
	if code != 201 {
		t.Fatalf("got %d %s, want 201", code, first)
	}
	if code, body, replayed := payFor(t, listen, paymentsTestToken, "k", "acct_1", 5); code != 201 || body != first || !replayed {
		t.Errorf("got %d %s, want a replay of %s", code, body, first)
	}
	if code, body, _ := payFor(t, listen, paymentsTestToken, "another-key", "acct_1", 5); code != 201 {
		t.Errorf("got %d %s, want 201", code, body)
	}
	checkMetricsAreDocumented(t, admin)
	list := jsonOf(t, in.run(t, "accounts", "duplicates", "--json"), "accounts-duplicates")["duplicates"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["idempotency_key"] != "another-key" || list[0].(map[string]any)["of_idempotency_key"] != "k" {
		t.Errorf("duplicates: got %v, want another-key of k", list)
	}
	if r := in.run(t, "accounts", "duplicates"); r.code != app.ExitOK || !strings.Contains(r.stdout, "another-key") || !strings.Contains(r.stdout, "0.05 EUR") {
		t.Errorf("duplicates: got %+v", r)
	}

	if code := p.Stop(time.Minute); code != app.ExitOK {
		t.Errorf("after SIGTERM: exit code %d, want 0", code)
	}
	if out := p.Output(); strings.Contains(out, paymentsTestToken) || strings.Contains(out, "acct_1") {
		t.Errorf("the log holds a token or a payload:\n%s", out)
	}
	p.Restart()
	testkit.Eventually(t, time.Minute, func() error {
		if code, body, replayed := payFor(t, listen, paymentsTestToken, "k", "acct_1", 5); code != 201 || body != first || !replayed {
			return fmt.Errorf("after a restart: got %d %s, want a replay", code, body)
		}
		return nil
	})
}
