package provider_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"hookledger/schema"
	"hookledger/schema/provider"
)

// reading is what receiver and worker make of a delivery.
type reading struct {
	items    []provider.Item
	err      string
	meanings []schema.Meaning
	held     []string
}

func read(s *provider.Source, d provider.Delivery) reading {
	items, err := s.Identify(d)
	r := reading{items: items, err: fmt.Sprint(err)}
	for _, item := range items {
		ev := schema.Event{Source: s.Key(), ID: item.ID, Type: item.Type, OccurredAt: item.OccurredAt, ContentType: item.ContentType, Body: item.Body, Livemode: item.Livemode}
		m, err := s.Map(&ev)
		r.meanings, r.held = append(r.meanings, m), append(r.held, fmt.Sprint(err))
	}
	return r
}

// clone is r in memory of its own.
func (r reading) clone() reading {
	r.items, r.meanings, r.held = slices.Clone(r.items), slices.Clone(r.meanings), slices.Clone(r.held)
	for i := range r.items {
		it := &r.items[i]
		it.ID, it.Type, it.ContentType, it.Livemode = strings.Clone(it.ID), strings.Clone(it.Type), strings.Clone(it.ContentType), strings.Clone(it.Livemode)
		it.Body = slices.Clone(it.Body)
	}
	for i := range r.meanings {
		m := &r.meanings[i]
		m.Postings = slices.Clone(m.Postings)
		for j := range m.Postings {
			p := &m.Postings[j]
			p.Account, p.Contra, p.Currency = strings.Clone(p.Account), strings.Clone(p.Contra), strings.Clone(p.Currency)
			p.Rule, p.Movement = strings.Clone(p.Rule), strings.Clone(p.Movement)
		}
		if m.Status != nil {
			status := *m.Status
			status.Object, status.Status = strings.Clone(status.Object), strings.Clone(status.Status)
			m.Status = &status
		}
	}
	return r
}

// What a provider's rules keep of a body stays what it was while others read other
// bodies: every delivery there is, of every provider, read by several at once in orders of
// their own, is what it is when it is read alone.
func TestRead_ByManyAtOnceKeepsWhatItRead(t *testing.T) {
	t.Parallel()
	type told struct {
		source   *provider.Source
		delivery provider.Delivery
		want     reading
	}
	var all []told
	events := 0
	for _, name := range provider.Names() {
		files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		s := sourceOf(t, name, "")
		if s.SignedOnly() {
			s = sourceOf(t, name, "body") // so that money moves
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := provider.Delivery{ID: "dlv_1", Query: "id=1&type=pay", Body: []byte(strings.TrimSuffix(string(body), "\n")), Header: http.Header{
				"Content-Type": {"application/json"}, "Webhook-Id": {"msg_1"}, "X-Shopify-Topic": {"orders/paid"}, "X-Shopify-Event-Id": {"e_1"}, "X-Delivery-Id": {"d_1"}}}
			if filepath.Ext(file) == ".form" {
				d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			want := read(s, d).clone()
			events += len(want.items)
			all = append(all, told{s, d, want})
		}
	}
	if events < 100 {
		t.Fatalf("%d events in %d deliveries: the test needs more", events, len(all))
	}
	const readers, rounds = 4, 3
	var wg sync.WaitGroup
	for n := range readers {
		wg.Go(func() { // ends after its rounds
			// Compared at the end, when the memory has served many.
			got := make([]reading, rounds*len(all))
			for i := range got {
				at := (i*(n+1) + n) % len(all)
				got[i] = read(all[at].source, all[at].delivery)
			}
			for i := range got {
				at := (i*(n+1) + n) % len(all)
				if !reflect.DeepEqual(got[i], all[at].want) {
					t.Errorf("%s: got %+v, alone %+v", all[at].source.Name(), got[i], all[at].want)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d events in %d deliveries", events, len(all))
}
