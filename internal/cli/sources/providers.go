package sources

import (
	"io"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema/provider"
)

// known is a provider in JSON.
type known struct {
	Name              string   `json:"name"`
	Signature         string   `json:"signature"`
	BodyAuthenticated bool     `json:"body_authenticated"`
	EventID           string   `json:"event_id"`
	Answer            string   `json:"answer"`
	Unit              string   `json:"unit"`
	Credits           []string `json:"credits"`
	Debits            []string `json:"debits"`
	// Unsigned go to quarantine unless the body is trusted, Unclear always.
	Unsigned   []string `json:"unsigned"`
	Unclear    []string `json:"unclear"`
	Livemode   string   `json:"livemode"`
	NonEffect  string   `json:"non_effect"`
	Configured bool     `json:"meaning_is_configured"`
}

func providers(a *app.App) *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "providers",
		Short: "List the providers that are known",
		Args:  cobra.NoArgs,
		Example: `  hookledger sources providers
  hookledger sources providers --markdown`,
		RunE: func(*cobra.Command, []string) error {
			if markdown {
				_, err := io.WriteString(a.Stdout, provider.Markdown())
				return err
			}
			out := struct {
				Providers []known `json:"providers"`
			}{[]known{}}
			for _, s := range provider.Summaries() {
				out.Providers = append(out.Providers, known{
					Name: s.Name, Signature: plain(s.Signature), BodyAuthenticated: s.BodyAuthenticated, EventID: plain(s.EventID),
					Answer: plain(s.Answer), Unit: s.Unit, Credits: some(s.Credits), Debits: some(s.Debits),
					Unsigned: some(s.Unsigned), Unclear: some(s.Unclear), Livemode: plain(s.Livemode),
					NonEffect: s.NonEffect, Configured: s.Configured,
				})
			}
			return a.Print("sources-providers", out, func(w io.Writer) error {
				t := console.NewTable("provider", "signature", "whole body signed", "event ID", "meaning")
				for _, p := range out.Providers {
					t.Row(p.Name, p.Signature, yesNo(p.BodyAuthenticated), p.EventID, meaning(p))
				}
				return t.Write(w)
			})
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table of the README")
	return c
}

// some is list, and never null in JSON.
func some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func meaning(p known) string {
	switch {
	case p.Configured:
		return "configured"
	case p.NonEffect != "":
		return "none: " + p.NonEffect
	}
	return "built in, amounts in " + p.Unit + " units"
}
