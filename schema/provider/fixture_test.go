package provider_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
)

// fixture is a delivery in testdata and what it means: one line per event, as describe
// writes it.
type fixture struct {
	file   string
	header map[string]string
	query  string
	want   []string
	// replace are pairs of texts: what is in the file and what stands there instead. In a
	// payload of Braintree they are those of its XML.
	replace []string
}

// checkFixtures reads every fixture as receiver and worker do. All files of the folder
// must be among them.
func checkFixtures(t *testing.T, s *provider.Source, folder string, fixtures []fixture) {
	t.Helper()
	var used []string
	for _, f := range fixtures {
		used = append(used, f.file)
		got := f.describe(t, s, folder)
		if !slices.Equal(got, f.want) {
			t.Errorf("%s/%s: got\n\t%s\nwant\n\t%s", folder, f.file, strings.Join(got, "\n\t"), strings.Join(f.want, "\n\t"))
		}
	}
	entries, err := os.ReadDir(filepath.Join("testdata", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(used, e.Name()) {
			t.Errorf("%s/%s stands in no table", folder, e.Name())
		}
	}
}

// events reads a fixture.
func (f *fixture) events(t *testing.T, s *provider.Source, folder string) []schema.Event {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", folder, f.file))
	if err != nil {
		t.Fatal(err)
	}
	body = f.replaced(t, []byte(strings.TrimSuffix(string(body), "\n")))
	d := provider.Delivery{ID: "dlv_1", Header: http.Header{}, Query: f.query, Body: body}
	d.Header.Set("Content-Type", "application/json")
	if filepath.Ext(f.file) == ".form" {
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range f.header {
		d.Header.Set(name, value)
	}
	items, err := s.Identify(d)
	if err != nil {
		t.Fatalf("%s/%s: %v", folder, f.file, err)
	}
	var events []schema.Event
	for _, item := range items {
		events = append(events, schema.Event{
			Source: s.Key(), ID: item.ID, Type: item.Type, OccurredAt: item.OccurredAt,
			ContentType: item.ContentType, Body: item.Body, Livemode: item.Livemode,
		})
	}
	return events
}

// replaced is the payload with other texts in it, all of which must be there.
func (f *fixture) replaced(t *testing.T, body []byte) []byte {
	t.Helper()
	if len(f.replace) == 0 {
		return body
	}
	text, form := string(body), url.Values{}
	if strings.Contains(text, "bt_payload=") {
		var err error
		if form, err = url.ParseQuery(text); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(form.Get("bt_payload"))
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
	}
	for i := 0; i < len(f.replace); i += 2 {
		if !strings.Contains(text, f.replace[i]) {
			t.Fatalf("%s holds no %s", f.file, f.replace[i])
		}
		text = strings.ReplaceAll(text, f.replace[i], f.replace[i+1])
	}
	if len(form) == 0 {
		return []byte(text)
	}
	form.Set("bt_payload", base64.StdEncoding.EncodeToString([]byte(text))+"\n")
	return []byte(form.Encode())
}

// describe writes what the events of a fixture are and mean.
func (f *fixture) describe(t *testing.T, s *provider.Source, folder string) []string {
	t.Helper()
	var lines []string
	for _, ev := range f.events(t, s, folder) {
		m, err := s.Map(&ev)
		at := "-"
		if !ev.OccurredAt.IsZero() {
			at = ev.OccurredAt.Format("2006-01-02T15:04:05Z")
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", ev.ID, ev.Type, at, describe(m, err)))
	}
	return lines
}

// describe writes a meaning: +2000 USD account rule movement, status object=status,
// ignored, or quarantine reason.
func describe(m schema.Meaning, err error) string {
	var mapping *schema.MappingError
	switch {
	case errors.As(err, &mapping):
		return "quarantine " + mapping.Reason
	case err != nil:
		return "error " + err.Error()
	}
	var parts []string
	for _, p := range m.Postings {
		parts = append(parts, fmt.Sprintf("%+d %s %s %s %s", p.Amount, p.Currency, p.Account, p.Rule, p.Movement))
	}
	if m.Status != nil {
		parts = append(parts, fmt.Sprintf("status %s=%s", m.Status.Object, m.Status.Status))
	}
	if len(parts) == 0 {
		return "ignored"
	}
	return strings.Join(parts, "; ")
}

// story applies fixtures in this order as the ledger does: a movement that is on record
// is not made again, and must not differ. It returns the balances, such as "1300 USD acct_7".
func story(t *testing.T, s *provider.Source, folder string, fixtures []fixture) string {
	t.Helper()
	balances := map[string]int64{}
	made := map[schema.EffectKey]schema.Posting{}
	meanings := map[string]schema.MeaningHash{}
	for i := range fixtures {
		for _, ev := range fixtures[i].events(t, s, folder) {
			m, err := s.Map(&ev)
			if err != nil {
				t.Fatalf("%s: %v", fixtures[i].file, err)
			}
			// The ledger takes an ID that comes again for the same event: another one would be lost
			// in a conflict. IDs in headers are those of the fixture, and all the same.
			header := slices.Contains(slices.Collect(maps.Values(fixtures[i].header)), ev.ID)
			if before, known := meanings[ev.ID]; known && before != m.Hash() && !header {
				t.Errorf("%s: event %s meant something else before", fixtures[i].file, ev.ID)
			}
			meanings[ev.ID] = m.Hash()
			for k, key := range m.EffectKeys(s.Key()) {
				p := m.Postings[k]
				if before, known := made[key]; known {
					if before.Account != p.Account || before.Amount != p.Amount || before.Currency != p.Currency {
						t.Errorf("%s: effect mismatch: %+v before, %+v now", fixtures[i].file, before, p)
					}
					continue
				}
				made[key] = p
				balances[p.Currency+" "+p.Account] += p.Amount
			}
		}
	}
	var out []string
	for account, balance := range balances {
		out = append(out, fmt.Sprintf("%d %s", balance, account))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// wantStory checks the balances after a story, and that its reverse ends the same.
func wantStory(t *testing.T, s *provider.Source, folder string, fixtures []fixture, want string, files ...string) {
	t.Helper()
	told := make([]fixture, len(files))
	for k, file := range files {
		i := slices.IndexFunc(fixtures, func(f fixture) bool { return f.file == file })
		if i < 0 {
			t.Fatalf("%s stands in no table", file)
		}
		told[k] = fixtures[i]
	}
	wantTold(t, s, folder, want, told...)
}

// wantTold checks the balances after fixtures, told in this order and in reverse.
func wantTold(t *testing.T, s *provider.Source, folder, want string, told ...fixture) {
	t.Helper()
	for range 2 {
		if got := story(t, s, folder, told); got != want {
			t.Errorf("%s: got %q, want %q", folder, got, want)
		}
		slices.Reverse(told)
	}
}

// sourceOf returns a source as `sources new` would write it.
func sourceOf(t testing.TB, name, trust string) *provider.Source {
	t.Helper()
	return mustSource(t, configOf(t, name, trust, ""))
}

// configOf is the configuration of sourceOf.
func configOf(t testing.TB, name, trust, livemode string) provider.Config {
	t.Helper()
	d, err := provider.Definition(name)
	if err != nil {
		t.Fatal(err)
	}
	c := provider.Config{Name: "x", Provider: name, Account: d.Account, Trust: trust, Livemode: livemode}
	c.Signature.WebhookID, c.Signature.PublicKey, c.Signature.ClientID = d.Required["webhook_id"], d.Required["public_key"], d.Required["client_id"]
	c.Signature.URL = d.Required["url"]
	if d.NoCurrency {
		c.Currency = "RUB"
	}
	if d.Postings == nil && d.Statuses == nil && d.NonEffect == "" { // left to the configuration
		c.Postings = acmeConfig().Postings
		if name == "generic" {
			c.Signature, c.Event = acmeConfig().Signature, acmeConfig().Event
		}
	}
	return c
}

// wantUnauthenticated checks that every fixture that moves money where the body is
// trusted goes to quarantine where it is not.
func wantUnauthenticated(t *testing.T, s *provider.Source, folder string, fixtures []fixture) {
	t.Helper()
	moved := 0
	for _, f := range fixtures {
		for i, got := range f.describe(t, s, folder) {
			if strings.Contains(got, ": +") || strings.Contains(got, ": -") {
				t.Errorf("%s: moves money: %s", f.file, got)
			}
			if strings.Contains(f.want[i], ": +") || strings.Contains(f.want[i], ": -") {
				moved++
				if !strings.HasSuffix(got, "quarantine unauthenticated_amount") {
					t.Errorf("%s: got %s, want quarantine", f.file, got)
				}
			}
		}
	}
	if moved == 0 {
		t.Errorf("%s: no fixture moves money", folder)
	}
}
