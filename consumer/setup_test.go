package consumer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
	"hookledger/internal/testkit"
	"hookledger/migrations"
	"hookledger/schema"
)

// soon is the deadline of what should take a moment: the machine may be busy.
const soon = time.Minute

// told is what the events of these tests say.
type told struct {
	Account string
	Amount  int64
	Bad     bool `json:",omitempty"`
}

// mapTold maps events of source acme; elsewhere is known once known says so.
func mapTold(known *atomic.Bool) ledger.Mapper {
	return func(e *schema.Event) (schema.Meaning, error) {
		if e.Source != "acme" && !known.Load() {
			return schema.Meaning{}, fmt.Errorf("map: %w", schema.ErrUnknownSource)
		}
		var t told
		if err := json.Unmarshal(e.Body, &t); err != nil || t.Bad {
			return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable, Detail: "as the test wants"}
		}
		return schema.Meaning{Postings: []schema.Posting{{
			Account: t.Account, Contra: "external:acme", Amount: t.Amount, Currency: "EUR", Rule: "payment", Movement: e.ID,
		}}}, nil
	}
}

// bundle is a topic in kfake and a ledger in Postgres.
type bundle struct {
	tb      testing.TB
	cluster *kfake.Cluster
	pool    *pgxpool.Pool
	kafka   broker.Config
	cfg     Config
	client  *kgo.Client
	adm     *kadm.Client
	// elsewhere says that source elsewhere is configured.
	elsewhere atomic.Bool
	// extra are options of the worker's clients.
	extra []kgo.Opt
	// events counts what pay produced, for event IDs.
	events int
}

func setup(tb testing.TB, partitions int32) *bundle {
	tb.Helper()
	return setupOn(tb, partitions, testkit.LedgerDB(tb))
}

func setupOn(tb testing.TB, partitions int32, pool *pgxpool.Pool) *bundle {
	tb.Helper()
	cluster := testkit.Kfake(tb, kfake.GroupMinSessionTimeout(100*time.Millisecond))
	kafka := broker.DefaultConfig()
	kafka.Brokers = cluster.ListenAddrs()
	b := setupWith(tb, partitions, pool, kafka)
	b.cluster = cluster
	return b
}

