package sources

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema/provider"
)

// secret is a secret of a source in JSON, without the secret.
type secret struct {
	ID        string  `json:"id"`
	From      string  `json:"from"`
	NotBefore *string `json:"not_before"`
	NotAfter  *string `json:"not_after"`
}

// shown is a source in JSON.
type shown struct {
	listed
	Scheme    string   `json:"scheme"`
	Signature string   `json:"signature"`
	EventID   string   `json:"event_id"`
	Account   []string `json:"account"`
	Answer    string   `json:"answer"`
	Methods   []string `json:"methods"`
	SecretIDs []secret `json:"secret_list"`
	Events    []effect `json:"events"`
}

func show(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show SOURCE",
		Short: "Show one source: its scheme, its secrets by name, what its events mean",
		Args:  cobra.ExactArgs(1),
		Example: `  hookledger sources show stripe
  hookledger sources show stripe --json | jq .events`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, c, err := configured(a, args[0])
			if err != nil {
				return err
			}
			s, err := provider.New(c)
			if err != nil {
				return app.Usage(err)
			}
			out, err := describe(c, s)
			if err != nil {
				return err
			}
			return a.Print("sources-show", out, func(w io.Writer) error { return printShown(w, out) })
		},
	}
}

func describe(c provider.Config, s *provider.Source) (shown, error) {
	effects, err := effectsOf(c)
	if err != nil {
		return shown{}, err
	}
	out := shown{
		listed: listed{
			Name: s.Name(), Key: s.Key(), Provider: s.Provider(), Path: "/webhooks/" + s.Name(),
			BodyAuthenticated: s.BodyAuthenticated(), Secrets: len(s.Secrets()),
		},
		Scheme: s.Signature().Scheme, Account: c.Account, Methods: s.Methods(), SecretIDs: []secret{}, Events: effects,
	}
	all := provider.Summaries()
	if i := slices.IndexFunc(all, func(p provider.Summary) bool { return p.Name == s.Provider() }); i >= 0 {
		out.Signature, out.EventID, out.Answer = plain(all[i].Signature), plain(all[i].EventID), plain(all[i].Answer)
	}
	for i, sc := range s.Secrets() {
		entry := secret{ID: fmt.Sprintf("value-%d", i+1), From: "value", NotBefore: bound(sc.NotBefore), NotAfter: bound(sc.NotAfter)}
		switch {
		case sc.Env != "":
			entry.ID, entry.From = sc.Env, "env "+sc.Env
		case sc.File != "":
			entry.ID, entry.From = filepath.Base(sc.File), "file "+sc.File
		}
		if sc.ID != "" {
			entry.ID = sc.ID
		}
		out.SecretIDs = append(out.SecretIDs, entry)
	}
	return out, nil
}

// bound writes one end of the time in which a secret is valid; nil for no end.
func bound(t time.Time) *string { return console.JSONTime(t) }

// plain removes the marks of code from a text made for Markdown.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

func printShown(w io.Writer, s shown) error {
	t := console.NewTable("", "")
	t.Row("source", s.Name)
	t.Row("provider", s.Provider)
	t.Row("path", strings.Join(s.Methods, ", ")+" "+s.Path)
	t.Row("signature", s.Signature)
	t.Row("whole body signed", yesNo(s.BodyAuthenticated))
	t.Row("event ID", s.EventID)
	t.Row("account", strings.Join(s.Account, ", else "))
	t.Row("answer", s.Answer)
	for _, sc := range s.SecretIDs {
		text := sc.From
		if sc.NotBefore != nil {
			text += ", from " + *sc.NotBefore
		}
		if sc.NotAfter != nil {
			text += ", until " + *sc.NotAfter
		}
		t.Row("secret "+sc.ID, text)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printEffects(w, s.Events)
}
