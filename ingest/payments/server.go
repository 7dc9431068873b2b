package payments

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hookledger/ingest/listener"
	"hookledger/migrations"
)

const (
	// readTimeout is how long a request may take to arrive.
	readTimeout = 10 * time.Second
	// workTimeout is when a request's work is let go although Postgres has not answered:
	// longer than any statement may take, so only a COMMIT that waits for its standby, or
	// a network that fell silent, gets there.
	workTimeout = 2 * time.Minute
	// tokensEvery is how often tokens are read again.
	tokensEvery = 10 * time.Second
)

// Deps is what a Server needs.
type Deps struct {
	Config Config
	// Pool leads to the primary, as PoolConfig makes it. The caller closes it after Run.
	Pool *pgxpool.Pool
	// Schema refuses a database that does not have the schema of this program. Nil:
	// nothing is checked.
	Schema     func(context.Context) error
	Registerer prometheus.Registerer
	Log        zerolog.Logger
}

// Server takes payments. Make one with NewServer, then call Run once.
type Server struct {
	config  Config
	door    *door
	tokens  *tokens
	limits  *limits
	metrics *metrics
	watch   *watcher
	clean   *cleaner

	log      zerolog.Logger
	refusals zerolog.Logger

	listener net.Listener
	http     *http.Server
	state    atomic.Int32
	// working are the requests whose work goes on, also those answered meanwhile.
	working sync.WaitGroup
}

// States of a Server.
const (
	stateStarting int32 = iota
	stateServing
	stateDraining
)

// NewServer reads the tokens and opens the listener. It fails if the configuration or a
// token cannot be used, or the address is taken. Nothing is accepted before Run; a
// server that is not run is closed with Close.
func NewServer(d Deps) (*Server, error) {
	if err := d.Config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{config: d.Config, limits: newLimits(d.Config.Rate), log: d.Log}
	// A flood of bad requests is counted in full and logged in part.
	s.refusals = d.Log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Second})
	var err error
	if s.tokens, err = newTokens(d.Config.Tokens, d.Log); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(d.Registerer); err != nil {
		return nil, fmt.Errorf("register metrics of payments: %w", err)
	}
	for _, t := range d.Config.Tokens {
		s.metrics.zero(t.Client)
		if len(t.From) == 0 {
			d.Log.Warn().Str("client", t.Client).Msg("a token of this client may spend from every account: give it patterns in from")
		}
	}
	if d.Config.Durability == Single {
		d.Log.Warn().Msg("payments.durability is single: a payment answered 201 is lost if this one Postgres loses its disk, and the topic does not have it")
	}
	db := newDatabase(d.Pool, d.Config)
	if err := db.registerPool(d.Registerer); err != nil {
		return nil, fmt.Errorf("register metrics of payments: %w", err)
	}
	s.door = &door{config: d.Config, db: db, metrics: s.metrics, recent: &recent{}, log: d.Log}
	s.watch = &watcher{door: s.door, schema: d.Schema, isFinal: isWrongSchema}
	s.clean = &cleaner{door: s.door}
	if s.listener, err = net.Listen("tcp", d.Config.Listen); err != nil {
		return nil, fmt.Errorf("listen on payments.listen: %w: stop who uses the address, or set another", err)
	}
	s.http = listener.New(s.routes(), readTimeout, d.Config.AnswerTimeout, d.Log)
	return s, nil
}

func isWrongSchema(err error) bool {
	return errors.Is(err, migrations.ErrSchemaOlder) || errors.Is(err, migrations.ErrSchemaNewer)
}

// routes is everything that can be asked for.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.POST("/v1/payments", s.handle(opPay, s.postPayment))
	e.GET("/v1/payments/:id", s.handle(opPayment, s.getPayment))
	e.GET("/v1/accounts/:id", s.handle(opAccount, s.getAccount))
	e.GET("/openapi.json", serveOpenAPI)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		x := &exchange{op: opOther, id: newRequestID(), w: c.Response().Writer, r: c.Request(), began: time.Now()}
		var known *echo.HTTPError
		if errors.As(err, &known) && known.Code == http.StatusMethodNotAllowed {
			s.refuse(x, refusal{problem: badMethod})
			return
		}
		s.refuse(x, refusal{problem: notFound})
	}
	return e
}

// Addr is the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends a server that is not run.
func (s *Server) Close() { _ = s.listener.Close() }

// Reload reads all tokens again. If one cannot be read all stay as they are, and the
// error says which.
func (s *Server) Reload() error { return s.tokens.reload() }

// Ready tells why payments cannot be taken at the moment; nil if they can.
func (s *Server) Ready() error {
	if s.state.Load() == stateDraining {
		return errors.New("payments are shutting down")
	}
	return s.watch.ready()
}

// Run takes payments until ctx ends, then stops gracefully: not ready, ShutdownDelay, no
// new connections, payments in hand finished. It returns nil after a graceful stop, and
// an error that wraps ErrRefused, or one of package migrations about the schema, if this
// Postgres may not take payments. While Postgres is away it answers 503.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	// They end when Run returns, after the last payment.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer func() { stop(); helpers.Wait() }()

	served := make(chan error, 1)
	helpers.Go(func() { served <- listener.Serve(s.http, s.listener, s.config.MaxConnections) })
	refused := make(chan error, 1)
	helpers.Go(func() {
		if err := s.watch.await(background); err != nil {
			if background.Err() == nil {
				refused <- err
			}
			return
		}
		s.state.CompareAndSwap(stateStarting, stateServing)
		s.log.Info().Str("addr", s.Addr().String()).Int("tokens", len(s.config.Tokens)).Msg("taking payments")
		helpers.Go(func() { s.clean.run(background) })
		s.watch.run(background)
	})
	helpers.Go(func() { s.reloadTokens(background) })

	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.Addr(), err)
	case err := <-refused:
		_ = s.http.Close()
		return err
	case <-ctx.Done():
	}
	return s.drain(background)
}

// reloadTokens reads tokens again, so that a file that changed is noticed wherever it
// lies: mounted secrets are swapped by links that a watch does not follow.
func (s *Server) reloadTokens(ctx context.Context) {
	tick := time.NewTicker(tokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.tokens.reload(); err != nil {
			s.log.Error().Err(err).Msg("tokens stay as they were")
		}
	}
}

// drain stops in this order: load balancers learn it first, so that they send nothing
// into a closed door; then the payments in hand are answered; then those are finished
// that were answered before they were done.
func (s *Server) drain(ctx context.Context) error {
	s.state.Store(stateDraining)
	s.log.Info().Dur("delay", s.config.ShutdownDelay).Msg("shutting down")
	s.http.SetKeepAlivesEnabled(false)
	if s.config.ShutdownDelay > 0 {
		<-time.After(s.config.ShutdownDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
		return fmt.Errorf("payments in hand at the end of payments.shutdown_timeout were cut: %w", err)
	}
	finished := make(chan struct{})
	go func() { s.working.Wait(); close(finished) }() // ends at the latest after workTimeout
	select {
	case <-finished:
	case <-ctx.Done():
		s.log.Warn().Msg("payments that nobody waits for were left to Postgres")
	}
	return nil
}
