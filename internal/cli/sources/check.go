package sources

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/vectors"
)

func check(a *app.App) *cobra.Command {
	var file string
	var one captured
	c := &cobra.Command{
		Use:   "check (--vectors F | --source NAME --headers F --body F)",
		Short: "Check signatures with the receiver's own code: a file of cases, or one captured delivery",
		Long: `Check signatures with the receiver's own code.

With --vectors, every case of a file (a JSON array or JSON lines; - is standard input) is
verified, and one JSON object is printed for each, in order: id, verdict (valid or invalid),
event_ids, reason, response. No configuration is needed, nothing is fetched: a case's own
certificate, key or set of keys is the trusted one, and its at_unix is the clock.

With --source, one delivery is explained: which step failed, and whether the signature
would hold for a body that was trimmed, written anew or converted on its way. What would
have matched is never shown. Headers are lines "Name: value", as curl -i or a proxy logs
them, or a JSON object. The exit code is 3 if the delivery would be refused.`,
		Args: cobra.NoArgs,
		Example: `  hookledger sources check --vectors cases.json
  hookledger sources check --source stripe --headers headers.txt --body body.json --at 2026-11-29T12:00:05Z`,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case file != "" && one.any():
				return app.Usage(errors.New("--vectors is for many cases, --source for one delivery: give one of them"))
			case file != "":
				return checkVectors(a, file)
			}
			return checkDelivery(a, one)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "vectors", "", "file of cases, or - for standard input")
	f.StringVar(&one.source, "source", "", "name of the source that the delivery was for")
	f.StringVar(&one.headers, "headers", "", "file of the delivery's headers, or - for standard input")
	f.StringVar(&one.body, "body", "", "file of the delivery's raw body, or - for standard input")
	f.StringVar(&one.at, "at", "", "when it was received: RFC 3339, or Unix seconds (default: now)")
	f.StringVar(&one.method, "method", "POST", "its HTTP method")
	f.StringVar(&one.query, "query", "", "the query of its URL, as it was sent")
	f.StringVar(&one.remote, "remote", "", "the address of its sender")
	return c
}

// checkVectors prints a verdict as soon as it is known, so that a long file can be
// followed. The lines are the contract; --json changes nothing.
func checkVectors(a *app.App, file string) error {
	in, err := open(a, file)
	if err != nil {
		return err
	}
	defer in.Close()
	out := bufio.NewWriter(a.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var unusable error
	cases := 0
	err = vectors.Read(in, func(c vectors.Case) error {
		cases++
		verdict, err := vectors.Judge(c)
		if unusable == nil {
			unusable = err
		}
		return encoder.Encode(verdict)
	})
	if err == nil && cases == 0 {
		return app.Usage(fmt.Errorf("--vectors %s: there are no cases in it", console.Safe(file)))
	}
	return errors.Join(err, out.Flush(), unusable)
}

// open opens a file, or standard input for -.
func open(a *app.App, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, app.Usage(fmt.Errorf("open file: %w", err))
	}
	return f, nil
}
