package setup

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/observe"
)

// Version makes `hookledger version`.
func Version(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which program this is",
		Args:    cobra.NoArgs,
		Example: "  hookledger version\n  hookledger version --json",
		RunE: func(*cobra.Command, []string) error {
			b := observe.Build()
			return a.Print("version", b, func(w io.Writer) error {
				if _, err := fmt.Fprintf(w, "hookledger %s\n", console.Safe(b.Version)); err != nil {
					return err
				}
				t := console.NewTable("", "").Indent("  ")
				if b.Commit != "" {
					t.Row("commit", b.Commit)
					t.Row("committed", b.Time)
				}
				t.Row("built with", b.Go)
				t.Row("for", b.OS+"/"+b.Arch)
				return t.Write(w)
			})
		},
	}
}
