package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Admin is the listener for operators: /livez, /readyz, /metrics and /debug/pprof.
// It has no authentication, so it belongs on loopback or a network of its own.
type Admin struct {
	listener net.Listener
	server   *http.Server
	log      zerolog.Logger
}

// ListenAdmin opens the admin listener on addr, host:port; port 0 chooses one. It
// serves nothing until Run.
func ListenAdmin(addr string, checks *Checks, metrics prometheus.Gatherer, log zerolog.Logger) (*Admin, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open admin listener: %w", err)
	}
	return &Admin{
		listener: ln,
		log:      log,
		server: &http.Server{
			Handler:           adminHandler(checks, metrics),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			// A CPU profile or a trace of a minute must fit.
			WriteTimeout:   2 * time.Minute,
			IdleTimeout:    time.Minute,
			MaxHeaderBytes: 16 << 10,
		},
	}, nil
}

// Addr is the address that Run serves.
func (a *Admin) Addr() net.Addr { return a.listener.Addr() }

// Run serves until ctx is done, then answers what is under way for up to a second.
// It returns nil after such an end.
func (a *Admin) Run(ctx context.Context) error {
	if tcp, ok := a.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		a.log.Warn().Stringer("addr", a.Addr()).Msg("admin listener is reachable from other machines and has no authentication")
	}
	failed := make(chan error, 1)
	go func() { failed <- a.server.Serve(a.listener) }() // ends with Shutdown or Close below
	select {
	case err := <-failed:
		return fmt.Errorf("serve admin listener: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := a.server.Shutdown(grace); err != nil {
		_ = a.server.Close() // a long profile is cut short
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin listener: %w", err)
	}
	return nil
}

func adminHandler(checks *Checks, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state := checks.State()
		code := http.StatusOK
		if !state.Ready {
			code = http.StatusServiceUnavailable
		}
		writeJSON(w, code, state)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the other side hung up
}