// setupWith is setup on any Kafka.
func setupWith(tb testing.TB, partitions int32, pool *pgxpool.Pool, kafka broker.Config) *bundle {
	tb.Helper()
	kafka.Partitions, kafka.Replication, kafka.Durability = int(partitions), 1, broker.Single
	b := &bundle{tb: tb, pool: pool, kafka: kafka, cfg: DefaultConfig()}
	b.cfg.SessionTimeout = 3 * time.Second
	b.cfg.CheckInterval = 300 * time.Millisecond
	var err error
	b.client, err = kgo.NewClient(append(broker.Options(kafka, zerolog.Nop()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.client.Close)
	b.adm = kadm.NewClient(b.client)
	b.createTopic()
	return b
}

func (b *bundle) createTopic() {
	b.tb.Helper()
	if _, err := broker.ApplyTopic(b.tb.Context(), b.client, b.kafka, 1<<20, false); err != nil {
		b.tb.Fatal(err)
	}
}

// worker is a running Worker.
type worker struct {
	*Worker
	b    *bundle
	reg  *prometheus.Registry
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// start runs a worker until the test ends or stops it.
func (b *bundle) start(change ...func(*Deps)) *worker {
	b.tb.Helper()
	reg := prometheus.NewPedanticRegistry()
	d := Deps{
		Config: b.cfg, Kafka: b.kafka, MaxBodyBytes: 1 << 20, Pool: b.pool, Metrics: reg,
		Memory: Memory{Rotate: 168 * time.Hour, Keep: 840 * time.Hour},
		Schema: func(ctx context.Context) error { return migrations.Check(ctx, b.pool) },
		Log:    zerolog.New(zerolog.NewTestWriter(b.tb)).Level(zerolog.InfoLevel),
	}
	for _, c := range change {
		c(&d)
	}
	d.options = b.extra
	d.Ledger = ledger.New(d.Pool, mapTold(&b.elsewhere), ledger.Options{
		StatementTimeout: d.Config.StatementTimeout(), LockTimeout: d.Config.LockTimeout(), IdleTimeout: d.Config.StatementTimeout(),
	})
	w, err := New(d)
	if err != nil {
		b.tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &worker{Worker: w, b: b, reg: reg, stop: cancel, done: make(chan struct{})}
	go func() { // ends with halt
		defer close(run.done)
		run.err = w.Run(ctx)
	}()
	b.tb.Cleanup(run.halt)
	return run
}

// halt stops the worker gracefully and waits for it.
func (w *worker) halt() {
	w.stop()
	select {
	case <-w.done:
	case <-time.After(soon):
		w.b.tb.Errorf("the worker does not stop")
	}
}

// record makes the record of an event.
func (b *bundle) record(partition int32, source, id string, t told) *kgo.Record {
	b.tb.Helper()
	body, err := json.Marshal(t)
	if err != nil {
		b.tb.Fatal(err)
	}
	e := schema.Event{
		Source: source, ID: id, Type: "payment.succeeded", ReceivedAt: time.Now(), Scheme: "hmac", KeyID: "k1",
		ContentType: "application/json", Body: body, BodySHA256: sha256.Sum256(body),
	}
	r := &kgo.Record{Topic: b.kafka.Topic, Partition: partition, Key: e.RecordKey(), Value: e.Body, Timestamp: e.ReceivedAt}
	for _, h := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

func (b *bundle) produce(records ...*kgo.Record) {
	b.tb.Helper()
	if err := b.client.ProduceSync(b.tb.Context(), records...).FirstErr(); err != nil {
		b.tb.Fatal(err)
	}
}

// pay produces n new events of 1 each for account into a partition.
func (b *bundle) pay(partition int32, account string, n int) {
	b.tb.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		b.events++
		records[i] = b.record(partition, "acme", fmt.Sprintf("evt_%d", b.events), told{Account: account, Amount: 1})
	}
	b.produce(records...)
}

func (b *bundle) balance(account string) int64 {
	b.tb.Helper()
	return query1[int64](b.tb, b.pool, `select coalesce(sum(balance), 0)::bigint from accounts where account_id = $1`, account)
}

func query1[T any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (b *bundle) exec(sql string, args ...any) {
	b.tb.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		b.tb.Fatalf("%s: %v", sql, err)
	}
}

// hasBalance waits until account holds want.
func (b *bundle) hasBalance(account string, want int64) {
	b.tb.Helper()
	testkit.Eventually(b.tb, soon, func() error {
		if got := b.balance(account); got != want {
			return fmt.Errorf("balance of %s: got %d, want %d", account, got, want)
		}
		return nil
	})
}

// committed returns the offset that Kafka holds for a partition, -1 if none.
func (b *bundle) committed(partition int32) int64 {
	b.tb.Helper()
	all, err := broker.CommittedOffsets(context.Background(), b.client, b.kafka.Group, b.kafka.Topic)
	if err != nil {
		b.tb.Fatal(err)
	}
	if o, ok := all[partition]; ok {
		return o.At
	}
	return -1
}

// isCommitted waits until Kafka holds want for a partition.
func (b *bundle) isCommitted(partition int32, want int64) {
	b.tb.Helper()
	testkit.Eventually(b.tb, soon, func() error {
		if got := b.committed(partition); got != want {
			return fmt.Errorf("committed offset of %d: got %d, want %d", partition, got, want)
		}
		return nil
	})
}

// setCommit does what an operator's reset does; the group must be empty.
func (b *bundle) setCommit(partition int32, offset int64) {
	b.tb.Helper()
	os := kadm.Offsets{}
	os.AddOffset(b.kafka.Topic, partition, offset, -1)
	if err := b.adm.CommitAllOffsets(b.tb.Context(), b.kafka.Group, os); err != nil {
		b.tb.Fatal(err)
	}
}

// incidents returns the incidents of a partition, oldest first, as kind/severity/from/to.
func (b *bundle) incidents(partition int32) []string {
	b.tb.Helper()
	return query1[[]string](b.tb, b.pool,
		`select coalesce(array_agg(kind || '/' || severity || '/' || from_offset || '/' || to_offset order by incident_id), '{}')
		   from incidents where partition = $1`, partition)
}

// hasIncidents waits until the incidents of a partition are want, and no others.
func (b *bundle) hasIncidents(partition int32, want ...string) {
	b.tb.Helper()
	testkit.Eventually(b.tb, soon, func() error {
		if got := b.incidents(partition); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("incidents of %d: got %q, want %q", partition, got, want)
		}
		return nil
	})
}

// lawful checks that balances are the sums of entries and nothing was applied twice.
func (b *bundle) lawful() {
	b.tb.Helper()
	for name, sql := range map[string]string{
		"balance is the sum of entries": `select count(*) from accounts a full join
			(select account_id, currency, sum(amount) s from ledger_entries group by 1, 2) e using (account_id, currency)
			where a.balance is distinct from e.s`,
		"an event has one entry": `select count(*) from (select 1 from ledger_entries group by source, event_id having count(*) > 1) x`,
	} {
		if n := query1[int64](b.tb, b.pool, sql); n != 0 {
			b.tb.Errorf("law broken: %s: %d violations", name, n)
		}
	}
}

// ready waits until the worker is ready.
func (w *worker) ready() {
	w.b.tb.Helper()
	testkit.Eventually(w.b.tb, soon, w.Ready)
}

// notReady waits until the worker is not ready and returns why.
func (w *worker) notReady() error {
	w.b.tb.Helper()
	var err error
	testkit.Eventually(w.b.tb, soon, func() error {
		if err = w.Ready(); err == nil {
			return errors.New("the worker is ready")
		}
		return nil
	})
	return err
}

// notReadyFor waits until the worker is not ready for the reason, a regular expression: on
// a busy machine something else may be late too, and is told first.
func (w *worker) notReadyFor(reason string) {
	w.b.tb.Helper()
	testkit.Eventually(w.b.tb, soon, func() error {
		err := w.Ready()
		if err == nil {
			return errors.New("the worker is ready")
		}
		if !regexp.MustCompile(reason).MatchString(err.Error()) {
			return fmt.Errorf("not ready, but not for %s: %w", reason, err)
		}
		return nil
	})
}

// owns waits until the worker has n partitions.
func (w *worker) owns(n int) {
	w.b.tb.Helper()
	testkit.Eventually(w.b.tb, soon, func() error {
		s := w.session.Load()
		if s == nil {
			return errors.New("no session")
		}
		if got := len(s.queues.all()); got != n {
			return fmt.Errorf("partitions: got %d, want %d", got, n)
		}
		return nil
	})
}

func (w *worker) records(outcome string) float64 {
	return value(w.b.tb, w.metrics.records.WithLabelValues(outcome))
}

// value reads a counter or a gauge.
func value(tb testing.TB, m prometheus.Metric) float64 {
	tb.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		tb.Fatal(err)
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

// groupIsEmpty waits until the group has no members.
func (b *bundle) groupIsEmpty() {
	b.tb.Helper()
	testkit.Eventually(b.tb, soon, func() error {
		if g := b.cluster.GroupInfo(b.kafka.Group); g != nil && len(g.Members) > 0 {
			return fmt.Errorf("the group has %d members", len(g.Members))
		}
		return nil
	})
}

// lock is a session that holds rows which the worker needs.
type lock struct {
	release func()
}

// lockProgress holds the rows of consumer_progress until it is released.
func (b *bundle) lockProgress() lock { return b.lockRows(`select from consumer_progress for update`) }

func (b *bundle) lockRows(sql string) lock {
	b.tb.Helper()
	tx, err := b.pool.Begin(context.Background())
	if err != nil {
		b.tb.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), sql); err != nil {
		b.tb.Fatal(err)
	}
	var once sync.Once
	l := lock{release: func() { once.Do(func() { _ = tx.Rollback(context.Background()) }) }}
	b.tb.Cleanup(l.release)
	return l
}
