package schema

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files")

func sample() Event {
	body := []byte(`{"id":"evt_1","note":"é\u0001"}`)
	return Event{
		Source: "stripe", ID: "evt_1", Type: "payment_intent.succeeded",
		OccurredAt: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		ReceivedAt: time.Date(2026, 11, 29, 12, 0, 1, 5000, time.UTC),
		DeliveryID: "0192f0c1a2b3", Scheme: "stripe-v1", KeyID: "STRIPE_WEBHOOK_SECRET",
		SignatureHeaders: []Header{{"stripe-signature", []byte("t=1,v1=00")}},
		TraceParent:      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		ContentType:      "application/json", Body: body, BodySHA256: sha256.Sum256(body),
	}
}

func TestRecord_IsAsItWas(t *testing.T) {
	t.Parallel()
	e := sample()
	var b bytes.Buffer
	fmt.Fprintf(&b, "key: %s\nvalue: %s\n", e.RecordKey(), e.Body)
	for _, h := range e.Headers() {
		fmt.Fprintf(&b, "%s: %s\n", h.Key, h.Value)
	}
	const golden = "testdata/record.golden"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the wire format changed: raise Version.\ngot\n%s\nwant\n%s", b.Bytes(), want)
	}
}

func TestDecodeRecord_ReturnsWhatHeadersWrote(t *testing.T) {
	t.Parallel()
	plain := sample()
	bare := Event{Source: "acme", ID: "1", Type: UnknownType, ReceivedAt: plain.ReceivedAt, Body: []byte{}, BodySHA256: sha256.Sum256(nil), BodyUnauthenticated: true}
	for _, e := range []Event{plain, bare} {
		got, err := DecodeRecord(e.RecordKey(), e.Body, e.Headers())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
}

func TestDecodeRecord_RefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	e := sample()
	with := func(key, value string) []Header {
		var hs []Header
		for _, h := range e.Headers() {
			if h.Key != key {
				hs = append(hs, h)
			} else if value != "" {
				hs = append(hs, Header{key, []byte(value)})
			}
		}
		return hs
	}
	for _, c := range []struct {
		name       string
		key, value []byte
		headers    []Header
		reason     string
	}{
		{"foreign", []byte("k"), []byte("v"), nil, "not_an_event"},
		{"tombstone", e.RecordKey(), nil, e.Headers(), "null_value"},
		{"null key", nil, e.Body, e.Headers(), "key_mismatch"},
		{"other key", []byte("evt_2"), e.Body, e.Headers(), "key_mismatch"},
		{"changed value", e.RecordKey(), []byte("{}"), e.Headers(), "body_hash_mismatch"},
		{"hash in another case", e.RecordKey(), e.Body, with(HeaderHLBodySHA256, strings.ToUpper(fmt.Sprintf("%x", e.BodySHA256))), "body_hash_mismatch"},
		{"no source", e.RecordKey(), e.Body, with(HeaderHLSource, ""), "bad_header"},
		{"no time", e.RecordKey(), e.Body, with(HeaderHLReceivedAt, ""), "bad_header"},
		{"bad time", e.RecordKey(), e.Body, with(HeaderHLReceivedAt, "yesterday"), "bad_header"},
		{"bad ce_time", e.RecordKey(), e.Body, with(HeaderTime, "yesterday"), "bad_header"},
		{"no ID", nil, e.Body, with(HeaderID, ""), "bad_header"},
		{"long ID", []byte(strings.Repeat("x", 256)), e.Body, with(HeaderID, strings.Repeat("x", 256)), "bad_header"},
	} {
		_, err := DecodeRecord(c.key, c.value, c.headers)
		var decode *DecodeError
		if !errors.As(err, &decode) || decode.Reason != c.reason {
			t.Errorf("%s: got %v, want %s", c.name, err, c.reason)
		}
	}
	if _, err := DecodeRecord(e.RecordKey(), e.Body, with(HeaderHLVersion, "2")); !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("version 2: got %v, want ErrUnknownVersion", err)
	}
}

func TestCheckEventID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "evt_1", "EVT_1", "evt_1 ", strings.Repeat("x", 255), "a:b/c?d=~!"} {
		if err := CheckEventID(id); err != nil {
			t.Errorf("%q: got %v, want none", id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 256), strings.Repeat("x", 4000), "café", "a\x00", "a\n", "a\x7f", "\ufffd"} {
		if err := CheckEventID(id); !errors.Is(err, ErrEventID) {
			t.Errorf("%q: got %v, want ErrEventID", id, err)
		}
	}
}

