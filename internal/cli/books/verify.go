package books

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/verify"
)

// defaultMark is where the mark of an increment is kept, beside what `dev` keeps.
const defaultMark = ".hookledger/verify.mark"

type verifyFlags struct {
	from, to    string
	incremental bool
	mark        string
	histories   []string
	strict      bool
}

// Verify makes `hookledger verify`.
func Verify(a *app.App) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify",
		Short: "Prove that the books agree with the topic and with themselves",
		Long: `Prove that the books agree with the topic and with themselves, by code that shares
nothing with what wrote them: every balance is the sum of its entries, every applied
event has an entry and every entry something behind it, entries are what their event was
recorded to mean, every record below the committed offset is on record, and bytes and
signatures hold as of when they were received.

It reads the topic and the tables, changes nothing there, needs a role that is granted
hookledger_reader, and may run beside the workers. Exit code 3 if the promise is broken;
each finding names the command to run next. Open matters that break no promise are
notes; --strict makes those that wait for a person break it.

--incremental proves what came since the last run, so that it can run every minute. How
far that was is kept in a file (--mark). It does not read again what was proved before:
run verify without it once a day. See go doc hookledger/internal/verify.`,
		Args: cobra.NoArgs,
		Example: `  hookledger verify
  hookledger verify --json | jq '.checks[] | select(.ok | not)'
  hookledger verify --incremental --mark /var/lib/hookledger/verify.mark
  hookledger verify --from-time 2026-11-29T00:00:00Z --to-time 2026-11-30T00:00:00Z
  hookledger verify --history sent.jsonl`,
		RunE: func(c *cobra.Command, _ []string) error { return runVerify(c, a, f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.from, "from-time", "", "judge records received at or after this time (RFC 3339); tables are compared whole")
	flags.StringVar(&f.to, "to-time", "", "judge records received before this time (RFC 3339)")
	flags.BoolVar(&f.incremental, "incremental", false, "prove what came since the last run, as the mark remembers it")
	flags.StringVar(&f.mark, "mark", defaultMark, "file of the mark, with --incremental")
	flags.StringArrayVar(&f.histories, "history", nil, "a `file` of acknowledged deliveries, as send --history writes it; may be repeated")
	flags.BoolVar(&f.strict, "strict", false, "fail on quarantine, conflicts and warnings that wait for a person, too")
	return c
}

func runVerify(c *cobra.Command, a *app.App, f verifyFlags) error {
	opts, err := f.options(c.Flags().Changed("mark"))
	if err != nil {
		return app.Usage(err)
	}
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
	if f.incremental {
		if opts.Since, err = readMark(f.mark); err != nil {
			return err
		}
	}
	progress := a.NewProgress()
	opts.Pool, opts.KafkaOpts = pool, broker.Options(cfg.Kafka, a.Quiet())
	opts.Progress = func(done, total int64) { progress.Update("records read", done, total) }
	opts.Topic, opts.Group, opts.Command = cfg.Kafka.Topic, cfg.Kafka.Group, commandWords(a)
	opts.CheckSignature = newSignatures(cfg).check
	opts.SourceKey = sourceKeys(cfg)
	opts.Meaning = todaysMeaning(cfg)
	var report verify.Report
	err = broker.Patiently(c.Context(), func() (err error) {
		report, err = verify.Run(c.Context(), opts)
		return err
	})
	progress.Clear()
	var history *verify.HistoryError
	switch {
	case errors.As(err, &history), errors.Is(err, verify.ErrStandby):
		return app.Usage(err)
	case err != nil:
		return app.TopicError(err)
	}
	if err := a.Print("verify", report, func(w io.Writer) error { return printReport(w, report) }); err != nil {
		return err
	}
	switch {
	case !report.OK:
		// A mark of books that are not right would let the next run pass them by.
		return app.ErrFound
	case report.Mark != nil:
		return writeMark(f.mark, report.Mark)
	}
	return nil
}

// options checks the flags.
func (f *verifyFlags) options(marked bool) (verify.Options, error) {
	opts := verify.Options{Incremental: f.incremental, Histories: f.histories, Strict: f.strict}
	for _, t := range []struct {
		flag, text string
		into       *time.Time
	}{{"--from-time", f.from, &opts.From}, {"--to-time", f.to, &opts.To}} {
		at, err := app.Time(t.flag, t.text)
		if err != nil {
			return opts, err
		}
		if at != nil {
			*t.into = *at
		}
	}
	for _, file := range f.histories {
		if _, err := os.Stat(file); err != nil {
			return opts, fmt.Errorf("read --history: %w", err)
		}
	}
	switch {
	case f.incremental && (f.from != "" || f.to != ""):
		return opts, errors.New("--incremental goes on from its mark: leave out --from-time and --to-time")
	case !opts.From.IsZero() && !opts.To.IsZero() && !opts.From.Before(opts.To):
		return opts, errors.New("--from-time is not before --to-time: nothing lies between them")
	case marked && !f.incremental:
		return opts, errors.New("--mark is for --incremental: give both, or neither to prove everything")
	case f.incremental && f.mark == "":
		return opts, errors.New("--mark is empty: name the file that remembers what was proved")
	}
	return opts, nil
}

// commandWords are how a command to run next begins, so that it asks the same
// configuration.
func commandWords(a *app.App) string {
	if a.ConfigFile == "" {
		return "hookledger"
	}
	return "hookledger --config " + verify.ShellWord(a.ConfigFile)
}

// sourceKeys turns the names of sources into their keys.
func sourceKeys(cfg *config.Loaded) func(string) string {
	keys := make(map[string]string, len(cfg.Sources))
	for _, s := range cfg.Sources {
		if s.Key != "" {
			keys[s.Name] = s.Key
		}
	}
	return func(name string) string {
		if key, ok := keys[name]; ok {
			return key
		}
		return name
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
	return printOpen(w, r)
}

// printOpen names the commands of notes.
func printOpen(w io.Writer, r verify.Report) error {
	title := "notes; to look at them:\n"
	for _, n := range r.Notes {
		if n.Next == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", title, n.Name, console.Safe(n.Next)); err != nil {
			return err
		}
		title = ""
	}
	return nil
}
