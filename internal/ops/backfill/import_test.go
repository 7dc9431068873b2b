package backfill

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/schema"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

const topic = "payments.events"

// gap is a topic, a ledger and sources whose events are missing.
type gap struct {
	t       *testing.T
	cluster *kfake.Cluster
	cl      *kgo.Client
	pool    *pgxpool.Pool
	set     *source.Set
}

func newGap(t *testing.T) *gap {
	t.Helper()
	g := &gap{t: t, cluster: testkit.Kfake(t), pool: testkit.LedgerDB(t)}
	var err error
	secrets := []source.SecretConfig{{Value: "whsec_0123456789abcdef"}}
	g.set, err = provider.NewSet([]source.Config{
		{Name: "stripe", Provider: "stripe", Secrets: secrets, Account: []string{"data.object.metadata.account_id"}},
		{Name: "github", Provider: "github", Secrets: secrets, Statuses: []source.StatusConfig{{Type: []string{"sponsorship"}, Object: "action", Status: source.Locator{Const: "x"}}}},
		{Name: "plaid", Provider: "plaid", Secrets: nil, Signature: source.SignatureConfig{ClientID: "c"}},
		{Name: "gocardless", Provider: "gocardless", Secrets: secrets},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.cl, err = kgo.NewClient(kgo.SeedBrokers(g.cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.cl.Close)
	if _, err := kadm.NewClient(g.cl).CreateTopic(t.Context(), 3, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gap) importer(name string) *Importer {
	g.t.Helper()
	src, ok := g.set.ByName(name)
	if !ok {
		g.t.Fatalf("no source %s", name)
	}
	return &Importer{Source: src, By: "tester", Reason: "a gap", MaxBodyBytes: 1 << 20, Topic: topic,
		Options: []kgo.Opt{kgo.SeedBrokers(g.cluster.ListenAddrs()...)}, Books: ledger.New(g.pool, g.set.Map, ledger.Options{})}
}

// records are all that the topic holds.
func (g *gap) records(n int) []*kgo.Record {
	g.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(g.cluster.ListenAddrs()...), kgo.ConsumeTopics(topic))
	if err != nil {
		g.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	var list []*kgo.Record
	for len(list) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			g.t.Fatalf("%d of %d records: %v", len(list), n, err)
		}
		list = append(list, fetches.Records()...)
	}
	return list
}

// apply applies what the topic holds, as a worker does, and returns the counts.
func (g *gap) apply(n int) ledger.Counts {
	g.t.Helper()
	books := ledger.New(g.pool, g.set.Map, ledger.Options{})
	at := ledger.Position{ClusterID: "c", Topic: topic, TopicID: [16]byte{1}}
	if _, err := g.pool.Exec(g.t.Context(), `delete from consumer_progress`); err != nil {
		g.t.Fatal(err)
	}
	if err := books.WritePosition(g.t.Context(), ledger.PositionWrite{Position: at}); err != nil {
		g.t.Fatal(err)
	}
	batch := ledger.Batch{Position: at}
	for i, r := range g.records(n) {
		one := ledger.Record{Offset: int64(i), Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			one.Headers = append(one.Headers, schema.Header{Key: h.Key, Value: h.Value})
		}
		batch.Records = append(batch.Records, one)
	}
	done, err := books.Apply(g.t.Context(), batch)
	if err != nil {
		g.t.Fatal(err)
	}
	return done.Counts()
}

func paymentIntent(id string, amount int) string {
	return fmt.Sprintf(`{"id":"evt_%s","object":"event","type":"payment_intent.succeeded","created":1764410400,"livemode":true,`+
		`"data":{"object":{"id":"pi_%s","object":"payment_intent","amount_received":%d,"currency":"eur","metadata":{"account_id":"alice"}}}}`, id, id, amount)
}

func TestImport_StoresTheGoodLinesAndNamesTheBad(t *testing.T) {
	t.Parallel()
	g := newGap(t)
	quoted := fmt.Sprintf("%q", paymentIntent("text", 3))
	lines := []string{
		"\ufeff" + paymentIntent("plain", 1),
		"",
		`{"body":` + paymentIntent("wrapped", 2) + `,"id":"evt_wrapped"}`,
		`{"body":` + quoted + `}` + "\r",
		`{"body_base64":"` + base64.StdEncoding.EncodeToString([]byte(paymentIntent("base", 4))) + `"}`,
		`{"object":"list","has_more":false,"data":[` + paymentIntent("l1", 5) + `, ` + paymentIntent("l2", 6) + `]}`,
		`{"id":"evt_cut","type":`,
		`{"type":"payment_intent.succeeded"}`,
		`{"body":` + paymentIntent("other", 2) + `,"id":"evt_another"}`,
		strings.Repeat("x", 5<<20),
		`{"id":"a","id":"b","type":"x"}`,
		paymentIntent("last", 7),
	}
	file := strings.Join(lines, "\n")
	rep, err := g.importer("stripe").Import(t.Context(), strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Imported != 7 || rep.Events != 7 || rep.Lines != 12 || rep.BadCount != 5 {
		t.Errorf("got %+v", rep)
	}
	var bad []int64
	for _, b := range rep.Bad {
		bad = append(bad, b.Line)
	}
	if fmt.Sprint(bad) != "[7 8 9 10 11]" {
		t.Errorf("bad lines: got %+v", rep.Bad)
	}
	for _, r := range g.records(7) {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers["hl_scheme"] != "import" || headers["hl_key_id"] != "import" || headers["hl_import_by"] != "tester" || headers["hl_import_reason"] != "a gap" ||
			headers["hl_delivery_id"] != rep.ImportID || headers["hl_body_authenticated"] != "" || headers["ce_type"] != "payment_intent.succeeded" ||
			headers["ce_time"] != "2025-11-29T10:00:00.000000000Z" {
			t.Errorf("headers of %s: %v", r.Key, headers)
		}
		if string(r.Key) == "evt_text" && string(r.Value) != paymentIntent("text", 3) {
			t.Errorf("a body in a text is not what it was: %s", r.Value)
		}
	}

	// What a worker makes of them, and of the same file again.
	if got := g.apply(7); got[ledger.Applied] != 7 {
		t.Errorf("a worker made %v of them", got)
	}
	dry, err := g.importer("stripe").DryRun(t.Context(), strings.NewReader(file+"\n"+paymentIntent("new", 8)))
	if err != nil {
		t.Fatal(err)
	}
	if *dry.Known != 7 || *dry.New != 1 || dry.Imported != 0 || dry.BadCount != 5 || fmt.Sprint(ledger.Totals(dry.Moves)) != "[{ EUR 8}]" {
		t.Errorf("dry run: got %d known, %d new, %+v", *dry.Known, *dry.New, dry)
	}
	if _, err := g.importer("stripe").Import(t.Context(), strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if got := g.apply(14); got[ledger.Duplicate] != 14 {
		t.Errorf("the same file again: a worker made %v of them", got)
	}
}

// The bytes of an export differ from those that were delivered; the meaning does not.
func TestImport_OfADeliveredEventIsADuplicate(t *testing.T) {
	t.Parallel()
	g := newGap(t)
	m := g.importer("stripe")
	if _, err := m.Import(t.Context(), strings.NewReader(paymentIntent("1", 5))); err != nil {
		t.Fatal(err)
	}
	g.apply(1)
	spaced := strings.ReplaceAll(paymentIntent("1", 5), `":`, `": `)
	dry, err := m.DryRun(t.Context(), strings.NewReader(spaced+"\n"+paymentIntent("1", 6)))
	if err != nil || dry.Counts[ledger.Duplicate] != 1 || dry.Counts[ledger.Conflict] != 1 {
		t.Errorf("got %+v (%v), want one duplicate, and a conflict for the other amount", dry, err)
	}
}

func TestImport_IdentifiesAsTheReceiverDoes(t *testing.T) {
	t.Parallel()
	g := newGap(t)
	// The ID is in a header.
	rep, err := g.importer("github").Import(t.Context(), strings.NewReader(
		`{"body":{"action":"created"},"id":"delivery-1","headers":{"x-github-event":"sponsorship"}}`+"\n"+
			`{"body":{"action":"created"},"headers":{"X-GitHub-Delivery":"delivery-2"}}`+"\n"+`{"action":"created"}`))
	if err != nil || rep.Imported != 2 || rep.BadCount != 1 || rep.Bad[0].Line != 3 {
		t.Errorf("github: got %+v (%v)", rep, err)
	}
	// A delivery of several.
	rep, err = g.importer("gocardless").Import(t.Context(), strings.NewReader(
		`{"events":[{"id":"EV1","resource_type":"payments","action":"paid_out"},{"id":7},{"id":"EV2","resource_type":"payments","action":"failed"}]}`))
	if err != nil || rep.Imported != 2 || rep.BadCount != 1 {
		t.Errorf("gocardless: got %+v (%v)", rep, err)
	}
	// No identity of its own.
	rep, err = g.importer("plaid").Import(t.Context(), strings.NewReader(`{"webhook_type":"TRANSFER","webhook_code":"TRANSFER_EVENTS_UPDATE"}`))
	if !errors.Is(err, ErrNoIdentity) || rep.Imported != 0 {
		t.Errorf("plaid: got %+v (%v), want ErrNoIdentity", rep, err)
	}
}

func TestImport_SaysFromWhichLineOnItIsNotKnown(t *testing.T) {
	t.Parallel()
	g := newGap(t)
	g.cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		g.cluster.KeepControl()
		res := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.(*kmsg.ProduceRequest).Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			res.Topics = append(res.Topics, rt)
		}
		return res, nil, true
	})
	var stopped *StoppedError
	rep, err := g.importer("stripe").Import(t.Context(), strings.NewReader("\n"+paymentIntent("1", 5)+"\n"+paymentIntent("2", 5)))
	if !errors.As(err, &stopped) || stopped.Line != 2 || rep.Imported != 0 || !strings.Contains(err.Error(), "import the same file again") {
		t.Errorf("got %+v (%v), want it stopped at line 2", rep, err)
	}
}

// Ctrl-C: what was read is stored, and the error says how far that was and what to do.
func TestImport_InterruptedSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	g := newGap(t)
	ctx, stop := context.WithCancel(t.Context())
	m := g.importer("stripe")
	m.Progress = func(lines int64) {
		if lines == 2 {
			stop()
		}
	}
	rep, err := m.Import(ctx, strings.NewReader(paymentIntent("1", 5)+"\n"+paymentIntent("2", 5)+"\n"+paymentIntent("3", 5)))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped behind line 2") || rep.Imported != 2 {
		t.Errorf("got %+v (%v), want it stopped behind line 2", rep, err)
	}
}