func TestKeys_DoNotRunTogether(t *testing.T) {
	t.Parallel()
	if KeyOf("ab", "c") == KeyOf("a", "bc") {
		t.Error("event keys of (ab, c) and (a, bc) are equal")
	}
	m := Meaning{Postings: []Posting{{Rule: "ab", Movement: "c"}, {Rule: "a", Movement: "bc"}, {Rule: "ab", Movement: "c"}}}
	keys := m.EffectKeys("s")
	if keys[0] == keys[1] || keys[0] == keys[2] {
		t.Errorf("effect keys are not distinct: %x", keys)
	}
	// The keys are stored for ever: another value here pays every movement twice.
	if got, want := fmt.Sprintf("%x", KeyOf("stripe", "evt_1")), "6ca03e2cdf2169a4c686cdee2e3af69b"; got != want {
		t.Errorf("event key: got %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%x", keys[0]), "397725fa994cf1a9f56c69d83044ef1b"; got != want {
		t.Errorf("effect key: got %s, want %s", got, want)
	}
}

func TestMeaning_HashTellsMeaningsApart(t *testing.T) {
	t.Parallel()
	base := func() Meaning {
		return Meaning{Postings: []Posting{{Account: "a", Contra: "external:s", Amount: 1, Currency: "EUR", Rule: "r", Movement: "m"}},
			Status: &Status{Object: "o", Status: "paid", Rank: 1, OccurredAt: time.Unix(1, 0)}}
	}
	seen := map[MeaningHash]int{}
	for i, change := range []func(*Meaning){
		func(*Meaning) {},
		func(m *Meaning) { m.Postings[0].Account = "b" },
		func(m *Meaning) { m.Postings[0].Contra = "external:t" },
		func(m *Meaning) { m.Postings[0].Amount = -1 },
		func(m *Meaning) { m.Postings[0].Currency = "USD" },
		func(m *Meaning) { m.Postings[0].Rule = "q" },
		func(m *Meaning) { m.Postings[0].Movement = "n" },
		func(m *Meaning) { m.Postings = nil },
		func(m *Meaning) { m.Postings = append(m.Postings, m.Postings[0]) },
		func(m *Meaning) { m.Status = nil },
		func(m *Meaning) { m.Status.Status = "failed" },
		func(m *Meaning) { m.Status.Object = "p" },
		func(m *Meaning) { m.Status.Rank = 2 },
		func(m *Meaning) { m.Status.OccurredAt = time.Unix(2, 0) },
		func(m *Meaning) { *m = Meaning{} },
	} {
		m := base()
		change(&m)
		if other, twice := seen[m.Hash()]; twice {
			t.Errorf("changes %d and %d have one hash", i, other)
		}
		seen[m.Hash()] = i
	}
	a, b := base(), base()
	b.LatestWins = true
	if a.Hash() != b.Hash() {
		t.Error("the policy is part of the hash")
	}
}

func TestMeaning_CheckRefusesWhatNoLedgerMayHold(t *testing.T) {
	t.Parallel()
	good := Posting{Account: "a", Contra: "external:s", Amount: 1, Currency: "EUR", Rule: "r", Movement: "m"}
	if err := (&Meaning{Postings: []Posting{good}}).Check(); err != nil {
		t.Fatal(err)
	}
	for reason, changes := range map[string][]func(*Posting){
		ReasonBadAccount: {
			func(p *Posting) { p.Account = "" }, func(p *Posting) { p.Account = "a\x00" }, func(p *Posting) { p.Account = "a\x1b[31m" },
			func(p *Posting) { p.Account = "\xff" }, func(p *Posting) { p.Account = "\ufffd" }, func(p *Posting) { p.Account = strings.Repeat("a", 256) },
			func(p *Posting) { p.Contra = "" }, func(p *Posting) { p.Account = "  " },
		},
		ReasonBadMovement: {func(p *Posting) { p.Movement = "" }, func(p *Posting) { p.Rule = "" }},
		ReasonBadCurrency: {func(p *Posting) { p.Currency = "eur" }, func(p *Posting) { p.Currency = "" }},
		ReasonBadAmount:   {func(p *Posting) { p.Amount = 0 }},
		ReasonAmountRange: {func(p *Posting) { p.Amount = MaxAmount + 1 }, func(p *Posting) { p.Amount = -MaxAmount - 1 }, func(p *Posting) { p.Amount = -1 << 63 }},
	} {
		for i, change := range changes {
			p := good
			change(&p)
			var mapping *MappingError
			if err := (&Meaning{Postings: []Posting{good, p}}).Check(); !errors.As(err, &mapping) || mapping.Reason != reason {
				t.Errorf("%s %d: got %v", reason, i, err)
			}
		}
	}
}
