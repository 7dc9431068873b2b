package sources

import (
	"bytes"
	"strings"
	"testing"

	"hookledger/internal/cli/app"
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

// runNew runs `sources new` in this process.
func runNew(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	c := Command(&app.App{Process: app.Process{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}})
	c.SetArgs(append([]string{"new"}, args...))
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

func TestNew_RefusesWhatIsNoNameAndNoAddress(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"stripe", "--name", "Shop"}, {"stripe", "--name", "a b"}, {"stripe", "--name", "x\nsources:"}, {"stripe", "--name", strings.Repeat("x", 64)}, {"stripe", "--name", "-x"},
		{"stripe", "--url", ""}, {"stripe", "--url", "pay.example.com"}, {"stripe", "--url", "ftp://pay.example.com"}, {"stripe", "--url", "https://"},
		{"stripe", "--url", "https://a\nb"}, {"stripe", "--url", "https://pay.example.com/?x=1"}, {"stripe", "--url", "https://pay.example.com/#x"},
		{"stripe", "--url", "https://u:p@pay.example.com"}, {"stripe", "--url", "https://pay.example.com/a b"}, {"square", "--url", "https://pay.example.com/'"}, {"nobody"},
	} {
		if out, err := runNew(t, args...); app.ExitCode(err) != app.ExitUsage || out != "" {
			t.Errorf("%q: got %v and %q, want a usage error alone", args, err, out)
		}
	}
	out, err := runNew(t, "square", "--name", "shop-1", "--url", "https://pay.example.com:8443/hooks/")
	if err != nil || !strings.Contains(out, "  url: https://pay.example.com:8443/hooks/webhooks/shop-1\n") || !strings.Contains(out, "SHOP_1_WEBHOOK_SECRET") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// CloudPayments tells by its address what it tells of.
func TestNew_NamesEveryAddressToRegister(t *testing.T) {
	t.Parallel()
	out, err := runNew(t, "cloudpayments", "--url", "https://pay.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"check", "pay", "fail", "confirm", "refund", "recurrent", "receipt", "cancel", "kkt"} {
		if !strings.Contains(out, "  #   https://pay.example.com/webhooks/cloudpayments?type="+kind+"\n") {
			t.Errorf("no address for %s:\n%s", kind, out)
		}
	}
	if out, err = runNew(t, "paddle"); err != nil || !strings.Contains(out, "# Register this URL with paddle: https://YOUR-HOST/webhooks/paddle\n") {
		t.Errorf("got %v\n%s", err, out)
	}
}
