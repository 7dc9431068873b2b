package provider_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
)

// FuzzMapping reads a body as receiver and worker of one provider do. Whatever it is, it
// has usable IDs or is refused; it means the same when it is read again; and it means
// money that a ledger may hold, or is an error that holds it back.
func FuzzMapping(f *testing.F) {
	names := provider.Names()
	var sources []*provider.Source
	for i, name := range names {
		if name == "generic" {
			sources = append(sources, mustSource(f, acmeConfig()))
		} else {
			sources = append(sources, mustSource(f, configOf(f, name, "", "")))
		}
		files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), filepath.Ext(file) == ".form", "msg_1", "id=1", []byte(strings.TrimSuffix(string(body), "\n")))
		}
	}
	f.Add(uint8(0), false, "msg_1", "", []byte(`{"id":"e","type":"payment.succeeded","user_id":"u","amount":1,"currency":"EUR","payment_id":"p"}`))
	f.Fuzz(func(t *testing.T, which uint8, form bool, id, query string, body []byte) {
		s := sources[int(which)%len(sources)]
		header := http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}}
		if form {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		items, err := s.Identify(provider.Delivery{ID: "dlv_1", Header: header, Query: query, Body: body})
		if err != nil {
			return
		}
		for _, item := range items {
			if err := schema.CheckEventID(item.ID); err != nil {
				t.Fatalf("event with ID %q: %v", item.ID, err)
			}
			ev := schema.Event{Source: s.Key(), ID: item.ID, Type: item.Type, OccurredAt: item.OccurredAt, ContentType: item.ContentType, Body: item.Body, Livemode: item.Livemode}
			m, err := s.Map(&ev)
			again, errAgain := s.Map(&ev)
			if !reflect.DeepEqual(m, again) || (err == nil) != (errAgain == nil) {
				t.Fatalf("read again: got %+v %v, before it was %+v %v", again, errAgain, m, err)
			}
			if err != nil {
				var held *schema.MappingError
				if !errors.As(err, &held) || held.Reason == "" {
					t.Fatalf("got %v, want a *MappingError with a reason", err)
				}
				continue
			}
			for _, p := range m.Postings {
				if p.Amount == 0 || p.Amount > schema.MaxAmount || p.Amount < -schema.MaxAmount || p.Account == "" || p.Rule == "" || p.Movement == "" {
					t.Fatalf("got posting %+v", p)
				}
				if c, err := schema.NormalizeCurrency(p.Currency); err != nil || c != p.Currency {
					t.Fatalf("got currency %q: %v", p.Currency, err)
				}
			}
		}
	})
}

// FuzzDelivery has every provider find the events of any form, which is what its sender
// is not.
func FuzzDelivery(f *testing.F) {
	var sources []*provider.Source
	for _, name := range provider.Names() {
		if name != "generic" {
			sources = append(sources, mustSource(f, configOf(f, name, "", "")))
		}
	}
	f.Add("bt_payload=PG5vdGU+&bt_signature=k|v")
	f.Add(url.Values{"order_id": {"1"}, "sum": {"10.50"}, "payment_status": {"success"}}.Encode())
	f.Add("OutSum=10.5&InvId=7&SignatureValue=x")
	f.Add("mdOrder=1&orderNumber=2&operation=deposited&status=1&amount=100")
	f.Fuzz(func(t *testing.T, body string) {
		for _, s := range sources {
			items, err := s.Identify(provider.Delivery{ID: "dlv_1", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Query: body, Body: []byte(body)})
			if err == nil && len(items) == 0 {
				continue // a delivery of which nothing is to be kept
			}
			for _, item := range items {
				if err := schema.CheckEventID(item.ID); err != nil {
					t.Fatalf("%s: event with ID %q: %v", s.Name(), item.ID, err)
				}
			}
		}
	})
}
