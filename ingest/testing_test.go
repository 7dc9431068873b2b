package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/ingest/signature"
	"hookledger/schema"
	"hookledger/schema/provider"
)

const (
	topic         = "payments.events"
	stripeSecret  = "whsec_canary_stripe_8f3a1c"
	acmeSecret    = "canary-acme-5b2e9d-0011"
	oldAcmeSecret = "canary-acme-old-77aa-0022"
	// standardSecret is base64 of 24 bytes behind its prefix.
	standardSecret = "whsec_Y2FuYXJ5LXN0YW5kYXJkLTM0NTY3ODkw"
)

func sources() []provider.Config {
	posting := provider.PostingConfig{
		Type: []string{"payment.succeeded"}, Account: []string{"user_id"}, Amount: "amount", Unit: "minor",
		Currency: provider.Locator{Path: "currency"}, Direction: provider.Direction{Always: "credit"},
	}
	return []provider.Config{
		{
			Name: "stripe", Provider: "stripe", Account: []string{"data.object.metadata.account_id"},
			Secrets: []provider.SecretConfig{{ID: "stripe-main", Value: stripeSecret}},
		},
		{
			Name: "acme", Provider: "generic",
			Secrets:   []provider.SecretConfig{{ID: "acme-old", Value: oldAcmeSecret}, {ID: "acme-new", Value: acmeSecret}},
			Signature: provider.SignatureConfig{Header: "X-Signature"},
			Event:     provider.EventConfig{ID: provider.Locator{Path: "id"}, Type: provider.Locator{Path: "type"}, Time: provider.Locator{Path: "created_at"}},
			Success:   provider.SuccessConfig{Status: 202, Body: "[accepted]"},
			Postings:  []provider.PostingConfig{posting},
		},
		{
			Name: "standard", Provider: "standardwebhooks",
			Secrets:  []provider.SecretConfig{{ID: "standard-main", Value: standardSecret}},
			Postings: []provider.PostingConfig{posting},
		},
		{
			Name: "batch", Provider: "generic",
			Secrets:   []provider.SecretConfig{{Value: acmeSecret}},
			Signature: provider.SignatureConfig{Header: "X-Signature"},
			Event:     provider.EventConfig{Items: "events", ID: provider.Locator{Path: "id"}, Type: provider.Locator{Path: "type"}},
			Postings:  []provider.PostingConfig{posting},
		},
	}
}

type bundle struct {
	t       testing.TB
	cluster *kfake.Cluster
	server  *Server
	reg     *prometheus.Registry
	logs    *logBuffer
	sources *provider.Set
	url     string
	stop    context.CancelFunc
	ended   chan error
}

type options struct {
	config  func(*Config)
	sources func([]provider.Config)
	// only are the sources in place of the usual ones.
	only []provider.Config
	// trust is Deps.Trust.
	trust   []signature.Option
	kafka   []kgo.Opt
	cluster []kfake.Opt
	brokers []string
	level   zerolog.Level
	stopped bool
	now     func() time.Time
	// checkTopic is Deps.CheckTopic.
	checkTopic func(context.Context, *kgo.Client) error
	// beforeRun is called when the broker is there and the server is not.
	beforeRun func(*bundle)
}