// endless is one line without an end, of which only so much is read.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	copy(p, bytes.Repeat([]byte("x"), n))
	e.left -= n
	return n, nil
}

func TestLines_NeverHoldMoreThanTheyMay(t *testing.T) {
	t.Parallel()
	l := newLineReader(io.MultiReader(&endless{64 << 20}, strings.NewReader("\ngood\nlast")), 1<<10)
	if _, err := l.next(); !errors.Is(err, errLineTooLong) {
		t.Fatalf("got %v, want errLineTooLong", err)
	}
	if cap(l.buf) > 128<<10 {
		t.Errorf("%d bytes are held of a line of at most 1 KiB", cap(l.buf))
	}
	for _, want := range []string{"good", "last"} {
		if line, err := l.next(); err != nil || string(line) != want {
			t.Errorf("got %q (%v), want %q", line, err, want)
		}
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) || l.number != 3 {
		t.Errorf("got %v after %d lines, want EOF after 3", err, l.number)
	}
}

// Whatever a line says, it is read or refused, and what it says is kept byte by byte.
func FuzzUnwrap(f *testing.F) {
	for _, s := range []string{`{}`, `{"body":1}`, `{"body":"a","id":"b","headers":{"c":"d"}}`, `{"object":"list","data":[{}]}`, `{"body_base64":"!"}`, `a=b`, `{"headers":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		list, err := unwrap(line)
		if err != nil {
			return
		}
		for _, one := range list {
			if one.header == nil {
				t.Error("no header to set")
			}
			if one.id == "" && len(list) == 1 && len(one.header) == 0 && len(one.body) > len(line) {
				t.Errorf("a body of %d bytes out of a line of %d", len(one.body), len(line))
			}
		}
	})
}
