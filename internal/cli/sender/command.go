package sender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/schema/provider"
)

// Command makes `hookledger send`.
func Command(a *app.App) *cobra.Command {
	var name, history string
	var currencies []string
	var noRetry, dryRun bool
	o := Options{}
	c := &cobra.Command{
		Use:   "send",
		Short: "Play a provider: sign and post deliveries of one posting each",
		Long: `Play a provider: sign and post deliveries of one posting each to the receiver.

--count distinct events fall on --accounts accounts (acct_1, acct_2, …); a share of
--duplicates is delivered a second time. The same --seed makes the same events, so that
a second run with it moves no money. With --history every answer is kept as a line of
JSON that is on disk before the next delivery.

Exit code 1 if an event was refused or never acknowledged.`,
		Args: cobra.NoArgs,
		Example: `  hookledger send --source acme --count 100
  hookledger send --source stripe --count 10000 --rate 500 --concurrency 64 --duplicates 0.3
  hookledger send --source stripe --count 1000 --seed 7 --history sent.jsonl`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			_, source, err := app.Source(cfg, name)
			if err != nil {
				return err
			}
			if o.URL == "" {
				o.URL = receiverURL(cfg.Ingest.Listen)
				if cfg.Ingest.TLS.CertFile != "" {
					o.URL = "https" + strings.TrimPrefix(o.URL, "http")
				}
			}
			o.Retry = !noRetry
			for i := range currencies {
				currencies[i] = strings.ToUpper(currencies[i])
			}
			o.Currencies = currencies
			if !c.Flags().Changed("currencies") {
				o.Currencies = possible(source, o, currencies)
			}
			if !c.Flags().Changed("seed") {
				o.Seed = rand.Uint64N(1 << 32)
			}
			if err := o.check(); err != nil {
				return app.Usage(err)
			}
			if dryRun {
				return printPlan(a, source, o)
			}
			summary, err := Send(c.Context(), source, o, history)
			if err != nil {
				return err
			}
			if err := a.Print("send", summary, func(w io.Writer) error { return printSummary(w, summary) }); err != nil {
				return err
			}
			return verdict(c.Context(), summary)
		},
	}
	f := c.Flags()
	f.StringVar(&name, "source", "", "the source to sign for; may be left out if only one is configured")
	f.IntVar(&o.Count, "count", 1, "distinct events")
	f.Float64Var(&o.Rate, "rate", 0, "deliveries a second; 0 is as fast as they are answered")
	f.IntVar(&o.Accounts, "accounts", 10, "accounts among which the events fall")
	f.Float64Var(&o.Duplicates, "duplicates", 0, "share of events delivered a second time, 0 to 1")
	f.Float64Var(&o.Debits, "debits", 0, "share of events that debit, where the source's rules can, 0 to 1")
	f.StringSliceVar(&currencies, "currencies", []string{"EUR", "USD"}, "currencies to draw from")
	f.IntVar(&o.Concurrency, "concurrency", 8, "deliveries under way at once")
	f.Uint64Var(&o.Seed, "seed", 0, "decides everything that is drawn (default: a new one)")
	f.StringVar(&history, "history", "", "append every answer to this file, as JSON lines")
	f.StringVar(&o.URL, "url", "", "the receiver, such as http://127.0.0.1:8080 (default: from ingest.listen)")
	f.BoolVar(&noRetry, "no-retry", false, "do not send again what was not answered clearly")
	f.DurationVar(&o.GiveUp, "give-up", time.Minute, "stop sending an event again after this time")
	f.BoolVar(&dryRun, "dry-run", false, "print the first delivery, send nothing")
	return c
}

// possible keeps the currencies that the source's rules can say; all if none, so that
// the error names the reason.
func possible(source *provider.Source, o Options, currencies []string) []string {
	var can []string
	for _, currency := range currencies {
		one := o
		one.Currencies = []string{currency}
		one.Accounts = max(o.Accounts, 1)
		if _, err := newEvent(source, &one, 0); err == nil {
			can = append(can, currency)
		}
	}
	if len(can) == 0 {
		return currencies
	}
	return can
}

// receiverURL is where a receiver on this machine that listens on addr is reached.
func receiverURL(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func printPlan(a *app.App, source *provider.Source, o Options) error {
	e, err := newEvent(source, &o, 0)
	if err != nil {
		return app.Usage(err)
	}
	out := struct {
		Source     string `json:"source"`
		URL        string `json:"url"`
		Seed       uint64 `json:"seed"`
		Events     int    `json:"events"`
		Deliveries int    `json:"deliveries"`
		EventID    string `json:"first_event_id"`
		Body       string `json:"first_body"`
		DryRun     bool   `json:"dry_run"`
	}{source.Name(), o.URL, o.Seed, o.Count, len(schedule(&o)), e.fact.EventID, string(e.delivery.Body), true}
	return a.Print("send", out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "would deliver %s in %s to %s/webhooks/%s, seed %d; the first:\n%s\n",
			counted(out.Events, "event", "events"), counted(out.Deliveries, "delivery", "deliveries"), console.Safe(o.URL), out.Source, out.Seed, console.Safe(out.Body))
		return err
	})
}

func printSummary(w io.Writer, s Summary) error {
	if _, err := fmt.Fprintf(w, "sent %s in %s to %s in %.1f s (%.0f/s), seed %d\n",
		counted(s.Events, "event", "events"), counted(s.Deliveries, "delivery", "deliveries"), console.Safe(s.URL), s.DurationSeconds, s.PerSecond, s.Seed); err != nil {
		return err
	}
	t := console.NewTable("", ">").Indent("  ")
	t.Row("acknowledged", fmt.Sprint(s.Acknowledged))
	t.Row("refused", fmt.Sprint(s.Refused))
	t.Row("unknown", fmt.Sprint(s.Unknown))
	t.Row("sent again", fmt.Sprint(s.Retries))
	for _, status := range slices.Sorted(maps.Keys(s.Answers)) {
		word := fmt.Sprintf("answers %d", status)
		if status == 0 {
			word = "no answer"
		}
		t.Row(word, fmt.Sprint(s.Answers[status]))
	}
	for _, m := range s.Acked {
		t.Row("money acknowledged", console.Amount(m.Amount, m.Currency))
	}
	t.Row("latency p50", fmt.Sprintf("%.1f ms", s.LatencyMS.P50))
	t.Row("latency p99", fmt.Sprintf("%.1f ms", s.LatencyMS.P99))
	if err := t.Write(w); err != nil {
		return err
	}
	if s.FirstError != "" {
		_, err := fmt.Fprintf(w, "first error: %s\n", console.Safe(s.FirstError))
		return err
	}
	return nil
}

// verdict is the error of a run that did not get every event acknowledged.
func verdict(ctx context.Context, s Summary) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case s.Refused > 0:
		return fmt.Errorf("%s refused: the receiver's log says why", counted(s.Refused, "event was", "events were"))
	case s.Unknown > 0:
		return fmt.Errorf("%s never acknowledged: is the receiver up at %s?", counted(s.Unknown, "event was", "events were"), s.URL)
	}
	return nil
}

func counted(n int, one, many string) string { return console.Count(int64(n), one, many) }