// setup runs a server against a broker of its own.
func setup(t testing.TB, o options) *bundle {
	t.Helper()
	b := &bundle{t: t, reg: prometheus.NewRegistry(), logs: &logBuffer{}, ended: make(chan error, 1)}
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, topic)}, o.cluster...)...)
	if err != nil {
		t.Fatal(err)
	}
	b.cluster = cluster
	t.Cleanup(cluster.Close)
	configs := sources()
	if o.only != nil {
		configs = o.only
	}
	if o.sources != nil {
		o.sources(configs)
	}
	if b.sources, err = provider.NewSet(configs); err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	config.Listen = "127.0.0.1:0"
	config.AckTimeout = time.Minute // less where it has to end
	if o.config != nil {
		o.config(&config)
	}
	if o.beforeRun != nil {
		o.beforeRun(b)
	}
	brokers := cluster.ListenAddrs()
	if o.brokers != nil {
		brokers = o.brokers
	}
	b.server, err = NewServer(Deps{
		Config: config, Sources: b.sources, Topic: topic,
		Kafka:      append([]kgo.Opt{kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(250 * time.Millisecond)}, o.kafka...),
		Registerer: b.reg, Log: zerolog.New(b.logs).Level(o.level), Now: o.now, CheckTopic: o.checkTopic, Trust: o.trust,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.url = "http://" + b.server.Addr().String() + "/webhooks/"
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go func() { b.ended <- b.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if !o.stopped {
			if err := <-b.ended; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
	return b
}

// logBuffer is a writer for the log of a server.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func secretOf(source string) provider.Secret {
	return map[string]provider.Secret{"stripe": stripeSecret, "acme": acmeSecret, "standard": standardSecret, "batch": acmeSecret}[source]
}

// signed returns a request to a source with its signature. id is for schemes that sign
// the ID as a header.
func (b *bundle) signed(source, id, body string) *http.Request {
	b.t.Helper()
	return b.signedAt(source, id, body, time.Now())
}

func (b *bundle) signedAt(source, id, body string, at time.Time) *http.Request {
	b.t.Helper()
	src, ok := b.sources.ByName(source)
	if !ok {
		b.t.Fatalf("no source %s", source)
	}
	h := http.Header{}
	if id != "" {
		h.Set("Webhook-Id", id)
	}
	signed, err := signature.Sign(src.Signature(), secretOf(source), signature.Message{Header: h, Body: []byte(body), At: at})
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.request(source, string(signed.Body))
	for name, values := range signed.Header {
		r.Header[name] = values
	}
	return r
}

func (b *bundle) request(source, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodPost, b.url+source, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

type answer struct {
	code   int
	header http.Header
	body   string
	took   time.Duration
}

func (b *bundle) do(r *http.Request) answer {
	b.t.Helper()
	a, err := send(http.DefaultClient, r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return a
}

func send(client *http.Client, r *http.Request) (answer, error) {
	begun := time.Now()
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body), time.Since(begun)}, err
}

func event(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"payment.succeeded","created_at":"2026-11-29T12:00:00Z","user_id":"u1","amount":100,"currency":"EUR"}`, id)
}

// records reads the whole topic with a client of its own, from the beginning to where
// it ends now.
func (b *bundle) records() []*kgo.Record {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	left := int64(0)
	for p := range int32(3) {
		left += b.cluster.PartitionInfo(topic, p).HighWatermark
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []*kgo.Record
	for int64(len(all)) < left {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			b.t.Fatalf("read topic: %v, got %d of %d records", err, len(all), left)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

func decode(t testing.TB, r *kgo.Record) schema.Event {
	t.Helper()
	var hs []schema.Header
	for _, h := range r.Headers {
		hs = append(hs, schema.Header{Key: h.Key, Value: h.Value})
	}
	ev, err := schema.DecodeRecord(r.Key, r.Value, hs)
	if err != nil {
		t.Fatalf("record %d/%d: %v", r.Partition, r.Offset, err)
	}
	return ev
}

func (b *bundle) counter(name string, labels ...string) float64 {
	b.t.Helper()
	m := b.server.metrics
	switch name {
	case "deliveries":
		return value(b.t, m.deliveries.WithLabelValues(labels...))
	case "refusals":
		return value(b.t, m.refusals.WithLabelValues(labels...))
	case "accepted":
		return value(b.t, m.accepted.WithLabelValues(labels...))
	case "matches":
		return value(b.t, m.matches.WithLabelValues(labels...))
	case "unknown":
		return value(b.t, m.unknown)
	case "late":
		return value(b.t, m.late.WithLabelValues(labels...))
	}
	b.t.Fatalf("no counter %s", name)
	return 0
}

// value reads a counter.
func value(t testing.TB, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
