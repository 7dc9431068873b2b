package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/ops/doctor"
	"hookledger/migrations"
)

// patience bounds the whole examination.
const patience = time.Minute

// Command makes `hookledger doctor`.
func Command(a *app.App) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine everything the promise rests on, and say what to mend",
		Long: `Examine everything the promise rests on: brokers, topic, group, Postgres, rights, clock,
schema, secrets and certificates. Nothing is changed. Each finding says what was found,
why it matters and what mends it. Exit code 3 if there is a problem or a warning.`,
		Args: cobra.NoArgs,
		Example: `  hookledger doctor
  hookledger doctor --json | jq '.findings[] | select(.verdict == "problem")'`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			deps := doctor.Deps{Config: cfg, Log: zerolog.Nop()} // what matters is in the findings
			deps.Kafka, deps.KafkaError = broker.Open(cfg.Kafka, deps.Log)
			if deps.Kafka != nil {
				defer deps.Kafka.Close()
			}
			if cfg.Database.URL != "" {
				pool, err := app.NewPool(ctx, cfg, "hookledger doctor", 1)
				if err != nil {
					return err
				}
				defer pool.Close()
				deps.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, pool.Config().ConnConfig) }
				deps.CheckSchema = func(ctx context.Context) error { return migrations.Check(ctx, pool) }
			}
			report := doctor.Examine(ctx, deps)
			if err := a.Print("doctor", report, func(w io.Writer) error { return printReport(w, report, all) }); err != nil {
				return err
			}
			if !report.OK {
				return app.ErrFound
			}
			return nil
		},
	}
	c.AddCommand(generations(a))
	c.Flags().BoolVar(&all, "all", false, "list what is well too")
	return c
}

func printReport(w io.Writer, r doctor.Report, all bool) error {
	well := 0
	for _, f := range r.Findings {
		if f.Verdict == doctor.OK {
			well++
			if !all {
				continue
			}
		}
		if _, err := fmt.Fprintf(w, "%-8s %s: %s\n", f.Verdict, console.Safe(f.Check), console.Safe(f.Found)); err != nil {
			return err
		}
		if f.Reason == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "         why: %s\n         do:  %s\n", console.Safe(f.Reason), console.Safe(f.Repair)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d problems, %d warnings, %d notes; %d checks are fine\n", r.Problems, r.Warnings, len(r.Findings)-well-r.Problems-r.Warnings, well)
	return err
}
