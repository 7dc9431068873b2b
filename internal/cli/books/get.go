package books

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
)

// getAnswer is hookledger.events-get.v1.
type getAnswer struct {
	Source  string `json:"source"`
	EventID string `json:"event_id"`
	record
	Body       []byte  `json:"body_base64"`
	BodyText   *string `json:"body_text"`
	BodySHA256 string  `json:"body_sha256"`
}

func eventsGet(a *app.App) *cobra.Command {
	var source string
	var bodyOnly bool
	c := &cobra.Command{
		Use:   "get EVENT_ID",
		Short: "Get one event's record from the topic, or from quarantine",
		Long: `Get one event's record with its bytes: from the topic, or from quarantine if it was never
applied. With --body the bytes go to standard output as they are, unless that is a
terminal, which they must not steer. Needs the rights of hookledger_reader, and in Kafka
to read the topic.`,
		Args: cobra.ExactArgs(1),
		Example: `  hookledger events get evt_1
  hookledger events get evt_1 --body | jq .
  hookledger events get evt_1 --json | jq -r '.headers[] | select(.key == "hl_delivery_id") | .value'`,
		RunE: func(c *cobra.Command, args []string) error {
			if bodyOnly && a.JSON {
				return app.Usage(errors.New("--body and --json exclude each other"))
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			pool, err := a.OpenDatabase(c.Context(), cfg, "events")
			if err != nil {
				return err
			}
			defer pool.Close()
			var l life
			var body []byte
			var findErr error
			err = app.ReadOnly(c.Context(), pool, func(tx pgx.Tx) error {
				if l, findErr = findLife(c.Context(), tx, sourcesToAsk(cfg, source), args[0]); findErr != nil || l.Event != nil || len(l.Quarantined) == 0 {
					return nil
				}
				last := l.Quarantined[len(l.Quarantined)-1]
				return tx.QueryRow(c.Context(), sqlQuarantinedBody, pgx.QueryExecModeExec, last.ID).Scan(&body)
			})
			if err != nil {
				return err
			}
			out := getAnswer{Source: l.source, EventID: l.id}
			switch {
			case findErr != nil:
				return findErr
			case l.Event != nil:
				f, err := l.found()
				if err != nil {
					return err
				}
				r, err := f.Read(c.Context(), a, cfg)
				if err != nil {
					return err
				}
				body, out.record = r.Value, l.Records[0]
				out.Time, out.Headers = console.JSONTime(r.Timestamp), console.Headers(HeadersOf(r))
			case len(l.Quarantined) > 0:
				out.record = l.Records[len(l.Records)-1]
			default:
				return fmt.Errorf("event %s of %s is remembered by its entries alone: no row says any more where its record lies", args[0], l.source)
			}
			return out.print(a, body, bodyOnly)
		},
	}
	c.Flags().StringVar(&source, "source", "", "the key of its source; without it all configured sources are asked")
	c.Flags().BoolVar(&bodyOnly, "body", false, "the bytes of the body alone, exactly as received")
	return c
}

func (g *getAnswer) print(a *app.App, body []byte, bodyOnly bool) error {
	if f, ok := a.Stdout.(*os.File); bodyOnly && !(ok && isatty.IsTerminal(f.Fd())) {
		_, err := a.Stdout.Write(body)
		return err
	}
	g.Body, g.BodySHA256 = body, fmt.Sprintf("%x", sha256.Sum256(body))
	if body != nil && utf8.Valid(body) {
		s := string(body)
		g.BodyText = &s
	}
	return a.Print("events-get", g, func(w io.Writer) error {
		if !bodyOnly {
			if err := printRecord(w, g.record); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "\nbody, %d bytes\n", len(body)); err != nil {
				return err
			}
		}
		return console.WriteBytes(w, body)
	})
}
