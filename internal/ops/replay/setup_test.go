package replay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/schema"
)

const (
	topic = "payments.events"
	group = "hookledger"
)

var begin = time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)

// world is a topic of two partitions, a ledger, and an operator.
type world struct {
	t       testing.TB
	cluster *kfake.Cluster
	cl      *kgo.Client
	url     string
	pool    *pgxpool.Pool // as superuser, to look and to break
	// meaning is today's mapping.
	meaning ledger.Mapper
	made    int
	next    map[int32]int64
}

// fact is what the events of these tests say.
type fact struct {
	Account  string
	Amount   int64
	Currency string
	Movement string `json:",omitempty"`
}

func mapFact(e *schema.Event) (schema.Meaning, error) {
	if e.Source == "elsewhere" {
		return schema.Meaning{}, fmt.Errorf("map: %w", schema.ErrUnknownSource)
	}
	var f fact
	if err := json.Unmarshal(e.Body, &f); err != nil {
		return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable, Detail: "not JSON"}
	}
	if f.Amount == 0 {
		return schema.Meaning{}, nil
	}
	movement := f.Movement
	if movement == "" {
		movement = e.ID
	}
	return schema.Meaning{Postings: []schema.Posting{{Account: f.Account, Contra: "external:acme", Amount: f.Amount, Currency: f.Currency,
		Rule: "payment", Movement: movement}}}, nil
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, cluster: testkit.Kfake(t), url: testkit.LedgerURL(t), meaning: mapFact, next: map[int32]int64{}}
	w.connect()
	w.createTopic()
	w.pool = w.open("")
	return w
}

// connect makes a client that knows nothing of the topic yet.
func (w *world) connect() {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.Close)
	w.cl = cl
}

func (w *world) createTopic() {
	w.t.Helper()
	if _, err := kadm.NewClient(w.cl).CreateTopic(w.t.Context(), 2, 1, nil, topic); err != nil {
		w.t.Fatal(err)
	}
}

// open opens a pool with the rights of role alone, or of the superuser.
func (w *world) open(role string) *pgxpool.Pool {
	w.t.Helper()
	cfg, err := pgxpool.ParseConfig(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	if role != "" {
		cfg.ConnConfig.RuntimeParams["options"] = "-c role=" + role
	}
	pool, err := pgxpool.NewWithConfig(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

// replayer has the rights of role.
func (w *world) replayer(role string) *Replayer {
	w.t.Helper()
	pool := w.open(role)
	mapper := func(e *schema.Event) (schema.Meaning, error) { return w.meaning(e) }
	return &Replayer{
		Client: w.cl, Options: []kgo.Opt{kgo.SeedBrokers(w.cluster.ListenAddrs()...)}, Group: group, Topic: topic,
		Store: &Store{pool}, Books: ledger.New(pool, mapper, ledger.Options{}), Mapper: mapper,
	}
}

// event is the record of an event that says f, the next second.
func (w *world) event(partition int32, source, id string, f fact) *kgo.Record {
	w.t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		w.t.Fatal(err)
	}
	w.made++
	e := schema.Event{Source: source, ID: id, Type: "paid", ReceivedAt: begin.Add(time.Duration(w.made) * time.Second),
		Scheme: "hmac", KeyID: "k", ContentType: "application/json", Body: text, BodySHA256: sha256.Sum256(text)}
	r := &kgo.Record{Topic: topic, Partition: partition, Key: e.RecordKey(), Value: text, Timestamp: e.ReceivedAt}
	for _, h := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	if err := w.cl.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// pay produces n payments of acme to partition, of 1 EUR cent each to a{i%10}.
func (w *world) pay(partition int32, prefix string, n int) {
	w.t.Helper()
	var records []*kgo.Record
	for i := range n {
		records = append(records, w.event(partition, "acme", fmt.Sprintf("%s%d", prefix, i), fact{Account: fmt.Sprintf("a%d", i%10), Amount: 1, Currency: "EUR"}))
	}
	w.produce(records...)
}

// position names the topic as it is.
func (w *world) position() ledger.Position {
	w.t.Helper()
	cluster, id, _, err := broker.Identity(w.t.Context(), w.cl, topic)
	if err != nil {
		w.t.Fatal(err)
	}
	return ledger.Position{ClusterID: cluster, Topic: topic, TopicID: id}
}

// work applies everything that the workers have not, as they do, positions and all.
func (w *world) work() {
	w.t.Helper()
	books := ledger.New(w.pool, w.meaning, ledger.Options{})
	ends, err := broker.EndOffsets(w.t.Context(), w.cl, topic)
	if err != nil {
		w.t.Fatal(err)
	}
	for p, end := range ends {
		at := w.position()
		at.Partition = p
		if _, ok := w.next[p]; !ok {
			if err := books.WritePosition(w.t.Context(), ledger.PositionWrite{Position: at}); err != nil {
				w.t.Fatal(err)
			}
			w.next[p] = 0
		}
		b := batcher{at: at, flush: func(b ledger.Batch) error {
			b.Start = w.next[p]
			done, err := books.Apply(w.t.Context(), b)
			w.next[p] = done.Next()
			return err
		}}
		topics := source{w.replayer("").Options, topic}
		if err := topics.read(w.t.Context(), Span{p, w.next[p], end.At}, b.add, func(int64) {}); err != nil {
			w.t.Fatal(err)
		}
		if err := b.end(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) plan(sel Selection) *Plan {
	w.t.Helper()
	p, err := w.replayer("hookledger_reader").Plan(w.t.Context(), sel, "tester")
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

var order = Order{By: "tester", Reason: "test"}

func (w *world) run(p *Plan, o Order) (*Result, error) {
	w.t.Helper()
	return w.replayer("hookledger_operator").Run(w.t.Context(), p, o)
}

func (w *world) mustRun(p *Plan, o Order) *Result {
	w.t.Helper()
	res, err := w.run(p, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// counts are those outcomes that are not zero, sorted by name.
func counts(o Outcomes) string {
	bare := map[string]int64{}
	for name, n := range o {
		if n != 0 {
			bare[name] = n
		}
	}
	return fmt.Sprint(bare)
}

func (w *world) sql(query string, args ...any) string {
	w.t.Helper()
	var s string
	if err := w.pool.QueryRow(context.Background(), query, args...).Scan(&s); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return s
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.Background(), query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// books is all that money is, and where the workers stand.
func (w *world) books() string {
	w.t.Helper()
	return w.sql(`select concat_ws(' ', (select count(*) from ledger_entries), (select coalesce(sum(amount), 0) from ledger_entries),
		(select coalesce(sum(balance), 0) from accounts), (select string_agg(partition || '@' || next_offset, ',' order by partition) from consumer_progress))`)
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}
