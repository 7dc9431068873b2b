package payments

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

func TestOpenAPI_AgreesWithTheHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	served := b.get("/openapi.json", "")
	if served.code != 200 || !bytes.Equal(served.body, OpenAPI) {
		t.Fatalf("got %d, want the document", served.code)
	}
	doc, err := libopenapi.NewDocument(OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, problems := v.ValidateDocument(); !ok {
		t.Fatalf("document: %v", problems)
	}
	b.fund("shop:1", 100)
	post := func(token, key, body string) *http.Request {
		req, _ := http.NewRequest(http.MethodPost, b.base+"/v1/payments", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Idempotency-Key", key)
		return req
	}
	get := func(path, token string) *http.Request {
		req, _ := http.NewRequest(http.MethodGet, b.base+path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+token)
		return req
	}
	abandon(t, b, "busy", payment("shop:1", "x", 1), "0 s")
	location := b.post("k", payment("shop:1", "x", 1)).header.Get("Location")
	for _, c := range []struct {
		name  string
		req   *http.Request
		code  int
		valid bool // whether the document allows the request
	}{
		{"pay", post(shopToken, "k1", payment("shop:1", "x", 1)), 201, true},
		{"replay", post(shopToken, "k1", payment("shop:1", "x", 1)), 201, true},
		{"poor", post(shopToken, "k2", payment("shop:1", "x", 1000)), 402, true},
		{"reused", post(shopToken, "k1", payment("shop:1", "x", 2)), 422, true},
		{"busy", post(shopToken, "busy", payment("shop:1", "x", 1)), 409, true},
		{"not from there", post(shopToken, "k3", payment("b:1", "x", 1)), 403, true},
		{"token", post("no-such-token-123", "k3", payment("shop:1", "x", 1)), 401, true},
		{"amount 0", post(shopToken, "k3", payment("shop:1", "x", 0)), 400, false},
		{"too much", post(shopToken, "k3", payment("shop:1", "x", 1e15+1)), 400, false},
		{"extra field", post(shopToken, "k3", `{"from":"shop:1","to":"x","amount":1,"currency":"EUR","reference":"","x":1}`), 400, false},
		{"no reference", post(shopToken, "k3", `{"from":"shop:1","to":"x","amount":1,"currency":"EUR"}`), 400, false},
		{"amount a text", post(shopToken, "k3", `{"from":"shop:1","to":"x","amount":"1","currency":"EUR","reference":""}`), 400, false},
		{"payment", get(location, shopToken), 200, true},
		{"no payment", get("/v1/payments/x", shopToken), 404, true},
		{"account", get("/v1/accounts/shop:1", shopToken), 200, true},
		{"no account", get("/v1/accounts/shop:2", shopToken), 404, true},
		{"another's account", get("/v1/accounts/b:1", shopToken), 403, true},
		{"description", get("/openapi.json", ""), 200, true},
	} {
		var body []byte
		if c.req.GetBody != nil {
			r, _ := c.req.GetBody()
			var buf bytes.Buffer
			_, _ = buf.ReadFrom(r)
			body = buf.Bytes()
		}
		fresh := func() *http.Request {
			r := c.req.Clone(t.Context())
			setBody(r, string(body))
			return r
		}
		if ok, problems := v.ValidateHttpRequest(fresh()); ok != c.valid {
			t.Errorf("%s: the document allows the request: got %v, want %v: %v", c.name, ok, c.valid, problems)
		}
		resp, err := client.Do(fresh())
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.code {
			t.Errorf("%s: got %d, want %d", c.name, resp.StatusCode, c.code)
		}
		if ok, problems := v.ValidateHttpResponse(fresh(), resp); !ok {
			t.Errorf("%s: the answer is not as documented: %v", c.name, problems)
			for _, p := range problems {
				t.Log(p.Message, p.Reason, p.SchemaValidationErrors)
			}
		}
		_ = resp.Body.Close()
	}
}

// Every route is described, and nothing else is.
func TestOpenAPI_HasEveryRoute(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for path, methods := range doc.Paths {
		for method := range methods {
			got[strings.ToUpper(method)+" "+path] = true
		}
	}
	b := setup(t)
	for _, r := range b.server.routes().Routes() {
		route := r.Method + " " + strings.ReplaceAll(r.Path, ":id", "{id}")
		if !got[route] {
			t.Errorf("%s is not described", route)
		}
		delete(got, route)
	}
	for route := range got {
		t.Errorf("%s is described and not there", route)
	}
}
