package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/observe"
)

// readyPatience is how long a role may take to answer its probe.
const readyPatience = 3 * time.Second

// Ready makes `hookledger ready`.
func Ready(a *app.App) *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "ready {ingest|consume|payments}",
		Short: "Ask a role on this machine whether it can work",
		Long: `Ask a role on this machine whether it can work: GET /readyz on its admin address, for
containers, which have no curl. Exit code 0 if it can, 3 with the reason if it cannot, 1 if
nobody answers.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"ingest", "consume", "payments"},
		Example: `  hookledger ready ingest
  hookledger ready consume --addr 127.0.0.1:9091`,
		RunE: func(c *cobra.Command, args []string) error {
			if addr == "" {
				cfg, err := a.Config()
				if err != nil {
					return err
				}
				addr = map[string]string{
					"ingest": cfg.Ingest.Admin, "consume": cfg.Consume.Admin, "payments": cfg.Payments.Admin,
				}[args[0]]
			}
			state, err := askReady(c.Context(), addr)
			if err != nil {
				return fmt.Errorf("ask %s at %s whether it is ready: %w", args[0], addr, err)
			}
			if err := a.Print("ready", state, func(w io.Writer) error { return printState(w, args[0], state) }); err != nil {
				return err
			}
			if !state.Ready {
				return app.ErrFound
			}
			return nil
		},
	}
	c.Flags().StringVar(&addr, "addr", "", "admin address, host:port (default: from the configuration)")
	return c
}

// askReady asks once.
func askReady(ctx context.Context, addr string) (observe.State, error) {
	if strings.HasPrefix(addr, ":") || strings.HasPrefix(addr, "0.0.0.0:") || strings.HasPrefix(addr, "[::]:") {
		addr = "127.0.0.1" + addr[strings.LastIndexByte(addr, ':'):]
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return observe.State{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return observe.State{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var state observe.State
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&state); err != nil {
		return observe.State{}, errors.New("the answer is not that of hookledger")
	}
	state.Ready = state.Ready && res.StatusCode == http.StatusOK
	return state, nil
}

func printState(w io.Writer, role string, s observe.State) error {
	if s.Ready {
		_, err := fmt.Fprintf(w, "%s is ready\n", role)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s is not ready:\n", role); err != nil {
		return err
	}
	for _, c := range s.Checks {
		if !c.OK {
			if _, err := fmt.Fprintf(w, "  %s: %s (since %s)\n", console.Safe(c.Name), console.Safe(c.Error), console.Time(c.Since)); err != nil {
				return err
			}
		}
	}
	return nil
}
