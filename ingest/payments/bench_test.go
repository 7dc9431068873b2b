package payments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hookledger/internal/ledger/transfer"
	"hookledger/internal/testkit"
)

// benchCallers is how many call at once; benchAccounts are enough for them to seldom
// meet in one.
const (
	benchCallers  = 32
	benchAccounts = 1000
)

// BenchmarkPay is of the work behind the door, without HTTP, which `make bench` measures:
// bare is two entries and two balances without keys, in one write, as the door does it.
// Postgres waits for its disk (fsync on), and shares the machine.
//
//	go test ./ingest/payments -run '^$' -bench Pay -benchtime 3s
func BenchmarkPay(b *testing.B) {
	cluster := testkit.NewPostgres(b, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	url := cluster.URL("postgres")
	migrate(b, url)
	pool := openPool(b, url, 0)
	benchFund(b, pool)
	watchCPU(b, pool)
	x := &bundle{tb: b, url: url, pool: pool}
	x.startWith(testConfig(), openPool(b, url, 0))

	b.Run("bare", func(b *testing.B) {
		callers(b, func(i int64) error { return bare(pool, i) })
	})
	b.Run("new", func(b *testing.B) {
		run := testkit.UniqueName("d")
		callers(b, func(i int64) error {
			_, err := x.server.door.serve(context.Background(), benchRequest(fmt.Sprint(run, i), i))
			return err
		})
	})
	b.Run("replay", func(b *testing.B) {
		reqs := make([]*request, 1000)
		for i := range reqs {
			reqs[i] = benchRequest(fmt.Sprint("replay", i), int64(i))
			if _, err := x.server.door.serve(context.Background(), reqs[i]); err != nil {
				b.Fatal(err)
			}
		}
		callers(b, func(i int64) error {
			a, err := x.server.door.serve(context.Background(), reqs[i%int64(len(reqs))])
			if err == nil && !a.replayed {
				return fmt.Errorf("answered %d anew", a.code)
			}
			return err
		})
	})
}

// callers runs f benchCallers at a time, b.N times in all, and reports a rate.
func callers(b *testing.B, f func(i int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	before := cpu()
	b.ResetTimer()
	for range benchCallers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric((cpu()-before).Seconds()*1e6/float64(b.N), "cpu-us")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per-s")
	b.ReportMetric(0, "ns/op")
}

func benchAccount(i int64) string { return fmt.Sprintf("a:%d", i%benchAccounts) }

// benchTo differs from benchAccount, and no two callers go the same way round.
func benchTo(i int64) string { return fmt.Sprintf("a:%d", (i*7+1+i%benchAccounts)%benchAccounts) }

func benchBody(i int64) string {
	from, to := benchAccount(i), benchTo(i)
	if from == to {
		to = "a:sink"
	}
	return payment(from, to, 1)
}

func benchRequest(key string, i int64) *request {
	o, err := parseOrder([]byte(benchBody(i)))
	if err != nil {
		panic(err)
	}
	return &request{client: "shop", key: key, order: o, id: "bench"}
}

func benchFund(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	for i := range int64(benchAccounts) {
		fund(b, pool, benchAccount(i), 1_000_000_000)
	}
}

func benchTransfer(i int64) transfer.Transfer {
	r := benchRequest("", i)
	return transfer.Transfer{PaymentID: newPaymentID(time.Now()), From: r.order.from, To: r.order.to, Amount: 1, Currency: "EUR", OccurredAt: time.Now()}
}

// bare moves the money in one write.
func bare(pool *pgxpool.Pool, i int64) error {
	ctx := context.Background()
	t := benchTransfer(i)
	var batch pgx.Batch
	batch.Queue("begin")
	t.Queue(&batch)
	batch.Queue("commit")
	return pool.SendBatch(ctx, &batch).Close()
}

// BenchmarkClean: payments while a million expired keys are removed, and before. It
// reports the times of both, in one run, and how fast keys go. A third row has an open
// snapshot of somebody else, because of which nothing that was removed can be vacuumed.
func BenchmarkClean(b *testing.B) {
	cluster := testkit.NewPostgres(b, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	url := cluster.URL("postgres")
	migrate(b, url)
	pool := openPool(b, url, 0)
	benchFund(b, pool)
	x := &bundle{tb: b, url: url, pool: pool}
	x.startWith(testConfig(), openPool(b, url, 0))
	run := 0
	load := func(b *testing.B, until time.Duration) []time.Duration {
		run++
		var mu sync.Mutex
		var took []time.Duration
		stop := time.Now().Add(until)
		each(4, func(i int) {
			for n := int64(0); time.Now().Before(stop); n++ {
				began := time.Now()
				if r, err := postTo(x.base, shopToken, fmt.Sprint("c", run, "-", i, "-", n), benchBody(n*4+int64(i))); err != nil || r.code != 201 {
					b.Errorf("got %s %v, want 201", r, err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
		slices.Sort(took)
		return took
	}
	report := func(b *testing.B, took []time.Duration) {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		b.ReportMetric(0, "ns/op")
	}
	const span = 10 * time.Second
	load(b, 2*time.Second)
	b.Run("keys=none", func(b *testing.B) {
		for b.Loop() {
			report(b, load(b, span))
		}
	})
	x.exec(`insert into idempotency_keys (client, key, fingerprint, state, claimed_at, expires_at, response_code, response_body)
		select 'shop', 'expired-' || g, sha256(g::text::bytea), 'done', now() - interval '2 days', now() - interval '1 day' + g * interval '1 microsecond', 201,
		       convert_to(repeat('x', 230), 'UTF8') from generate_series(1, 1000000) g`)
	x.exec(`vacuum analyze idempotency_keys`)
	clean := func(b *testing.B) {
		for b.Loop() {
			ctx, stop := context.WithCancel(context.Background())
			var cleaning sync.WaitGroup
			before := counter(b, x.reg, "hookledger_payments_expired_keys_removed_total", "", "")
			cleaning.Go(func() { (&cleaner{door: x.server.door}).run(ctx) })
			report(b, load(b, span))
			stop()
			cleaning.Wait()
			b.ReportMetric((counter(b, x.reg, "hookledger_payments_expired_keys_removed_total", "", "")-before)/span.Seconds(), "removed/s")
		}
	}
	b.Run("keys=million", clean)
	tx, err := pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), `select count(*) from accounts`); err != nil {
		b.Fatal(err)
	}
	b.Run("keys=million,snapshot=open", clean)
	_ = tx.Rollback(context.Background())
}

// cpu is the time that this process and its children's cluster have worked, which tells
// more than a rate on a machine that others use too.
func cpu() time.Duration {
	var total time.Duration
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		text, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		name := string(text)
		if len(f) < 13 || !(strings.Contains(name, "(postgres)") && benchCluster[f[1]]) && !strings.HasPrefix(name, strconv.Itoa(os.Getpid())+" ") {
			continue
		}
		for _, v := range f[11:13] {
			n, _ := strconv.Atoi(v)
			total += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return total
}

var benchCluster = map[string]bool{}

func watchCPU(b *testing.B, pool *pgxpool.Pool) {
	pid := query1[int](b, pool, `select pg_backend_pid()`)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	benchCluster[strings.Fields(rest)[1]] = true
}
