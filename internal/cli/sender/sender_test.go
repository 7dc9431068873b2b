package sender

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/schema"
	"hookledger/schema/provider"
)

// sources are of each kind: with an ID in the body, in a header, derived, in a batch,
// in a form, with decimals, with one currency.
const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

func sources(t *testing.T) []*provider.Source {
	t.Helper()
	credit := provider.PostingConfig{
		Type: []string{"paid"}, Account: []string{"a.b"}, Amount: "m.amount", Unit: "minor",
		Currency: provider.Locator{Path: "m.currency"}, Direction: provider.Direction{Always: "credit"},
	}
	debit := credit
	debit.Type, debit.Direction = []string{"refunded"}, provider.Direction{Always: "debit"}
	rules := []provider.PostingConfig{credit, debit}
	event := provider.EventConfig{ID: provider.Locator{Path: "e.id"}, Type: provider.Locator{Path: "e.type"}, Time: provider.Locator{Path: "e.at"}}
	with := func(f func(*provider.Config)) provider.Config {
		c := provider.Config{
			Name: "acme", Provider: "generic", Secrets: []provider.SecretConfig{{Value: secret}},
			Signature: provider.SignatureConfig{Header: "X-Signature"}, Event: event, Postings: rules,
		}
		f(&c)
		return c
	}
	major := credit
	major.Unit, major.Type, major.Key = "major", nil, "all"
	major.Direction = provider.Direction{Always: "signed"}
	configs := []provider.Config{
		{Name: "stripe", Provider: "stripe", Secrets: []provider.SecretConfig{{Value: secret}}, Account: []string{"data.object.metadata.account_id"}},
		{Name: "standard", Provider: "standardwebhooks", Secrets: []provider.SecretConfig{{Value: secret}}, Postings: rules},
		with(func(*provider.Config) {}),
		with(func(c *provider.Config) {
			c.Signature.TimestampHeader, c.Signature.Encoding, c.Signature.Prefix = "X-Time", "base64", "v1="
			c.Event.Items = "events"
		}),
		with(func(c *provider.Config) { c.Event.ID = provider.Locator{Derive: []string{"e.ref", "m.amount"}} }),
		with(func(c *provider.Config) { c.Postings = []provider.PostingConfig{major} }),
	}
	var all []*provider.Source
	for _, c := range configs {
		s, err := provider.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// receiver checks deliveries as ingest does and remembers their meaning.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	money map[string]int64 // by account and currency, each event once
	seen  map[string]int
	// answer overrides the answer of the n-th delivery, from 1; zero lets it be.
	answer func(n int64) int
	n      atomic.Int64
}

func receive(t *testing.T, source *provider.Source, answer func(n int64) int) *receiver {
	t.Helper()
	ring, err := signature.NewKeyring(source, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.New(source.Signature(), ring)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{money: map[string]int64{}, seen: map[string]int{}, answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := r.n.Add(1)
		body, err := io.ReadAll(req.Body)
		if err != nil || req.URL.Path != "/webhooks/"+source.Name() {
			t.Errorf("read %s: %v", req.URL.Path, err)
		}
		if _, err := verifier.Verify(signature.Request{Header: req.Header, Body: body, At: time.Now()}); err != nil {
			t.Errorf("%s: %v", source.Name(), err)
		}
		if answer != nil {
			switch code := answer(n); code {
			case 0:
			case -1:
				panic(http.ErrAbortHandler) // the connection breaks
			default:
				w.WriteHeader(code)
				return
			}
		}
		r.apply(t, source, req.Header, body)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) apply(t *testing.T, source *provider.Source, header http.Header, body []byte) {
	items, err := source.Identify(provider.Delivery{Header: header, Body: body})
	if err != nil || len(items) != 1 {
		t.Errorf("%s: %d items, %v in %s", source.Name(), len(items), err, body)
		return
	}
	it := items[0]
	m, err := source.Map(&schema.Event{Source: source.Key(), ID: it.ID, Type: it.Type, OccurredAt: it.OccurredAt, Body: it.Body, ContentType: it.ContentType})
	if err != nil || len(m.Postings) != 1 {
		t.Errorf("%s: %d postings, %v in %s", source.Name(), len(m.Postings), err, body)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[it.ID]++; r.seen[it.ID] == 1 {
		p := m.Postings[0]
		r.money[p.Account+" "+p.Currency] += p.Amount
	}
}

func options(url string) Options {
	return Options{
		URL: url, Count: 60, Accounts: 3, Duplicates: 0.5, Currencies: []string{"EUR", "USD"}, Concurrency: 8, Seed: 11,
		Retry: true, GiveUp: 20 * time.Second,
	}
}

func TestSend_FitsEveryKindOfSource(t *testing.T) {
	t.Parallel()
	for _, source := range sources(t) {
		r := receive(t, source, nil)
		o := options(r.URL)
		if source.Provider() != "stripe" {
			o.Debits = 0.5
		}
		s, err := Send(t.Context(), source, o, "")
		if err != nil {
			t.Fatal(err)
		}
		if s.Acknowledged != o.Count || s.Refused+s.Unknown+s.Retries > 0 || s.Deliveries <= o.Count {
			t.Errorf("%s: got %+v", source.Name(), s)
		}
		if len(r.seen) != o.Count || int(r.n.Load()) != s.Deliveries {
			t.Errorf("%s: the receiver saw %d events in %d deliveries, want %d in %d", source.Name(), len(r.seen), r.n.Load(), o.Count, s.Deliveries)
		}
		var eur int64
		for account, amount := range r.money {
			if bytes.HasSuffix([]byte(account), []byte(" EUR")) {
				eur += amount
			}
		}
		if s.Acked[0] != (Money{"EUR", eur}) {
			t.Errorf("%s: summary says %+v, the receiver %d EUR", source.Name(), s.Acked, eur)
		}
	}
}

func TestSend_SameSeedSameBytes(t *testing.T) {
	t.Parallel()
	source := sources(t)[2]
	o := options("")
	for i := range 20 {
		a, errA := newEvent(source, &o, i)
		b, errB := newEvent(source, &o, i)
		if errA != nil || errB != nil || a.sha256 != b.sha256 {
			t.Errorf("event %d: %v, %v, %s, %s", i, errA, errB, a.sha256, b.sha256)
		}
	}
	other := o
	other.Seed++
	a, _ := newEvent(source, &o, 0)
	b, _ := newEvent(source, &other, 0)
	if a.fact.EventID == b.fact.EventID {
		t.Error("two seeds share event IDs")
	}
	order := schedule(&o)
	count := map[int]int{}
	for _, i := range order {
		count[i]++
	}
	if len(count) != o.Count || len(order) == o.Count {
		t.Errorf("schedule has %d events in %d deliveries", len(count), len(order))
	}
	o.Duplicates = 1
	if got := len(schedule(&o)); got != 2*o.Count {
		t.Errorf("with all duplicated: got %d deliveries, want %d", got, 2*o.Count)
	}
}

func TestSend_SendsUnknownAgainAndKeepsEveryAnswer(t *testing.T) {
	t.Parallel()
	source := sources(t)[0]
	// At first, of every five: unavailable, broken, too many, then fine.
	r := receive(t, source, func(n int64) int {
		if n > 60 {
			return 0
		}
		return []int{0, 503, -1, 429, 0}[n%5]
	})
	path := filepath.Join(t.TempDir(), "h.jsonl")
	s, err := Send(t.Context(), source, options(r.URL), path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Acknowledged != 60 || s.Retries == 0 || s.Answers[503] == 0 || s.Answers[0] == 0 || s.Answers[429] == 0 || s.FirstError == "" {
		t.Errorf("got %+v", s)
	}
	lines := readHistory(t, path)
	if len(lines) != s.Deliveries {
		t.Errorf("history has %d lines, want %d", len(lines), s.Deliveries)
	}
	attempts := map[int]map[int64]bool{}
	for _, l := range lines {
		want := map[int]string{200: ok, 503: unknown, 0: unknown, 429: unknown}[l.HTTP]
		if l.Result != want || l.Seed != 11 || l.Source != "stripe" || l.Amount == 0 || l.Account == "" || len(l.SHA256) != 64 {
			t.Errorf("got line %+v, want result %s", l, want)
		}
		if attempts[l.I] == nil {
			attempts[l.I] = map[int64]bool{}
		}
		if attempts[l.I][l.Attempt] {
			t.Errorf("event %d: attempt %d is there twice", l.I, l.Attempt)
		}
		attempts[l.I][l.Attempt] = true
	}
}

func readHistory(t *testing.T, path string) []Line {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var lines []Line
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		var l Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatalf("%v in %s", err, scan.Text())
		}
		lines = append(lines, l)
	}
	return lines
}

func TestSend_RefusedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	source := sources(t)[0]
	r := receive(t, source, func(int64) int { return 400 })
	o := options(r.URL)
	o.Duplicates = 0
	s, err := Send(t.Context(), source, o, "")
	if err != nil || s.Refused != o.Count || s.Deliveries != o.Count {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestSend_GivesUpAndSaysSo(t *testing.T) {
	t.Parallel()
	source := sources(t)[0]
	r := receive(t, source, func(int64) int { return 503 })
	o := options(r.URL)
	o.GiveUp, o.Count, o.Duplicates = time.Millisecond, 3, 0
	s, err := Send(t.Context(), source, o, "")
	if err != nil || s.Unknown != 3 || s.Acknowledged != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	if verdict(t.Context(), s) == nil {
		t.Error("want a verdict")
	}
}

func TestSend_InterruptedWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	source := sources(t)[0]
	ctx, cancel := context.WithCancel(t.Context())
	r := receive(t, source, func(n int64) int {
		if n == 10 {
			cancel()
		}
		return 0
	})
	s, err := Send(ctx, source, options(r.URL), "")
	if err != nil || s.Acknowledged == 0 || s.Acknowledged == s.Events || s.Answers[200] != s.Deliveries {
		t.Errorf("got %+v, %v", s, err)
	}
	if verdict(ctx, s) == nil {
		t.Error("want a verdict")
	}
}

func TestSend_HistoryThatCannotBeWrittenStopsTheRun(t *testing.T) {
	t.Parallel()
	source := sources(t)[0]
	r := receive(t, source, nil)
	h, err := openHistory(filepath.Join(t.TempDir(), "h.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := send(t.Context(), source, options(r.URL), h); err == nil {
		t.Error("want an error")
	}
	if n := r.n.Load(); n > 20 {
		t.Errorf("%d deliveries were sent without a history", n)
	}
}

func TestSecretOf_TakesTheNewestValid(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	source, err := provider.New(provider.Config{
		Name: "s", Provider: "stripe", Account: []string{"a"}, Secrets: []provider.SecretConfig{
			{ID: "expired", Value: "whsec_1", NotAfter: now.Add(-day)},
			{ID: "old", Value: "whsec_2", NotBefore: now.Add(-9 * day), NotAfter: now.Add(day)},
			{ID: "new", Value: "whsec_3", NotBefore: now.Add(-day)},
			{ID: "next", Value: "whsec_4", NotBefore: now.Add(day)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := secretOf(source, now)
	if err != nil || string(got) != "whsec_3" {
		t.Errorf("got %q, %v", string(got), err)
	}
}

func TestReceiverURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		":8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:1": "http://127.0.0.1:1",
		"10.0.0.1:8080": "http://10.0.0.1:8080", "host:1": "http://host:1",
	} {
		if got := receiverURL(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
