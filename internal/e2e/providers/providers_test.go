package providers

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/ingest/signature"
	"hookledger/internal/config"
	"hookledger/internal/testkit"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// delivery is a payload and what becomes of it.
type delivery struct {
	source string
	// file is under schema/provider/testdata/<provider>; body stands in for it.
	file, body string
	method     string
	query      string
	header     map[string]string
	// status and answer are what the provider wants back; zero is 200.
	status int
	answer string
	// entries are what the ledger holds after it, "amount currency account" in order.
	entries []string
	// outcome is of the events without entries: ignored, or the reason of a quarantine.
	outcome string
	// composed is for a provider that has no row yet: what `send` would post.
	composed bool
}

var deliveries = []delivery{
	{source: "stripe", file: "payment_intent.succeeded.json", entries: []string{"5000 USD acct_7"}},
	{source: "standardwebhooks", body: example, header: map[string]string{"Webhook-Id": "msg_1"}, entries: []string{"700 EUR acct_7"}},
	{source: "generic", body: example, entries: []string{"700 EUR acct_7"}},
	{source: "github", body: example, header: map[string]string{"X-Github-Delivery": "dlv_1", "X-Github-Event": "payment.succeeded"}, entries: []string{"700 EUR acct_7"}},
	{source: "adyen", file: "authorisation.json", answer: "[accepted]", entries: []string{"32500 EUR acct_7"}},
	{source: "adyen", file: "batch_refunds.json", answer: "[accepted]", entries: []string{"-5000 EUR acct_7", "-5000 EUR acct_7"}},
	{source: "adyen-manual-capture", file: "batch_captures.json", answer: "[accepted]", entries: []string{"20000 EUR acct_7", "12500 EUR acct_7"}},
	{source: "adyen-platform", file: "transfer.updated_incoming.json", answer: "[accepted]", entries: []string{"20000 EUR BA00000001"}},
	{source: "paypal", file: "capture.completed.json", entries: []string{"10000 USD acct_7"}},
	{source: "paddle", file: "transaction.completed.json", entries: []string{"3475 USD acct_7"}},
	{source: "square", file: "payment.updated.json", entries: []string{"2300 USD acct_7"}},
	{source: "razorpay", file: "payment.captured.json", header: map[string]string{"X-Razorpay-Event-Id": "evt_N"}, entries: []string{"50000 INR acct_7"}},
	{source: "paystack", file: "charge.success.json", entries: []string{"10000 NGN acct_7"}},
	{source: "flutterwave-v3", file: "charge.completed.json", outcome: "unauthenticated_amount"},
	{source: "flutterwave-v3-trusted", file: "charge.completed.json", entries: []string{"10050 NGN acct_7"}},
	{source: "flutterwave-v4", file: "charge.completed.json", entries: []string{"150050 NGN acct_7"}},
	{source: "checkoutcom", file: "payment_captured.json", entries: []string{"4000 USD acct_7"}},
	{source: "gocardless", file: "batch.json", status: http.StatusNoContent, outcome: "ignored"},
	{source: "shopify", file: "orders_paid.json", header: map[string]string{"X-Shopify-Topic": "orders/paid", "X-Shopify-Webhook-Id": "b54557e4"}, entries: []string{"40495 USD 115310627314723954"}},
	{source: "coinbasecommerce", file: "charge_confirmed.json", entries: []string{"1250 USD acct_7"}},
	{source: "mercadopago", file: "payment.created.json", query: "data.id=123456&type=payment", header: map[string]string{"X-Request-Id": "req-1"}, outcome: "ignored"},
	{source: "braintree", file: "transaction_settled.form", entries: []string{"10000 EUR acct_7"}},
	{source: "mollie", file: "payment.paid.json", entries: []string{"7500 EUR acct_7"}},
	{source: "mollie-classic", file: "payment.form", outcome: "ignored"},
	{source: "lemonsqueezy", file: "order_created.json", entries: []string{"999 USD acct_7"}},
	{source: "xendit", file: "invoice.paid.json", header: map[string]string{"Webhook-Id": "wh_x"}, outcome: "unauthenticated_amount"},
	{source: "xendit-trusted", file: "invoice.paid.json", header: map[string]string{"Webhook-Id": "wh_x"}, entries: []string{"5000000 IDR acct_7"}},
	{source: "wise", file: "balances.credit.json", header: map[string]string{"X-Delivery-Id": "dlv_w"}, entries: []string{"123 EUR 2"}},
	{source: "plaid", file: "transfer.events_update.json", outcome: "ignored"},
	{source: "yookassa", file: "payment.succeeded.json", outcome: "unauthenticated_amount"},
	{source: "yookassa-trusted", file: "payment.succeeded.json", entries: []string{"250000 RUB acct_7"}},
	{source: "cloudpayments", file: "pay.form", query: "type=pay", answer: `{"code":0}`, entries: []string{"19990 RUB acct_7"}},
	{source: "tbank", file: "confirmed.json", answer: "OK", entries: []string{"19900 RUB acct_7"}},
	{source: "robokassa", file: "payment.form", answer: "OK450009", entries: []string{"10026 RUB acct_7"}},
	{source: "prodamus", file: "success.form", entries: []string{"100000 RUB acct_7"}},
	{source: "sberbank", file: "deposited.form", method: http.MethodGet, entries: []string{"123456 RUB acct_7"}},
}

