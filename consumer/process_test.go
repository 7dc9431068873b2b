package consumer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hookledger/internal/testkit"
)

// program is `hookledger consume` as a process of its own, to be killed.
type program struct {
	*testkit.KillableProcess
	b      *bundle
	admin  string
	config string
}

// startProgram runs the real worker on the bundle's topic and on a database, and waits
// until it lives. It maps the same events as the workers of this process do.
func (b *bundle) startProgram(database string) *program { return b.startMapping(database, "Account") }

// startMapping is startProgram with another path of the account.
func (b *bundle) startMapping(database, account string) *program {
	b.tb.Helper()
	config, admin := filepath.Join(b.tb.TempDir(), "hookledger.yaml"), testkit.FreeAddr(b.tb)
	err := os.WriteFile(config, fmt.Appendf(nil, `
kafka: { brokers: [%s], topic: %s, group: %s, partitions: %d, replication: 1, durability: single }
database: { url: %q }
consume: { admin: %q, session_timeout: %s, check_interval: %s, batch_max_records: %d }
sources:
  - name: acme
    provider: generic
    signature: { header: X-Signature, algorithm: hmac-sha256, encoding: hex }
    secrets: [{ value: not-used-here }]
    event: { id: id, type: type }
    account: %s
    postings: [{ type: payment.succeeded, amount: Amount, unit: minor, currency: { const: EUR }, direction: credit }]
`, strings.Join(b.kafka.Brokers, ", "), b.kafka.Topic, b.kafka.Group, b.kafka.Partitions, database, admin,
		b.cfg.SessionTimeout, b.cfg.CheckInterval, b.cfg.BatchMaxRecords, account), 0o600)
	if err != nil {
		b.tb.Fatal(err)
	}
	return &program{b: b, admin: "http://" + admin, config: config, KillableProcess: testkit.StartHookledger(b.tb, testkit.ProcessOptions{
		Args: []string{"--config", config, "consume"}, ReadyURL: "http://" + admin + "/livez", ReadyWithin: soon,
	})}
}

// get returns what the admin listener answers.
func (p *program) get(path string) string {
	p.b.tb.Helper()
	req, err := http.NewRequestWithContext(p.b.tb.Context(), http.MethodGet, p.admin+path, http.NoBody)
	if err != nil {
		p.b.tb.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.b.tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.b.tb.Fatal(err)
	}
	return string(body)
}

// A mapping that is wrong holds every event of its source, which is told once as what it
// is; mended, one command applies them all, once each.
func TestProgram_WrongMappingIsMendedByOneRetry(t *testing.T) {
	t.Parallel()
	const events = 300
	url := testkit.LedgerURL(t)
	b := setupOn(t, 3, testkit.PoolOn(t, url))
	for p := range int32(3) {
		b.pay(p, "anna", events/3)
	}
	p := b.startMapping(url, "Acount")
	testkit.Eventually(t, soon, func() error {
		if got := query1[int64](t, b.pool, `select count(*) from quarantined_events where reason = 'missing_account'`); got != events {
			return fmt.Errorf("in quarantine: got %d, want %d", got, events)
		}
		return nil
	})
	if got := query1[int64](t, b.pool, `select count(*) from incidents where kind = 'quarantine_surge' and severity = 'warning'`); got != 1 {
		t.Errorf("incidents quarantine_surge: got %d, want 1", got)
	}
	p.Kill()
	mended := b.startMapping(url, "Account")
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	out, err := exec.CommandContext(ctx, testkit.Binary(t), "--config", mended.config, "quarantine", "retry", "--all", "--note", "mapping mended").CombinedOutput()
	if err != nil {
		t.Fatalf("quarantine retry --all: %v\n%s", err, out)
	}
	if got := b.balance("anna"); got != events {
		t.Errorf("balance: got %d, want %d", got, events)
	}
	if got := query1[int64](t, b.pool, `select count(*) from quarantined_events where resolved_at is null`); got != 0 {
		t.Errorf("still in quarantine: got %d, want 0", got)
	}
	b.lawful()
}

// A worker is killed after it was given a partition that Kafka holds no offset for, and
// before Kafka was told one. Nothing has been applied by then, although records are
// there, so that the next worker finds an ordinary crash and no incident.
func TestAssign_NothingIsAppliedBeforeKafkaHoldsTheStart(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	b := setupOn(t, 2, testkit.PoolOn(t, url))
	next := func(partition int) int64 {
		return query1[int64](t, b.pool, `select coalesce(max(next_offset), 0) from consumer_progress where partition = $1`, partition)
	}
	b.pay(1, "anna", 3)
	// What a coordinator does that moves at the wrong moment, for as long as it likes.
	held := b.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.OffsetCommit}, Partitions: []int32{1}, Err: kerr.UnknownServerError, Count: -1,
	})
	p := b.startProgram(url)
	testkit.Eventually(t, soon, func() error {
		if n := next(1); n != 0 {
			t.Fatalf("Kafka holds no start and progress is %d: want nothing applied", n)
		}
		if got := p.get("/readyz"); !strings.Contains(got, "partition 1 has records: waiting until Kafka takes the commit of its start, 0") {
			return fmt.Errorf("readyz does not say what is waited for: %s", got)
		}
		return nil
	})
	b.pay(0, "bertha", 2)
	b.hasBalance("bertha", 2) // its neighbours do not wait
	if got := next(1); got != 0 {
		t.Errorf("next offset of the partition that waits: got %d, want 0", got)
	}
	p.Kill()
	held.Remove()
	p.Restart()
	b.hasBalance("anna", 3)
	b.isCommitted(1, 3)
	b.hasIncidents(0)
	b.hasIncidents(1)
	b.lawful()
}
