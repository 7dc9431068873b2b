package consumer

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/testkit"
	"hookledger/migrations"
)

// patient is the deadline of what is much work on a busy machine.
const patient = 4 * time.Minute

// Ten workers share six partitions, nine tenths of the events fall on one account, and
// six of the workers stop halfway: each event moves money once, and every partition has
// one owner at the end.
func TestWorker_TenOnSixPartitionsWithAHotAccount(t *testing.T) {
	t.Parallel()
	const partitions, workers, events = 6, 10, 6000
	b := setup(t, partitions)
	quiet := func(d *Deps) {
		d.Log = zerolog.Nop()
		d.Config.Appliers = 2
	}
	var all []*worker
	for range workers {
		all = append(all, b.start(quiet))
	}
	want := map[string]int64{}
	produce := func(from, to int) {
		var records []*kgo.Record
		for i := from; i < to; i++ {
			account := "hot"
			if i%10 == 0 {
				account = fmt.Sprintf("acct_%d", i%7)
			}
			want[account]++
			records = append(records, b.record(int32(i%partitions), "acme", fmt.Sprintf("e%d", i), told{Account: account, Amount: 1}))
		}
		b.produce(records...)
	}
	produce(0, events/2)
	for _, w := range all[:6] {
		w.halt()
	}
	produce(events/2, events)
	for account, sum := range want {
		testkit.Eventually(t, patient, func() error {
			if got := b.balance(account); got != sum {
				return fmt.Errorf("balance of %s: got %d, want %d", account, got, sum)
			}
			return nil
		})
	}
	testkit.Eventually(t, patient, func() error {
		owned := 0
		for _, w := range all[6:] {
			if err := w.Ready(); err != nil {
				return err // with or without partitions
			}
			if s := w.session.Load(); s != nil {
				owned += len(s.queues.all())
			}
		}
		if owned != partitions {
			return fmt.Errorf("partitions of the workers that are left: got %d, want %d", owned, partitions)
		}
		return nil
	})
	for p := range int32(partitions) {
		b.isCommitted(p, events/partitions)
		b.hasIncidents(p)
	}
	b.lawful()
}

// outageEnv makes the outage of the test below as long as it says, such as 10m.
const outageEnv = "HOOKLEDGER_TEST_OUTAGE"

// Postgres is away while 500 records a second come in. When it is back they are drained
// faster than they came, and nothing is lost, doubled or raised.
func TestWorker_DrainsFasterAfterAnOutageThanRecordsCameIn(t *testing.T) {
	t.Parallel()
	outage, err := time.ParseDuration(cmp.Or(os.Getenv(outageEnv), "8s"))
	if err != nil {
		t.Fatalf("%s: %v", outageEnv, err)
	}
	const perSecond, tick = 500, 100 * time.Millisecond
	postgres := testkit.NewPostgres(t)
	if err := migrations.Up(t.Context(), postgres.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, 3, postgres.Pool("postgres"))
	w := b.start(func(d *Deps) { d.Log = zerolog.Nop() })
	b.pay(0, "anna", 1)
	b.hasBalance("anna", 1)
	postgres.Stop()
	_ = w.notReady()

	began := time.Now()
	produced := 0
	for ticker := time.NewTicker(tick); time.Since(began) < outage; <-ticker.C {
		// As many as are due: a busy machine comes late.
		due := int(time.Since(began).Seconds() * perSecond)
		var records []*kgo.Record
		for ; produced < due; produced++ {
			records = append(records, b.record(int32(produced%3), "acme", fmt.Sprintf("out_%d", produced), told{Account: fmt.Sprintf("acct_%d", produced%40), Amount: 1}))
		}
		if len(records) > 0 {
			b.produce(records...)
		}
	}
	arrival := time.Since(began)
	postgres.Start()
	back := time.Now()
	var first time.Time
	testkit.Eventually(t, max(patient, outage), func() error {
		n := int(value(t, w.metrics.settledRecords)) - 1
		if n > 0 && first.IsZero() {
			first = time.Now()
		}
		if n < produced {
			return fmt.Errorf("%d of %d records are settled", n, produced)
		}
		return nil
	})
	drained := time.Since(back)
	t.Logf("%d records came in over %s (%.0f/s); the first was applied %s after Postgres was back, all after %s (%.0f/s)",
		produced, arrival.Round(time.Second), float64(produced)/arrival.Seconds(), first.Sub(back).Round(time.Millisecond),
		drained.Round(time.Millisecond), float64(produced)/drained.Seconds())
	if working := time.Since(first); working > arrival {
		t.Errorf("draining took %s once it began, want less than the %s in which the records came", working, arrival)
	}
	w.ready()
	if got := query1[int64](t, b.pool, `select sum(balance)::bigint from accounts`); got != int64(produced)+1 {
		t.Errorf("balances: got %d, want %d", got, produced+1)
	}
	for p := range int32(3) {
		b.hasIncidents(p)
	}
	b.lawful()
}