// example is a payload of the rules that `sources new` writes where meaning is configured.
const example = `{"id":"evt_1","type":"payment.succeeded","created_at":"2026-11-29T12:00:00Z","timestamp":"2026-11-29T12:00:00Z","data":{"account_id":"acct_7","amount":700,"currency":"EUR","payment_id":"pay_1"}}`

// secretOf is a secret in the shape that a provider gives out.
func secretOf(name string) string {
	switch name {
	case "adyen", "adyen-manual-capture", "adyen-platform":
		return "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	case "standardwebhooks":
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-of-standard-webhooks"))
	}
	return "canary-of-" + name + "-5b2e9d"
}

// world is the product with a source for every provider.
type world struct {
	dir, config, url, database string
	sources                    map[string]*source.Source
	env                        []string
	wise                       *rsa.PrivateKey
	internet                   *internet
}

func TestProviders_FromTheWireToTheBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deliveries := w.deliveries()
	// Twice: what is delivered again moves nothing.
	for range 2 {
		for _, d := range deliveries {
			w.post(t, d)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	db, err := pgx.Connect(ctx, w.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(ctx)
	testkit.Eventually(t, time.Minute, func() error { return w.compare(ctx, db, deliveries) })
	w.run(t, "verify")
	w.internet.mu.Lock()
	defer w.internet.mu.Unlock()
	for _, asked := range w.internet.asked {
		if asked != "CONNECT api.paypal.com:443" && asked != "CONNECT production.plaid.com:443" {
			t.Errorf("the product asked %s", asked)
		}
	}
}

// deliveries are those of the table, and one for each provider that is in no row of it.
func (w *world) deliveries() []delivery {
	all := slices.Clone(deliveries)
	for _, name := range provider.Names() {
		listed := slices.ContainsFunc(deliveries, func(d delivery) bool { return w.sources[d.source].Provider() == name })
		if !listed {
			all = append(all, delivery{source: name, composed: true, entries: []string{"700 EUR acct_7"}})
		}
	}
	return all
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kafka := testkit.Kafka(t)
	w := &world{dir: t.TempDir(), database: testkit.PostgresURL(t), sources: map[string]*source.Source{}, internet: newInternet(t)}
	w.config = filepath.Join(w.dir, "hookledger.yaml")
	var err error
	if w.wise, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&w.wise.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "HTTPS_PROXY="+w.internet.proxy, "SSL_CERT_FILE="+w.internet.root)
	var text strings.Builder
	fmt.Fprintf(&text, "kafka: { brokers: [%s], topic: %s, group: %s, partitions: 3, replication: 1, durability: single, retention: 24h }\ndatabase: { url: %q }\nsources:\n",
		strings.Join(kafka.Brokers(), ", "), testkit.UniqueName("payments"), testkit.UniqueName("hookledger"), w.database)
	for _, name := range provider.Names() {
		for _, as := range []string{name, name + "-trusted"} {
			if as != name && !slices.ContainsFunc(deliveries, func(d delivery) bool { return d.source == as }) {
				continue
			}
			text.WriteString(w.sourceText(t, name, as))
			secret := secretOf(name)
			if name == "wise" {
				secret = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
			}
			w.env = append(w.env, strings.ToUpper(strings.ReplaceAll(as, "-", "_"))+"_WEBHOOK_SECRET="+secret)
		}
	}
	if err := os.WriteFile(w.config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Parse(w.config, []byte(text.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range loaded.Sources {
		s, err := provider.New(c)
		if err != nil {
			t.Fatal(err)
		}
		w.sources[c.Name] = s
	}
	w.run(t, "migrate", "up")
	w.run(t, "topics", "apply")
	address, admin := testkit.FreeAddr(t), testkit.FreeAddr(t)
	w.start(t, "ingest", admin, "HOOKLEDGER_INGEST_LISTEN="+address, "HOOKLEDGER_INGEST_ADMIN="+admin)
	w.url = "http://" + address + "/webhooks/"
	admin = testkit.FreeAddr(t)
	w.start(t, "consume", admin, "HOOKLEDGER_CONSUME_ADMIN="+admin)
	return w
}

// sourceText is a source as the product writes it.
func (w *world) sourceText(t *testing.T, name, as string) string {
	t.Helper()
	text := w.run(t, "sources", "new", name, "--name", as, "--url", "https://pay.example.com")
	if as != name {
		trusted := strings.Replace(text, "    # trust: signed_fields_only\n", "    trust: body\n", 1)
		if trusted == text {
			t.Fatalf("%s: there is no trust to change in\n%s", name, text)
		}
		text = trusted
	}
	if name == "yookassa" {
		text += "    signature: { networks: [127.0.0.1] }\n"
	}
	return text
}

func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if args[0] != "sources" {
		args = append([]string{"--config", w.config}, args...)
	}
	cmd := exec.CommandContext(ctx, testkit.Binary(t), args...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), w.env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("hookledger %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), complaints.String())
	}
	return out.String()
}

func (w *world) start(t *testing.T, role, admin string, env ...string) {
	t.Helper()
	testkit.StartHookledger(t, testkit.ProcessOptions{
		Args: []string{"--config", w.config, role}, Env: append(slices.Clone(w.env), env...), Dir: w.dir,
		ReadyURL: "http://" + admin + "/readyz",
	})
}

// Signatures of the payloads in testdata, which are of nobody's secret.
var (
	adyenUnsigned = regexp.MustCompile(`("hmacSignature"\s*:\s*)"[^"]*"`)
	tbankToken    = regexp.MustCompile(`"Token"\s*:\s*"[^"]*",?`)
	formSignature = regexp.MustCompile(`(?:^|&)(?:bt_signature|SignatureValue|checksum)=[^&]*`)
)

// message is the payload of a delivery without its signature.
func (w *world) message(t *testing.T, d delivery) signature.Message {
	t.Helper()
	s := w.sources[d.source]
	if d.composed {
		made, err := s.Compose(source.Fact{EventID: "evt_1", Account: "acct_7", Amount: 700, Currency: "EUR", OccurredAt: time.Now()})
		if err != nil {
			t.Fatalf("%v: give the provider a row with a payload", err)
		}
		return signature.Message{Query: made.Query, Header: made.Header, Body: made.Body, At: time.Now()}
	}
	body := []byte(d.body)
	if d.file != "" {
		folder := strings.TrimSuffix(s.Provider(), "-manual-capture") // the same notifications
		text, err := os.ReadFile(filepath.Join("../../../schema/provider/testdata", folder, d.file))
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.TrimSpace(text)
	}
	m := signature.Message{Method: d.method, Query: d.query, Header: http.Header{}, At: time.Now()}
	m.Header.Set("Content-Type", "application/json")
	if filepath.Ext(d.file) == ".form" {
		m.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		body = bytes.TrimPrefix(formSignature.ReplaceAll(body, nil), []byte("&"))
	}
	for name, value := range d.header {
		m.Header.Set(name, value)
	}
	switch s.Provider() {
	case "adyen", "adyen-manual-capture":
		body = adyenUnsigned.ReplaceAll(body, []byte(`$1"__hookledger_signature__"`))
	case "tbank":
		body = tbankToken.ReplaceAll(body, nil)
	}
	if m.Body = body; d.method == http.MethodGet {
		m.Header.Del("Content-Type")
		m.Query, m.Body = string(body), nil
	}
	return m
}

// sign signs as the provider does.
func (w *world) sign(t *testing.T, d delivery) signature.Message {
	t.Helper()
	s, m := w.sources[d.source], w.message(t, d)
	switch s.Provider() {
	case "paypal":
		w.internet.signPayPal(t, m.Header, m.Body, s.Signature().WebhookID)
	case "plaid":
		w.internet.signPlaid(t, m.Header, m.Body)
	case "wise":
		sum := sha256.Sum256(m.Body)
		value, err := rsa.SignPKCS1v15(rand.Reader, w.wise, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		m.Header.Set("X-Signature-SHA256", base64.StdEncoding.EncodeToString(value))
	default:
		signed, err := signature.Sign(s.Signature(), source.Secret(secretOf(s.Provider())), m)
		if err != nil {
			t.Fatalf("%s: %v", d.source, err)
		}
		return signed
	}
	return m
}

func (w *world) post(t *testing.T, d delivery) {
	t.Helper()
	m := w.sign(t, d)
	url, method := w.url+d.source, http.MethodPost
	if m.Query != "" {
		url += "?" + m.Query
	}
	if m.Method != "" {
		method = m.Method
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = m.Header
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	status := d.status
	if status == 0 {
		status = http.StatusOK
	}
	if response.StatusCode != status || string(answer) != d.answer {
		t.Errorf("%s %s: got %d %q, want %d %q", d.source, d.file, response.StatusCode, answer, status, d.answer)
	}
}

// compare tells where ledger, outcomes and quarantine differ from the table.
func (w *world) compare(ctx context.Context, db *pgx.Conn, deliveries []delivery) error {
	want := map[string][]string{}
	for _, d := range deliveries {
		want[d.source] = append(want[d.source], d.entries...)
	}
	var errs []error
	for source, entries := range want {
		slices.Sort(entries)
		got, err := texts(ctx, db, `select amount || ' ' || currency || ' ' || account_id from ledger_entries where source = $1`, source)
		if err != nil {
			return err
		}
		if !slices.Equal(got, entries) {
			errs = append(errs, fmt.Errorf("%s: got entries %q, want %q", source, got, entries))
		}
	}
	for _, d := range deliveries {
		if d.outcome == "" {
			continue
		}
		got, err := texts(ctx, db, `select distinct outcome from processed_events where source = $1
			union select distinct reason from quarantined_events where source = $1`, d.source)
		if err != nil {
			return err
		}
		if !slices.Equal(got, []string{d.outcome}) {
			errs = append(errs, fmt.Errorf("%s: got outcomes %q, want %q", d.source, got, d.outcome))
		}
	}
	return errors.Join(errs...)
}

func texts(ctx context.Context, db *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(list)
	return list, err
}
