package sources

import (
	"errors"
	"fmt"
	"io"
	"maps"
	neturl "net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

func create(a *app.App) *cobra.Command {
	var name, url string
	c := &cobra.Command{
		Use:   "new PROVIDER",
		Short: "Write the configuration of a source, with comments",
		Long: `Write the configuration of a source, with comments, to standard output. Paste it under
sources: of the configuration, and register the URL in it with the provider.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger sources new paddle --url https://pay.example.com
  hookledger sources new generic --name acme`,
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := provider.Definition(args[0])
			if err != nil {
				return app.Usage(fmt.Errorf("provider %w", err))
			}
			if name == "" {
				name = d.Name
			}
			if err := source.CheckName(name); err != nil {
				return app.Usage(fmt.Errorf("--name %w", err))
			}
			if err := checkURL(url); err != nil {
				return app.Usage(fmt.Errorf("--url %w", err))
			}
			text := Template(d, name, strings.TrimSuffix(url, "/"))
			out := struct {
				Name     string `json:"name"`
				Provider string `json:"provider"`
				// URL is where the source is; URLs are what is registered.
				URL  string   `json:"url"`
				URLs []string `json:"urls"`
				YAML string   `json:"yaml"`
			}{name, d.Name, address(url, name), addresses(d, url, name), text}
			return a.Print("sources-new", out, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the source, the last part of its URL (default: the provider's)")
	c.Flags().StringVar(&url, "url", placeholder, "where the receiver is reached from outside")
	return c
}

// placeholder stands for the receiver's address until somebody knows it.
const placeholder = "https://YOUR-HOST"

func address(url, name string) string { return strings.TrimSuffix(url, "/") + "/webhooks/" + name }

// checkURL refuses what no provider can be given, and what would not stay in its line.
func checkURL(text string) error {
	u, err := neturl.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		strings.ContainsAny(text, " #'\"<>\\") {
		return errors.New("is where the receiver is reached, such as https://pay.example.com, without user, query and fragment")
	}
	return nil
}

// addresses are the URLs to register with a provider.
func addresses(d *source.Definition, url, name string) []string {
	if len(d.Addresses) == 0 {
		return []string{address(url, name)}
	}
	var out []string
	for _, query := range d.Addresses {
		out = append(out, address(url, name)+"?"+query)
	}
	return out
}

// Template is the configuration of a source of a provider, an item of the list sources:.
func Template(d *source.Definition, name, url string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	if urls := addresses(d, url, name); len(urls) == 1 {
		line("  # Register this URL with %s: %s", d.Name, urls[0])
	} else {
		line("  # Register with %s one URL for each kind of notification it is to send:", d.Name)
		for _, u := range urls {
			line("  #   %s", u)
		}
	}
	line("  - name: %s", name)
	line("    provider: %s", d.Name)
	if !d.Signature.Secretless() {
		line("    secrets:")
		line("      # The variable that holds what the provider signs with. A second entry is for a")
		line("      # rotation: both are tried. Instead of env: file, with the path of a file.")
		line("      - { env: %s_WEBHOOK_SECRET }", strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	}
	if !d.Signature.BodyAuthenticated {
		line("    # The signature does not cover the whole body: money is taken from signed fields")
		line("    # alone, other events go to quarantine. trust: body is for who checks otherwise.")
		line("    # trust: signed_fields_only")
	}
	if len(d.Required) > 0 {
		line("    signature:")
		for _, key := range slices.Sorted(maps.Keys(d.Required)) {
			value := strings.ReplaceAll(d.Required[key], placeholder+"/webhooks/"+d.Name, address(url, name))
			line("      %s: %s", key, value)
		}
	}
	if d.Name == "generic" {
		line("    # How the body is signed: sources[].signature in `hookledger config reference`.")
		line("    signature: { header: X-Signature, algorithm: hmac-sha256, encoding: hex }")
		line("    # Where an event's identity, type and time are.")
		line("    event: { id: id, type: type, time: created_at }")
	}
	switch configured := d.Postings == nil && d.Statuses == nil && d.NonEffect == ""; {
	case configured:
		line("    # What events mean: one rule for each kind of movement. movement names the one")
		line("    # movement of money, never an order or a total.")
		line("    postings:")
		line("      - { type: payment.succeeded, account: data.account_id, amount: data.amount, unit: minor, currency: data.currency, direction: credit, movement: data.payment_id }")
		line("      - { type: payment.refunded, account: data.account_id, amount: data.amount, unit: minor, currency: data.currency, direction: debit, movement: data.refund_id }")
	case len(d.Postings) > 0:
		if d.NoCurrency {
			line("    # Events do not say their currency.")
			line("    currency: RUB")
		}
		paths := d.Account
		if len(paths) == 0 {
			paths = []string{"account_id"}
		}
		line("    # Where the account is in an event; the first that leads to a value counts. An event")
		line("    # that moves money and has none goes to quarantine.")
		for _, note := range d.AccountNote {
			line("    # %s", note)
		}
		line("    account: [%s]", strings.Join(quoted(paths), ", "))
		line("    # What events mean is built in: hookledger sources events %s", name)
	default:
		line("    # Its events move no money: %s", d.NonEffect)
	}
	return b.String()
}

// quoted writes paths as YAML reads them: brackets begin a list there.
func quoted(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if strings.ContainsAny(p, `[]\ `) {
			out[i] = "'" + p + "'"
		}
	}
	return out
}
