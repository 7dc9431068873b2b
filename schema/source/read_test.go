package source

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hookledger/schema"
)

func multipartOf(fields ...string) string {
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		b.WriteString("--x\r\nContent-Disposition: form-data; " + fields[i] + "\r\n\r\n" + fields[i+1] + "\r\n")
	}
	return b.String() + "--x--\r\n"
}

func TestRead_FormsAreStrict(t *testing.T) {
	t.Parallel()
	s := &Source{def: &Definition{}, event: eventRules{format: BodyAny}}
	const form, parts = mediaForm, `multipart/form-data; boundary=x`
	for _, tc := range []struct {
		contentType, body, want string
	}{
		{form, "a=1&b=%D0%90+c", "А c"},
		{form, "a=1&a=2&b=x", ""},
		{form, "a=%zz&b=x", ""},
		{form, "b=%ff", ""},
		{form, "", ""},
		{form, "a;b=x", ""},
		{parts, multipartOf(`name="a"`, "1", `name="b"`, "x y"), "x y"},
		{parts, multipartOf(`name="b"`, "1", `name="b"`, "2"), ""},
		{parts, multipartOf(`name="b"; filename="f"`, "1"), ""},
		{parts, multipartOf(`name=""`, "1"), ""},
		{parts, "--x\r\n", ""},
		{"multipart/form-data", "--x--", ""},
		{"application/json", `{"b":"x"}`, "x"},
		{"", `{"b":"x"}`, "x"},
		{"application/json", "b=x", ""},
	} {
		var got string
		err := s.read(tc.contentType, []byte(tc.body), func(v *schema.Value) {
			if b := v.Get("b"); b != nil {
				got, _ = b.Text()
			}
		})
		if tc.want == "" {
			if err == nil {
				t.Errorf("%s %q: accepted", tc.contentType, tc.body)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", tc.contentType, tc.body, err)
			continue
		}
		if got != tc.want {
			t.Errorf("%s %q: got %q, want %q", tc.contentType, tc.body, got, tc.want)
		}
	}
}

func TestLocator_FindsAndFallsBack(t *testing.T) {
	t.Parallel()
	v, err := schema.ParseJSON([]byte(`{"id":7,"t":"x","n":1.0,"o":{},"e":"","z":null}`), schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d := Delivery{ID: "dlv", Query: "q=1&twice=1&twice=2", Header: http.Header{"X-One": {"h"}, "X-Two": {"a", "b"}}}
	const absent = "absent"
	for name, tc := range map[string]struct {
		l    Locator
		want string
	}{
		"path":              {Locator{Path: "t"}, "x"},
		"number":            {Locator{Path: "id"}, "7"},
		"not whole":         {Locator{Path: "n"}, ""},
		"object":            {Locator{Path: "o"}, ""},
		"null":              {Locator{Path: "z"}, absent},
		"missing":           {Locator{Path: "y"}, absent},
		"or":                {Locator{Path: "y", Or: []Locator{{Path: "z"}, {Path: "t"}}}, "x"},
		"or after an error": {Locator{Path: "o", Or: []Locator{{Path: "t"}}}, ""},
		"join":              {Locator{Join: []string{"t", "id"}}, "x:7"},
		"join with bar":     {Locator{Join: []string{"t", "id"}, Separator: "|"}, "x|7"},
		"join, one missing": {Locator{Join: []string{"t", "y"}}, absent},
		"per delivery":      {Locator{Path: "id", PerDelivery: true}, "7:dlv"},
		"header":            {Locator{Header: "x-one"}, "h"},
		"header twice":      {Locator{Header: "X-Two"}, ""},
		"no header":         {Locator{Header: "X-No", Or: []Locator{{Path: "t"}}}, "x"},
		"query":             {Locator{Query: "q"}, "1"},
		"query twice":       {Locator{Query: "twice"}, ""},
		"no query":          {Locator{Query: "r"}, absent},
		"const":             {Locator{Const: "c"}, "c"},
	} {
		p := &Problems{}
		l := newLocator("k", tc.l, p, locatorForms...)
		if err := p.err(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := l.text(d, v)
		switch {
		case tc.want == absent:
			if !errors.Is(err, errAbsent) {
				t.Errorf("%s: got %q, %v, want nothing", name, got, err)
			}
		case tc.want == "":
			if err == nil || errors.Is(err, errAbsent) {
				t.Errorf("%s: got %q, %v, want an error", name, got, err)
			}
		case got != tc.want || err != nil:
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

func TestBelieves_CoversWhatIsSigned(t *testing.T) {
	t.Parallel()
	s := &Source{signedOnly: true, signature: Signature{Covers: []string{"a.b", "Shp_*", "root.*"}}}
	for path, want := range map[string]bool{
		"a.b": true, "a": false, "a.c": false, "a.b.c": false, "Shp_x": true, "Shp_": true, "shp_x": false, "Shp_x.y": false,
		"root.x": true, "root": false, "root.x.y": false, "x.b": false,
	} {
		if got := s.believes(schema.MustPath(path)); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	s.signedOnly = false
	if !s.believes(schema.MustPath("anything")) {
		t.Error("with trust: body a path is not believed")
	}
}

func FuzzReadMultipart(f *testing.F) {
	f.Add("x", multipartOf(`name="a"`, "1"))
	f.Add("", "")
	f.Fuzz(func(t *testing.T, boundary, body string) {
		fields, err := MultipartFields(boundary, []byte(body))
		if err != nil {
			return
		}
		for _, field := range fields {
			if field.Name == "" || len(field.Value) > maxPartBytes {
				t.Fatalf("got %v", field)
			}
		}
	})
}

func FuzzReadForm(f *testing.F) {
	f.Add("a=1&b=%D0%90+c")
	f.Fuzz(func(t *testing.T, body string) {
		v, err := ReadForm([]byte(body))
		if err != nil {
			return
		}
		want, err := url.ParseQuery(body)
		if err != nil || len(want) != len(v.Keys()) {
			t.Fatalf("got %v, the library says %v, %v", v.Keys(), want, err)
		}
		for name, values := range want {
			if got, _ := v.Get(name).Text(); got != values[0] {
				t.Fatalf("%q: got %q, the library says %q", name, got, values)
			}
		}
	})
}
