package books

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/verify"
)

// Verify makes `hookledger verify`.
func Verify(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Prove that the books agree with the topic and with themselves",
		Long: `Prove that the books agree with the topic and with themselves, by code that shares
nothing with what wrote them: every balance is the sum of its entries, every applied
event has an entry and every entry something behind it, and every record below the
committed offset is on record.

It reads the topic and the tables, changes nothing, and may run beside the workers.
Exit code 3 if the promise is broken; each finding names the command to run next.
Open matters that break no promise are notes.`,
		Args: cobra.NoArgs,
		Example: `  hookledger verify
  hookledger verify --json | jq '.checks[] | select(.ok | not)'`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			if err := cfg.Kafka.CheckSecurity(); err != nil {
				return app.Usage(err)
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "verify")
			if err != nil {
				return err
			}
			defer pool.Close()
			progress := newProgress(a)
			report, err := verify.Run(c.Context(), verify.Options{
				Pool:      pool,
				KafkaOpts: broker.Options(cfg.Kafka, a.Quiet()),
				Topic:     cfg.Kafka.Topic,
				Group:     cfg.Kafka.Group,
				Progress:  progress.update,
			})
			progress.clear()
			if err != nil {
				return app.TopicError(err)
			}
			if err := a.Print("verify", report, func(w io.Writer) error { return printReport(w, report) }); err != nil {
				return err
			}
			if !report.OK {
				return app.ErrFound
			}
			return nil
		},
	}
}

func printReport(w io.Writer, r verify.Report) error {
	t := console.NewTable("", "", "")
	for _, c := range r.Checks {
		verdict := "ok"
		if !c.OK {
			verdict = "BROKEN"
		}
		t.Row(verdict, c.Name, c.Found)
	}
	for _, n := range r.Notes {
		t.Row("note", n.Name, n.Found)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	verdict := "\nthe books are right"
	if !r.OK {
		verdict = "\nTHE BOOKS ARE NOT RIGHT; next:"
	}
	if _, err := fmt.Fprintln(w, verdict); err != nil {
		return err
	}
	for _, c := range r.Checks {
		if c.OK || c.Next == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "  %s: %s\n", c.Name, console.Safe(c.Next)); err != nil {
			return err
		}
	}
	return nil
}

// progress is one line on a terminal that is written over; elsewhere it is silent.
type progress struct {
	w    io.Writer
	last time.Time
}

func newProgress(a *app.App) *progress {
	if f, ok := a.Stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) && !a.JSON {
		return &progress{w: f}
	}
	return &progress{}
}

func (p *progress) update(done, total int64) {
	if p.w == nil || total == 0 || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	_, _ = fmt.Fprintf(p.w, "\r\x1b[Kreading the topic: %d of %d records (%d %%)", done, total, done*100/total)
}

func (p *progress) clear() {
	if p.w != nil && !p.last.IsZero() {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}
