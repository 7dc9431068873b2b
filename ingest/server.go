package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

// flushTimeout bounds the wait for records nobody waits for any more.
const flushTimeout = 5 * time.Second

// Deps is what a Server needs.
type Deps struct {
	Config  Config
	Sources *provider.Set
	// Topic is where records go.
	Topic string
	// Kafka are the options that all clients share: brokers, TLS and the like.
	Kafka []kgo.Opt
	// CheckTopic refuses a topic that cannot keep the promise: copies, limits, policy.
	// Nil: nothing is checked.
	CheckTopic func(context.Context, *kgo.Client) error
	Registerer prometheus.Registerer
	Log        zerolog.Logger
	// Trust says whom to believe where keys of providers are fetched. Nil: the system's
	// roots.
	Trust []signature.Option
	// Now is the clock that times of signing are compared with. Nil: time.Now.
	Now func() time.Time
}

// Server receives deliveries. Make one with NewServer, then call Run once.
type Server struct {
	config     Config
	doors      map[string]*door
	rings      []*signature.Keyring
	client     *kgo.Client
	producer   *producer
	health     *health
	budget     budget
	proxies    []netip.Prefix
	metrics    *metrics
	topic      string
	checkTopic func(context.Context, *kgo.Client) error
	now        func() time.Time

	log      zerolog.Logger
	refusals zerolog.Logger

	// certificate is nil without TLS.
	certificate *certificate
	listener    net.Listener
	http        *http.Server
	state       atomic.Int32
}

// door is a source with what checks its deliveries.
type door struct {
	source   *provider.Source
	verifier *signature.Verifier
}

// States of a Server.
const (
	stateStarting int32 = iota
	stateServing
	stateDraining
)

// NewServer reads the secrets, opens the listener and makes the Kafka client. It fails
// if the configuration or a secret cannot be used, or the address is taken. Nothing is
// accepted before Run; a server that is not run is closed with Close.
func NewServer(d Deps) (*Server, error) {
	if err := d.Config.Validate(); err != nil {
		return nil, err
	}
	if len(d.Sources.All()) == 0 {
		return nil, errors.New("no source is configured: add one to sources")
	}
	s := &Server{config: d.Config, doors: make(map[string]*door), topic: d.Topic, checkTopic: d.CheckTopic, now: d.Now, log: d.Log}
	if s.now == nil {
		s.now = time.Now
	}
	// A flood of bad deliveries is counted in full and logged in part.
	s.refusals = d.Log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Second})
	s.proxies = d.Config.proxies()
	s.budget.limit = int64(d.Config.MaxInflightBytes)
	s.health = newHealth(time.Now, d.Topic)
	if err := s.openDoors(d); err != nil {
		return nil, err
	}
	var err error
	if d.Config.TLS.enabled() {
		if s.certificate, err = loadCertificate(d.Config.TLS, time.Now, s.log); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newMetrics(d.Registerer); err != nil {
		return nil, fmt.Errorf("register metrics of ingest: %w", err)
	}
	for _, src := range d.Sources.All() {
		covered := 0.0
		if src.BodyAuthenticated() {
			covered = 1
		}
		s.metrics.covered.WithLabelValues(src.Name()).Set(covered)
	}
	s.client, err = kgo.NewClient(append(append([]kgo.Opt{}, d.Kafka...), producerOptions(d.Config, d.Topic, s.health)...)...)
	if err != nil {
		return nil, fmt.Errorf("open Kafka client: %w: check kafka.brokers", err)
	}
	s.producer = &producer{client: s.client, ackTimeout: d.Config.AckTimeout, health: s.health, metrics: s.metrics}
	if err := s.registerGauges(d.Registerer); err != nil {
		s.client.Close()
		return nil, fmt.Errorf("register metrics of ingest: %w", err)
	}
	if s.listener, err = net.Listen("tcp", d.Config.Listen); err != nil {
		s.client.Close()
		return nil, fmt.Errorf("listen on ingest.listen: %w: stop who uses the address, or set another", err)
	}
	s.http = s.httpServer()
	return s, nil
}

