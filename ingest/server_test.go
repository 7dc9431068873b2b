package ingest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/schema/provider"
)

func deps(t *testing.T, configs []provider.Config) Deps {
	t.Helper()
	set, err := provider.NewSet(configs)
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	c.Listen = "127.0.0.1:0"
	return Deps{
		Config: c, Sources: set, Topic: topic, Kafka: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")},
		Registerer: prometheus.NewRegistry(), Log: zerolog.Nop(),
	}
}

func TestNewServer_RefusesToStart(t *testing.T) {
	t.Parallel()
	if _, err := NewServer(deps(t, nil)); err == nil || !strings.Contains(err.Error(), "add one to sources") {
		t.Errorf("no source: got %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := sources()[1]
	c.Secrets = []provider.SecretConfig{{File: empty}}
	if _, err := NewServer(deps(t, []provider.Config{c})); err == nil || !strings.Contains(err.Error(), "the secret is empty") {
		t.Errorf("empty secret: got %v", err)
	}
	c.Secrets = nil
	if _, err := NewServer(deps(t, []provider.Config{c})); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("no secret: got %v", err)
	}
	d := deps(t, sources())
	d.Config.AckTimeout = 0
	if _, err := NewServer(d); err == nil || !strings.Contains(err.Error(), "ingest.ack_timeout") {
		t.Errorf("no ack timeout: got %v", err)
	}
	first, err := NewServer(deps(t, sources()))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	d = deps(t, sources())
	d.Config.Listen = first.Addr().String()
	if s, err := NewServer(d); err == nil || !strings.Contains(err.Error(), "ingest.listen") {
		if s != nil {
			s.Close()
		}
		t.Errorf("address taken: got %v", err)
	}
}

func TestRun_RefusesATopicThatCannotKeepThePromise(t *testing.T) {
	t.Parallel()
	d := deps(t, sources())
	bad := errors.New("max.message.bytes is too small")
	d.CheckTopic = func(context.Context, *kgo.Client) error { return bad }
	s, err := NewServer(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, bad) {
		t.Errorf("got %v, want the reason of the check", err)
	}
	if s.Ready() == nil {
		t.Error("ready")
	}
}

// Brokers may be away when a receiver starts: whoever calls is told so, at once.
func TestRun_Answers503UntilTheTopicWasChecked(t *testing.T) {
	t.Parallel()
	checking, checked := make(chan struct{}), make(chan struct{})
	b := setup(t, options{checkTopic: func(ctx context.Context, _ *kgo.Client) error {
		close(checking)
		select {
		case <-checked:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	<-checking
	if a := b.do(b.signed("acme", "", event("evt_1"))); a.code != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q, want 503 with one", a.code, a.header.Get("Retry-After"))
	}
	if b.server.Ready() == nil {
		t.Error("ready before the topic was checked")
	}
	close(checked)
	testkit.Eventually(t, time.Minute, b.server.Ready)
	if a := b.do(b.signed("acme", "", event("evt_1"))); a.code != 202 {
		t.Errorf("got %d, want acme's 202", a.code)
	}
}

func TestConfig_DefaultIsValidAndEachLimitNamesItsKey(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	bad := Config{Listen: "nowhere", ShutdownDelay: -1}
	err := bad.Validate()
	for _, key := range []string{"listen", "max_body_bytes", "max_inflight_bytes", "max_buffered_bytes", "max_buffered_records", "ack_timeout", "shutdown_delay", "shutdown_timeout"} {
		if err == nil || !strings.Contains(err.Error(), "ingest."+key+" is") {
			t.Errorf("no word of %s in %v", key, err)
		}
	}
}

// A secret that is replaced while deliveries come: with both in the list none is refused,
// and Reload is enough without a notification.
func TestServer_ReloadsSecrets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "acme")
	write := func(secret string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("not-yet-not-yet-not-yet")
	b := setup(t, options{sources: func(all []provider.Config) {
		all[1].Secrets = []provider.SecretConfig{{ID: "old", Value: oldAcmeSecret}, {ID: "file", File: path}}
	}})
	if a := b.do(b.signed("acme", "", event("e1"))); a.code != 400 {
		t.Errorf("got %d before the secret is known, want 400", a.code)
	}
	write(string(acmeSecret) + "\n")
	if err := b.server.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := b.do(b.signed("acme", "", event("e1"))); a.code != 202 {
		t.Errorf("got %d %s, want 202", a.code, a.body)
	}
	if got := b.counter("matches", "acme", "file"); got != 1 {
		t.Errorf("got %v matches of the new secret, want 1", got)
	}
	write("")
	if err := b.server.Reload(); err == nil {
		t.Error("reload of an empty secret: no error")
	}
	if a := b.do(b.signed("acme", "", event("e2"))); a.code != 202 {
		t.Errorf("got %d after a reload that failed, want 202", a.code)
	}
	write("watched-watched-watched")
	testkit.Eventually(t, time.Minute, func() error {
		if a := b.do(b.signed("acme", "", event("e3"))); a.code != 400 {
			return errors.New("the old secret is still accepted")
		}
		return nil
	})
}

func TestHealth_OpensProbesAndCloses(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	h := newHealth(func() time.Time { return now }, topic)
	r := []*kgo.Record{{Key: []byte("a")}}
	h.partitions.Store(3)
	for range tripAfter - 1 {
		h.failed(r)
	}
	if !h.allow() || h.ready() != nil {
		t.Fatal("open too early")
	}
	h.failed(r)
	if h.ready() == nil || h.openParts() != 1 {
		t.Fatal("not open")
	}
	if !h.allow() || h.allow() || !h.allowAll(r) || h.allowAll(r) {
		t.Error("want one probe, and one of the partition")
	}
	other := []*kgo.Record{{Key: []byte("b")}}
	if h.partitionOf(r[0]) == h.partitionOf(other[0]) {
		t.Fatal("the test needs two partitions")
	}
	if !h.allowAll(other) || !h.allowAll(append(other, other...)) {
		t.Error("another partition is refused")
	}
	now = now.Add(probeEvery)
	if !h.allow() || !h.allowAll([]*kgo.Record{r[0], other[0], r[0]}) {
		t.Error("no second probe")
	}
	h.answered()
	if h.ready() == nil {
		t.Error("ready right after a failure")
	}
	now = now.Add(rest)
	h.answered()
	if h.ready() != nil || !h.isOpen() {
		t.Error("want ready on trial, and open")
	}
	h.failed(r)
	if h.ready() == nil {
		t.Error("ready after a trial that failed")
	}
	h.worked(&kgo.Record{Partition: h.partitionOf(r[0])})
	if h.ready() != nil || h.isOpen() || h.openParts() != 0 || !h.allow() || !h.allow() {
		t.Error("not closed by an acknowledgement")
	}
}

func TestSucceed_PanicsWithoutAnAcknowledgement(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	defer func() {
		if recover() == nil {
			t.Error("success was answered without an acknowledgement")
		}
	}()
	b.server.succeed(nopWriter{}, &delivery{}, acknowledged{}, nil)
}

type nopWriter struct{}

func (nopWriter) Header() http.Header         { return http.Header{} }
func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }
func (nopWriter) WriteHeader(int)             {}
