package payments

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/internal/testkit"
)

// childEnv makes this test binary a process that takes payments, for tests that kill
// and pause one.
const childEnv = "HOOKLEDGER_TEST_PAYMENTS"

type childOptions struct {
	URL, Listen, Health string
	ClaimTTL, KeyTTL    time.Duration
	MaxConns            int
	// Quiet leaves out what runs beside requests, so that a gate sees requests alone.
	Quiet bool
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runChild(text string) error {
	var o childOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, PoolConfig(cfg, o.MaxConns))
	if err != nil {
		return err
	}
	defer pool.Close()
	c := testConfig()
	c.Listen, c.ClaimTTL, c.KeyTTL = o.Listen, o.ClaimTTL, o.KeyTTL
	s, err := NewServer(Deps{Config: c, Pool: pool, Registerer: prometheus.NewRegistry(), Log: zerolog.New(os.Stderr)})
	if err != nil {
		return err
	}
	health, err := net.Listen("tcp", o.Health)
	if err != nil {
		return err
	}
	go func() { // ends with the process
		_ = http.Serve(health, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := s.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}))
	}()
	if o.Quiet {
		s.watch.state.Store(new(error))
		return s.http.Serve(s.listener)
	}
	return s.Run(ctx)
}

// child is a process that takes payments.
type child struct {
	*testkit.KillableProcess
	base string
}

func startChild(tb testing.TB, o childOptions) *child {
	tb.Helper()
	o.Listen, o.Health = testkit.FreeAddr(tb), testkit.FreeAddr(tb)
	if o.ClaimTTL == 0 {
		o.ClaimTTL = 30 * time.Second
	}
	if o.KeyTTL == 0 {
		o.KeyTTL = 24 * time.Hour
	}
	text, err := json.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	p := testkit.StartHookledger(tb, testkit.ProcessOptions{
		Program: self, Env: []string{childEnv + "=" + string(text)}, ReadyURL: "http://" + o.Health,
	})
	return &child{p, "http://" + o.Listen}
}

// through makes a connection string lead through a gate.
func through(tb testing.TB, url string, g *gate) string {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	old := fmt.Sprintf("%s:%d", cfg.ConnConfig.Host, cfg.ConnConfig.Port)
	out := strings.Replace(url, old, g.addr(), 1)
	if out == url {
		tb.Fatalf("%s is not in the connection string", old)
	}
	return out
}

func target(tb testing.TB, url string) string {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("%s:%d", cfg.ConnConfig.Host, cfg.ConnConfig.Port)
}

// postAsync posts and gives the reply, or the error, when it comes.
func postAsync(base, key, body string) <-chan result {
	out := make(chan result, 1)
	go func() {
		r, err := postTo(base, shopToken, key, body)
		out <- result{r, err}
	}()
	return out
}

type result struct {
	reply
	err error
}

// await waits for a signal, and fails the test if it does not come.
func await[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}
