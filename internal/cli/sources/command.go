package sources

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/config"
	"hookledger/schema/provider"
)

// Command makes `hookledger sources`.
func Command(a *app.App) *cobra.Command {
	return app.Group("sources", "Show sources, what their events mean, and add one",
		list(a), show(a), secrets(a), events(a), providers(a), create(a), check(a))
}

// configured returns the configuration of the source with a name.
func configured(a *app.App, name string) (*config.Loaded, provider.Config, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, provider.Config{}, err
	}
	if err := cfg.RequireSources(); err != nil {
		return nil, provider.Config{}, err
	}
	var names []string
	for _, c := range cfg.Sources {
		if c.Name == name {
			return cfg, c, nil
		}
		names = append(names, c.Name)
	}
	return nil, provider.Config{}, app.Usage(fmt.Errorf("source %q is not configured: use one of %s", name, strings.Join(names, ", ")))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
