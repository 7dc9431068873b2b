package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ledger"
	"hookledger/internal/ops/backfill"
	"hookledger/schema/source"
)

// importAnswer is hookledger.events-import.v1.
type importAnswer struct {
	*backfill.Report
	// Would counts by outcome what would become of the events, Moves the money; null
	// unless it was a dry run.
	Would map[string]int64 `json:"would"`
	Moves []total          `json:"moves"`
	// Error is why the import stopped; null if it came to the end.
	Error *string `json:"error"`
}

// Import makes `hookledger events import`.
func Import(a *app.App) *cobra.Command {
	var name string
	var signed app.Signed
	var dryRun bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Store events of a provider's export or API listing in the topic",
		Long: `Store events of a provider's export or API listing in the topic, to close a gap. FILE (- is
standard input) holds a body of an event on each line; or {"body":…,"id":…,"headers":{…}}
around it, with body as it is, as a text or as body_base64; or a page of a listing,
{"object":"list","data":[…]}. IDs, types and times are read as of a delivery, so what is known
already is a duplicate when a worker reads it: importing twice is safe.

There is no signature to check: records are marked hl_scheme import, and hold who imported
them and why. --dry-run says how many are known and what the others would do to the books.
Bad lines are listed with their numbers, and the exit code is 1; the good ones are stored.

Needs to write the topic, as the receiver's user does in Kafka; --dry-run needs no Kafka but
the rights of hookledger_reader in Postgres.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger events import events.jsonl --source stripe --dry-run
  hookledger events import events.jsonl --source stripe --reason "outage of 2026-11-28, ticket 123"
  curl -s https://api.stripe.com/v1/events?limit=100 -u $KEY: | jq -c . | \
    hookledger events import - --source stripe --reason "gap at the provider"`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := signed.Complete(dryRun); err != nil {
				return err
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			set, src, err := app.Source(cfg, name)
			if err != nil {
				return err
			}
			in, err := open(a, args[0])
			if err != nil {
				return app.Usage(err)
			}
			defer func() { _ = in.Close() }()
			bar := a.NewProgress()
			m := &backfill.Importer{
				Source: src, By: signed.By, Reason: signed.Reason, MaxBodyBytes: cfg.Ingest.MaxBodyBytes,
				Topic: cfg.Kafka.Topic, Options: broker.Options(cfg.Kafka, a.Quiet()),
				Progress: func(lines int64) { bar.Count("reading line", lines) },
			}
			run := func() (*backfill.Report, error) { return storeAll(c.Context(), a, cfg, m, in) }
			if dryRun {
				run = func() (*backfill.Report, error) { return foresee(c.Context(), a, cfg, set, m, in) }
			}
			rep, err := run()
			bar.Clear()
			if rep == nil {
				return err
			}
			return answerImport(a, rep, err)
		},
	}
	c.Flags().StringVar(&name, "source", "", "the source whose events they are; may be left out if only one is configured")
	signed.Flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would happen, change nothing")
	return c
}

func open(a *app.App, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, fmt.Errorf("read events: %s is a folder", file)
	}
	return f, nil
}

// topicPatience bounds the look at the topic before an import.
const topicPatience = 30 * time.Second

// storeAll imports, into a topic that is fit for it.
func storeAll(ctx context.Context, a *app.App, cfg *config.Loaded, m *backfill.Importer, in io.Reader) (*backfill.Report, error) {
	cl, err := broker.Open(cfg.Kafka, a.Quiet())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	asking, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	if _, err := broker.CheckTopic(asking, cl, cfg.Kafka, cfg.Ingest.MaxBodyBytes); err != nil {
		return nil, app.TopicError(err)
	}
	return m.Import(ctx, in)
}

func foresee(ctx context.Context, a *app.App, cfg *config.Loaded, set *source.Set, m *backfill.Importer, in io.Reader) (*backfill.Report, error) {
	pool, err := a.OpenDatabase(ctx, cfg, "events import")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	m.Books = ledger.New(pool, set.Map, ledger.Options{})
	return m.DryRun(ctx, in)
}

// answerImport tells what was done, even if it stopped.
func answerImport(a *app.App, rep *backfill.Report, stopped error) error {
	out := importAnswer{Report: rep}
	if rep.DryRun {
		out.Would, out.Moves = map[string]int64{}, []total{}
		for _, o := range ledger.Outcomes() {
			out.Would[o.String()] = rep.Counts[o]
		}
		for _, t := range ledger.Totals(rep.Moves) {
			out.Moves = append(out.Moves, total{t.Currency, t.Amount})
		}
	}
	if stopped != nil {
		text := stopped.Error()
		out.Error = &text
	}
	if err := a.Print("events-import", out, func(w io.Writer) error { return out.print(w) }); err != nil {
		return err
	}
	switch {
	case errors.Is(stopped, backfill.ErrNoIdentity):
		return app.Usage(stopped)
	case stopped != nil:
		return app.RightsError(stopped)
	case rep.Lines == 0:
		return app.Usage(errors.New("there are no lines: did what should write them fail?"))
	case rep.BadCount > 0:
		hint := ""
		if rep.Events == 0 {
			hint = " (each line is one event: `jq -c .` writes a document as a line, `jq -c '.[]'` each item of an array)"
		}
		return fmt.Errorf("%s bad, and %s good: mend the lines and import them again%s", console.Count(rep.BadCount, "line is", "lines are"), console.Count(rep.Events, "event is", "events are"), hint)
	}
	return nil
}

func (r *importAnswer) print(w io.Writer) error {
	if len(r.Bad) > 0 {
		t := console.NewTable("line>", "reason", "detail")
		for i, b := range r.Bad {
			if i == maxRows {
				break
			}
			t.Row(strconv.FormatInt(b.Line, 10), b.Reason, b.Detail)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		if rest := r.BadCount - int64(min(len(r.Bad), maxRows)); rest > 0 {
			if _, err := fmt.Fprintf(w, "… and %d more\n", rest); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s, %s, %d bad; %d imported as %s", console.Count(r.Lines, "line", "lines"), console.Count(r.Events, "event", "events"), r.BadCount, r.Imported, r.ImportID)
	if r.DryRun {
		line = fmt.Sprintf("%s, %s, %d bad; %d known, %d new", console.Count(r.Lines, "line", "lines"), console.Count(r.Events, "event", "events"), r.BadCount, *r.Known, *r.New)
		for _, o := range ledger.Outcomes() {
			if n := r.Would[o.String()]; n > 0 {
				line += fmt.Sprintf("\n%d would be %s", n, o)
			}
		}
		for _, m := range r.Moves {
			line += "\n" + console.Amount(m.Amount, m.Currency) + " would move"
		}
		line += "\nnothing was changed: this was a dry run"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
