package payments

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"shop:1", "shop:1", true}, {"shop:1", "shop:12", false}, {"shop:*", "shop:", true}, {"shop:*", "shop:1/2*", true},
		{"shop:*", "xshop:1", false}, {"*", "", true}, {"*:eur", "a:eur", true}, {"*:eur", "a:eurx", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"a*bc*c", "abc", false}, {"a**c", "abc", true},
		{"a?", "ab", false}, {"[a]", "a", false},
	} {
		if got := matches(c.pattern, c.s); got != c.want {
			t.Errorf("matches(%q, %q): got %v, want %v", c.pattern, c.s, got, c.want)
		}
	}
}

func TestTokens_AreRotated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old, next := "old-token-0123456789", "next-token-0123456789"
	write(old)
	now := time.Now()
	tt, err := newTokens([]Token{
		{Client: "shop", File: file, From: []string{"shop:*"}},
		{Client: "shop", ID: "b", Value: "second-token-0123456", NotAfter: now.Add(time.Hour)},
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	who := func(text string, at time.Time) string {
		if f := tt.find(text, at); f != nil {
			return f.client + "/" + f.id
		}
		return ""
	}
	if got := who(old, now) + " " + who("second-token-0123456", now) + " " + who(next, now); got != "shop/token shop/b " {
		t.Errorf("got %q", got)
	}
	if got := who("second-token-0123456", now.Add(2*time.Hour)); got != "" {
		t.Errorf("after not_after: got %q, want none", got)
	}
	write(next)
	if err := tt.reload(); err != nil {
		t.Fatal(err)
	}
	if got := who(old, now) + " " + who(next, now); got != " shop/token" {
		t.Errorf("after the change: got %q", got)
	}
	write("")
	if err := tt.reload(); err == nil || strings.Contains(err.Error(), next) {
		t.Errorf("got %v, want an error about an empty token", err)
	}
	if got := who(next, now); got != "shop/token" {
		t.Errorf("after a change that cannot be read: got %q, want the token before it", got)
	}
	for _, held := range *tt.current.Load() {
		if text := fmt.Sprintf("%+v", held); strings.Contains(text, next) || strings.Contains(text, "second-token") {
			t.Errorf("a token is held as text: %s", text)
		}
	}
}

func TestTokens_Refused(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]Token{
		"none":              nil,
		"short":             {{Client: "a", Value: "short"}},
		"with a space":      {{Client: "a", Value: "token with spaces in it"}},
		"of two clients":    {{Client: "a", Value: "0123456789abcdef"}, {Client: "b", Value: "0123456789abcdef"}},
		"with one ID twice": {{Client: "a", ID: "x", Value: "0123456789abcdef"}, {Client: "a", ID: "x", Value: "0123456789abcdeg"}},
		"not set":           {{Client: "a", Env: "HOOKLEDGER_TEST_NO_SUCH_VARIABLE"}},
		"no file":           {{Client: "a", File: "/nonexistent"}},
	} {
		if _, err := newTokens(list, zerolog.Nop()); err == nil || strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("%s: got %v, want an error that does not say it", name, err)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"payments.listen":           func(c *Config) { c.Listen = "8081" },
		"payments.durability":       func(c *Config) { c.Durability = "none" },
		"payments.claim_ttl":        func(c *Config) { c.ClaimTTL = time.Millisecond },
		"payments.key_ttl":          func(c *Config) { c.KeyTTL = time.Second },
		"payments.duplicate_window": func(c *Config) { c.DuplicateWindow = 0 },
		"payments.max_connections":  func(c *Config) { c.MaxConnections = 0 },
		"payments.max_body_bytes":   func(c *Config) { c.MaxBodyBytes = 1 },
		"payments.answer_timeout":   func(c *Config) { c.AnswerTimeout = 0 },
		"payments.rate.per_second":  func(c *Config) { c.Rate.PerSecond = 0 },
		"payments.rate.burst":       func(c *Config) { c.Rate.Burst = 0 },
		"payments.tokens[0].client": func(c *Config) { c.Tokens = []Token{{Client: "Shop", Env: "X"}} },
		"payments.tokens[0]: set":   func(c *Config) { c.Tokens = []Token{{Client: "shop"}} },
		"payments.tokens[0].value":  func(c *Config) { c.Tokens = []Token{{Client: "shop", Value: "x"}} },
		"payments.tokens[0].from":   func(c *Config) { c.Tokens = []Token{{Client: "shop", Env: "X", From: []string{""}}} },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