// A real worker works off a backlog: its memory is bounded by its buffers, not by the
// backlog, and afterwards it has the goroutines and connections that it had before.
func TestProgram_MemoryUnderABacklogIsBounded(t *testing.T) {
	t.Parallel()
	const partitions, records, bodyBytes = 6, 60_000, 1500
	url := testkit.LedgerURL(t)
	b := setupOn(t, partitions, testkit.PoolOn(t, url))
	b.cfg.BatchMaxRecords = DefaultConfig().BatchMaxRecords
	// Not to be compressed to nothing, which no webhook is.
	noise := make([]byte, bodyBytes*4)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	filler := hex.EncodeToString(noise)
	for p := range int32(partitions) {
		b.pay(p, "first", 1)
	}
	p := b.startProgram(url)
	b.hasBalance("first", partitions)
	connections := func() int {
		return query1[int](t, b.pool, `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'hookledger%'`)
	}
	goroutines, held := p.gauge("go_goroutines"), connections()

	for from := 0; from < records; from += 5000 {
		var batch []*kgo.Record
		for i := from; i < from+5000; i++ {
			r := b.record(int32(i%partitions), "acme", fmt.Sprintf("evt_b%d", i), told{Account: fmt.Sprintf("acct_%d", i%100), Amount: 1})
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "x-signature", Value: []byte(filler[i%bodyBytes:][:bodyBytes])})
			batch = append(batch, r)
		}
		b.produce(batch...)
	}
	most := 0
	testkit.Eventually(t, patient, func() error {
		most = max(most, p.residentBytes())
		var sum int64
		if sum = query1[int64](t, b.pool, `select coalesce(sum(balance), 0)::bigint from accounts`); sum != records+partitions {
			return fmt.Errorf("balances: got %d, want %d", sum, records+partitions)
		}
		return nil
	})
	t.Logf("%d records of %d bytes: at most %d MiB resident", records, bodyBytes, most>>20)
	if limit := testkit.RaceFactor * (300 << 20); most > limit {
		t.Errorf("resident memory: got %d MiB, want at most %d MiB", most>>20, limit>>20)
	}
	testkit.Eventually(t, soon, func() error {
		// The pool may have grown to its limit, which is not many.
		if now := p.gauge("go_goroutines"); now > goroutines+8 {
			return fmt.Errorf("goroutines: got %d, before the backlog %d", now, goroutines)
		}
		if now := connections(); now > held+6 {
			return fmt.Errorf("connections: got %d, before the backlog %d", now, held)
		}
		return nil
	})
}

// gauge reads a metric without labels.
func (p *program) gauge(name string) int {
	p.b.tb.Helper()
	for line := range strings.Lines(p.get("/metrics")) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				p.b.tb.Fatal(err)
			}
			return int(n)
		}
	}
	p.b.tb.Fatalf("no metric %s", name)
	return 0
}

// residentBytes is what the process has in memory now.
func (p *program) residentBytes() int {
	p.b.tb.Helper()
	out, err := exec.CommandContext(p.b.tb.Context(), "ps", "-o", "rss=", "-p", strconv.Itoa(p.PID())).Output()
	if err != nil {
		p.b.tb.Fatalf("ask for the memory of the worker: %v", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		p.b.tb.Fatal(err)
	}
	return n << 10
}
