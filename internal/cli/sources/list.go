package sources

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema/provider"
)

// listed is a source in JSON.
type listed struct {
	Name              string `json:"name"`
	Key               string `json:"key"`
	Provider          string `json:"provider"`
	Path              string `json:"path"`
	BodyAuthenticated bool   `json:"body_authenticated"`
	Secrets           int    `json:"secrets"`
}

func list(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the configured sources",
		Args:    cobra.NoArgs,
		Example: "  hookledger sources list",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			if err := cfg.RequireSources(); err != nil {
				return err
			}
			set, err := provider.NewSet(cfg.Sources)
			if err != nil {
				return app.Usage(err)
			}
			out := struct {
				Sources []listed `json:"sources"`
			}{[]listed{}}
			for _, s := range set.All() {
				out.Sources = append(out.Sources, listed{
					Name: s.Name(), Key: s.Key(), Provider: s.Provider(), Path: "/webhooks/" + s.Name(),
					BodyAuthenticated: s.BodyAuthenticated(), Secrets: len(s.Secrets()),
				})
			}
			return a.Print("sources-list", out, func(w io.Writer) error {
				t := console.NewTable("source", "provider", "path", "whole body signed", "secrets>")
				for _, s := range out.Sources {
					t.Row(s.Name, s.Provider, s.Path, yesNo(s.BodyAuthenticated), fmt.Sprint(s.Secrets))
				}
				return t.Write(w)
			})
		},
	}
}
