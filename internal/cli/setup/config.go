package setup

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
)

// Config makes `hookledger config`.
func Config(a *app.App) *cobra.Command {
	c := app.Group("config", "Show, explain and check the configuration",
		configShow(a), configCheck(a), configReference(a))
	c.Long = `Show, explain and check the configuration.

The file is the one of --config, else of HOOKLEDGER_CONFIG, else hookledger.yaml,
else .hookledger/hookledger.yaml, which a running ` + "`hookledger dev`" + ` keeps. Every key has
an environment variable that overrides the file, by one rule:

  kafka.brokers  →  HOOKLEDGER_KAFKA_BROKERS      (items of a list: comma separated)

A key or a variable that does not exist is an error that names the nearest one.`
	return c
}

func configShow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the effective configuration, secrets masked, and where each value came from",
		Args:  cobra.NoArgs,
		Example: `  hookledger config show
  hookledger config show --json | jq -r '.settings[] | select(.origin != "default") | .key'`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			out := struct {
				File     string           `json:"file"`
				Settings []config.Setting `json:"settings"`
			}{cfg.File, cfg.Settings()}
			return a.Print("config-show", out, func(w io.Writer) error {
				if err := printFile(w, cfg.File); err != nil {
					return err
				}
				t := console.NewTable("key", "value", "from")
				for _, s := range out.Settings {
					t.Row(s.Path, s.Value, s.Origin)
				}
				return t.Write(w)
			})
		},
	}
}

func printFile(w io.Writer, file string) error {
	text := "no configuration file: defaults and environment alone\n\n"
	if file != "" {
		text = "file " + console.Safe(file) + "\n\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func configCheck(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Read configuration and secrets as a role would, and say what is wrong",
		Long: `Read the configuration and every secret it names, as a role would when it starts,
and list what is wrong, all of it at once. Nothing is contacted.`,
		Args:    cobra.NoArgs,
		Example: "  hookledger config check --config /etc/hookledger.yaml && systemctl restart hookledger-ingest",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			secrets, err := cfg.CheckSecrets(a.Quiet())
			if err != nil {
				return err
			}
			out := struct {
				OK      bool     `json:"ok"`
				File    string   `json:"file"`
				Sources int      `json:"sources"`
				Secrets int      `json:"secrets"`
				Notes   []string `json:"notes"`
			}{true, cfg.File, len(cfg.Sources), secrets, notes(cfg)}
			return a.Print("config-check", out, func(w io.Writer) error {
				if _, err := fmt.Fprintf(w, "configuration is fine: %d sources, %d secrets\n", out.Sources, out.Secrets); err != nil {
					return err
				}
				for _, n := range out.Notes {
					if _, err := fmt.Fprintf(w, "note: %s\n", console.Safe(n)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func notes(cfg *config.Loaded) []string {
	all := []string{}
	if cfg.File == "" {
		all = append(all, "no configuration file was found; name one with --config")
	}
	if w := cfg.Kafka.Warning(); w != "" {
		all = append(all, w)
	}
	if cfg.Database.URL == "" {
		all = append(all, "database.url is not set: only ingest and topics work without it")
	}
	if len(cfg.Sources) == 0 {
		all = append(all, "no sources are configured: ingest will not start")
	}
	return all
}

func configReference(a *app.App) *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "reference",
		Short: "Print every key with type, default, unit, meaning and environment variable",
		Args:  cobra.NoArgs,
		Example: `  hookledger config reference | less
  hookledger config reference --markdown`,
		RunE: func(*cobra.Command, []string) error {
			if markdown && a.JSON {
				return app.Usage(errors.New("--markdown and --json exclude each other"))
			}
			if markdown {
				_, err := io.WriteString(a.Stdout, config.Markdown())
				return err
			}
			return printReference(a)
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print a Markdown table, as in the README")
	return c
}

func printReference(a *app.App) error {
	type key struct {
		Key     string `json:"key"`
		Env     string `json:"env"`
		Type    string `json:"type"`
		Default string `json:"default"`
		Unit    string `json:"unit"`
		Meaning string `json:"meaning"`
		Secret  bool   `json:"secret"`
	}
	out := struct {
		Keys []key `json:"keys"`
	}{}
	for _, k := range config.Keys() {
		out.Keys = append(out.Keys, key{k.Path, k.Env, k.Type, k.Default, k.Unit, k.Meaning, k.Secret})
	}
	return a.Print("config-reference", out, func(w io.Writer) error {
		for _, k := range config.Keys() {
			if _, err := fmt.Fprintf(w, "%s\n    %s\n    %s", k.Path, k.Meaning, k.TypeAndUnit()); err != nil {
				return err
			}
			if k.Default != "" {
				if _, err := fmt.Fprintf(w, ", default %s", k.Default); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(w, ", %s\n", k.Env); err != nil {
				return err
			}
		}
		return nil
	})
}