func (s *Server) openDoors(d Deps) error {
	var errs []error
	for _, src := range d.Sources.All() {
		ring, err := signature.NewKeyring(src, s.log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		verifier, err := signature.New(src.Signature(), ring, d.Trust...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.rings = append(s.rings, ring)
		s.doors[src.Name()] = &door{source: src, verifier: verifier}
	}
	return errors.Join(errs...)
}

// routes is everything that is public: one path.
func (s *Server) routes() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Any("/webhooks/:source", s.receive)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		d := &delivery{id: newDeliveryID()}
		no := &refusal{notFound, "unknown_path", ""}
		var known *echo.HTTPError
		if errors.As(err, &known) && known.Code == http.StatusMethodNotAllowed {
			no = &refusal{badMethod, "method", ""}
		}
		s.refuse(c.Response().Writer, c.Request(), d, no)
	}
	return e
}

// Addr is the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends a server that is not run.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.client.Close()
}

// Reload reads all secrets and the certificate again. What cannot be read stays as it
// is, those of a source all together, and the error says which.
func (s *Server) Reload() error {
	var errs []error
	if s.certificate != nil {
		errs = append(errs, s.certificate.reload())
	}
	for _, ring := range s.rings {
		errs = append(errs, ring.Reload())
	}
	return errors.Join(errs...)
}

// Ready tells why deliveries cannot be accepted at the moment; nil if they can.
func (s *Server) Ready() error {
	switch s.state.Load() {
	case stateStarting:
		return errors.New("ingest is starting")
	case stateDraining:
		return errors.New("ingest is shutting down")
	}
	return s.health.ready()
}

// Run receives deliveries until ctx ends, then stops gracefully: not ready,
// ShutdownDelay, no new connections, deliveries in hand answered, records flushed,
// client closed. It returns nil after a graceful stop. Until the topic was checked,
// which may take long while brokers are away, deliveries are answered 503.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	// Both end when Run returns: secrets can change until the last delivery.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer func() { stop(); helpers.Wait() }()
	helpers.Go(func() {
		if err := signature.Watch(background, s.rings, s.log); err != nil {
			s.log.Error().Err(err).Msg("secrets are not watched; send SIGHUP after a change")
		}
	})
	helpers.Go(func() { s.health.watch(background, s.client.Ping, s.findTopic) })

	if s.checkTopic == nil {
		s.state.Store(stateServing)
	}
	served := make(chan error, 1)
	helpers.Go(func() { served <- s.serve() })
	if s.checkTopic != nil {
		if err := s.checkTopic(ctx, s.client); err != nil {
			_ = s.http.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("ingest does not start: %w", err)
		}
	}
	s.state.Store(stateServing)
	s.log.Info().Str("addr", s.Addr().String()).Int("sources", len(s.doors)).Msg("receiving deliveries")

	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	return s.drain(background)
}

// findTopic checks the topic that has the configured name now, and has the client use
// it. What waits for the old one fails, and is answered 503.
func (s *Server) findTopic(ctx context.Context) error {
	if s.checkTopic != nil {
		if err := s.checkTopic(ctx, s.client); err != nil {
			s.refusals.Warn().Err(err).Msg("the topic was deleted; no other can be used yet")
			return err
		}
	}
	s.client.PurgeTopicsFromProducing(s.topic)
	s.log.Warn().Str("topic", s.topic).Msg("the topic was deleted and created again: using the new one")
	return nil
}

// drain stops in this order: load balancers learn it first, so that they send nothing
// into a closed door; then the deliveries in hand are answered, which needs the client;
// then what nobody waits for is flushed.
func (s *Server) drain(ctx context.Context) error {
	s.state.Store(stateDraining)
	s.log.Info().Dur("delay", s.config.ShutdownDelay).Msg("shutting down")
	s.http.SetKeepAlivesEnabled(false)
	if s.config.ShutdownDelay > 0 {
		<-time.After(s.config.ShutdownDelay)
	}
	draining, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(draining)
	if err != nil {
		_ = s.http.Close()
		err = fmt.Errorf("deliveries in hand at the end of ingest.shutdown_timeout were cut: %w", err)
	}
	flushing, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if ferr := s.client.Flush(flushing); ferr != nil {
		// They were answered 503: the provider sends them again.
		s.log.Warn().Err(ferr).Int64("records", s.client.BufferedProduceRecords()).Msg("records that nobody waits for were not flushed")
	}
	return err
}
