package provider

import (
	"strings"
	"testing"

	"hookledger/schema"
)

func TestReadXML_AsObjects(t *testing.T) {
	t.Parallel()
	v, err := readXML([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<notification><kind>dispute_won</kind><source-merchant-id nil="true"/><subject>
<list type="array"><item>a</item><item><id>b</id></item></list><none type="array"/><text> x &amp; y </text></subject></notification>`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"notification.kind": "dispute_won", "notification.subject.list[0]": "a",
		"notification.subject.list[1].id": "b", "notification.subject.text": "x & y",
	} {
		at, ok := v.At(schema.MustPath(path))
		if !ok {
			t.Errorf("there is nothing at %s", path)
			continue
		}
		if got, _ := at.Text(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if at, ok := v.At(schema.MustPath("notification.source-merchant-id")); !ok || at.Kind() != schema.KindNull {
		t.Error("nil is not null")
	}
	if at, ok := v.At(schema.MustPath("notification.subject.none")); !ok || at.Kind() != schema.KindArray || len(at.Items()) != 0 {
		t.Error("an empty array is not a list")
	}
}

func TestReadXML_Refuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":     "",
		"text":        "hello",
		"two roots":   "<a/><b/>",
		"not closed":  "<a><b></b>",
		"twice":       "<a><b>1</b><b>2</b></a>",
		"by case":     "<a><b>1</b><B>2</B></a>",
		"types":       `<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>`,
		"entity":      "<a>&x;</a>",
		"too deep":    strings.Repeat("<a>", 40) + strings.Repeat("</a>", 40),
		"encoding":    `<?xml version="1.0" encoding="latin1"?><a/>`,
		"two tokens":  "<a b=c/>",
		"bad comment": "<a><!-- -- --></a>",
	} {
		if v, err := readXML([]byte(text)); err == nil {
			t.Errorf("%s: read %s", name, v.Raw())
		}
	}
}

func FuzzReadXML(f *testing.F) {
	f.Add([]byte(`<notification><kind>a</kind><x type="array"><y/></x></notification>`))
	f.Add([]byte(`<a b="c"/>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := readXML(text)
		if err == nil && v.Kind() != schema.KindObject {
			t.Fatalf("got %s", v.Raw())
		}
		_, _ = readBraintree("", append([]byte("bt_payload="), text...))
	})
}
