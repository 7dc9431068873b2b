package setup

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/migrations"
)

// Migrate makes `hookledger migrate`.
func Migrate(a *app.App) *cobra.Command {
	c := app.Group("migrate", "Bring the database schema forward or back", migrateUp(a), migrateDown(a), migrateStatus(a))
	c.Long = `Bring the database schema forward or back.

Roles refuse to start on a schema older or newer than they know. Run
` + "`hookledger migrate up`" + ` with the new release before its roles start; several at once
take turns. The database role must own the tables, or be allowed to create them.`
	return c
}

// migration is one migration in JSON.
type migration struct {
	Version   int64   `json:"version"`
	Name      string  `json:"name"`
	AppliedAt *string `json:"applied_at"`
}

type migrateResult struct {
	// Changed are the migrations that the command applied or took back, or would.
	Changed    []migration `json:"changed"`
	Migrations []migration `json:"migrations"`
	DryRun     bool        `json:"dry_run"`
}

func migrateUp(a *app.App) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:     "up",
		Short:   "Apply every migration that the database lacks",
		Args:    cobra.NoArgs,
		Example: "  hookledger migrate up --dry-run\n  hookledger migrate up",
		RunE: func(c *cobra.Command, _ []string) error {
			return migrate(c.Context(), a, "migrate-up", "applied", dryRun, func(ctx context.Context, cfg *config.Loaded) error {
				return migrations.Up(ctx, cfg.Database.URL)
			}, func(before []migrations.Migration) []migrations.Migration {
				var missing []migrations.Migration
				for _, m := range before {
					if m.AppliedAt.IsZero() {
						missing = append(missing, m)
					}
				}
				return missing
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be applied, change nothing")
	return c
}

func migrateDown(a *app.App) *cobra.Command {
	var dryRun, yes bool
	c := &cobra.Command{
		Use:   "down",
		Short: "Take back the latest migration, with everything its tables hold",
		Long: `Take back the latest applied migration, with everything its tables hold. This drops
data: entries of the ledger cannot be made again once the topic no longer holds
their events. So it asks for --yes.`,
		Args:    cobra.NoArgs,
		Example: "  hookledger migrate down --dry-run\n  hookledger migrate down --yes",
		RunE: func(c *cobra.Command, _ []string) error {
			if !dryRun && !yes {
				return app.Usage(fmt.Errorf("migrate down drops tables and what they hold: see --dry-run, then say --yes"))
			}
			return migrate(c.Context(), a, "migrate-down", "taken back", dryRun, func(ctx context.Context, cfg *config.Loaded) error {
				return migrations.Down(ctx, cfg.Database.URL)
			}, func(before []migrations.Migration) []migrations.Migration {
				for i := len(before) - 1; i >= 0; i-- {
					if !before[i].AppliedAt.IsZero() {
						return before[i : i+1]
					}
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be taken back, change nothing")
	c.Flags().BoolVar(&yes, "yes", false, "really drop it")
	return c
}

// migrate does one direction. plan picks from the state before what it will change.
func migrate(ctx context.Context, a *app.App, command, done string, dryRun bool,
	do func(context.Context, *config.Loaded) error, plan func([]migrations.Migration) []migrations.Migration,
) error {
	cfg, err := databaseConfig(a)
	if err != nil {
		return err
	}
	before, err := migrations.Status(ctx, cfg.Database.URL)
	if err != nil {
		return app.SchemaError(err)
	}
	changed, after := plan(before), before
	if !dryRun {
		if err := do(ctx, cfg); err != nil {
			return err
		}
		if after, err = migrations.Status(ctx, cfg.Database.URL); err != nil {
			return err
		}
	} else {
		done = "would be " + done
	}
	out := migrateResult{Changed: inJSON(changed), Migrations: inJSON(after), DryRun: dryRun}
	return a.Print(command, out, func(w io.Writer) error {
		if len(changed) == 0 {
			_, err := fmt.Fprintln(w, "nothing to do: the schema is as it should be")
			return err
		}
		for _, m := range changed {
			if _, err := fmt.Fprintf(w, "%s %s\n", console.Safe(m.Name), done); err != nil {
				return err
			}
		}
		return nil
	})
}

func migrateStatus(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and when each was applied",
		Args:    cobra.NoArgs,
		Example: "  hookledger migrate status\n  hookledger migrate status --json",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := databaseConfig(a)
			if err != nil {
				return err
			}
			list, err := migrations.Status(c.Context(), cfg.Database.URL)
			if err != nil {
				return app.SchemaError(err)
			}
			out := struct {
				Migrations []migration `json:"migrations"`
			}{inJSON(list)}
			return a.Print("migrate-status", out, func(w io.Writer) error {
				t := console.NewTable("version>", "name", "applied")
				for _, m := range list {
					applied := "not applied: run `hookledger migrate up`"
					if !m.AppliedAt.IsZero() {
						applied = console.Time(m.AppliedAt)
					}
					t.Row(fmt.Sprint(m.Version), m.Name, applied)
				}
				return t.Write(w)
			})
		},
	}
}

func databaseConfig(a *app.App) (*config.Loaded, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	return cfg, cfg.RequireDatabase()
}

func inJSON(list []migrations.Migration) []migration {
	all := []migration{}
	for _, m := range list {
		all = append(all, migration{m.Version, m.Name, console.JSONTime(m.AppliedAt.Truncate(time.Second))})
	}
	return all
}
