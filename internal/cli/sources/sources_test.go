package sources

import (
	"strings"
	"testing"

	"hookledger/internal/config"
	"hookledger/schema/provider"
)

// What `sources new` writes is accepted, for every provider.
func TestTemplate_IsAConfiguration(t *testing.T) {
	t.Parallel()
	for _, name := range provider.Names() {
		d, err := provider.Definition(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, as := range []string{name, "my-source"} {
			text := Template(d, as, "https://pay.example.com")
			loaded, err := config.Parse("test.yaml", []byte("sources:\n"+text), nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
				continue
			}
			if len(loaded.Sources) != 1 {
				t.Fatalf("%s: %d sources", name, len(loaded.Sources))
			}
			if _, err := provider.New(loaded.Sources[0]); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
			if !strings.Contains(text, "https://pay.example.com/webhooks/"+as) {
				t.Errorf("%s: the URL to register is missing:\n%s", name, text)
			}
		}
	}
}

func TestDoesOf_SaysWhereNoRuleIs(t *testing.T) {
	t.Parallel()
	effects := []effect{{Type: "a", Does: "credit"}, {Type: "a", Does: "debit"}, {Type: "b", Does: "status"}}
	for eventType, want := range map[string]string{"a": "credit, debit", "b": "status", "c": "no rule"} {
		if got := doesOf(effects, eventType); got != want {
			t.Errorf("%s: got %s, want %s", eventType, got, want)
		}
	}
}
