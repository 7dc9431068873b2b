package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// partitions of the topic of a run, an even number: Mirror makes pairs of them.
const partitions = 6

func (r *run) configure() error {
	durability, replication := r.stage.brokers.durability()
	text := fmt.Sprintf(`
kafka:
  brokers: [%s]
  topic: %s
  group: %s
  partitions: %d
  replication: %d
  durability: %s
  retention: 24h
database: { url: %q }
ingest: { ack_timeout: 2s, shutdown_timeout: 5s }
consume: { session_timeout: %dms, check_interval: 1s }
payments:
  durability: single
  claim_ttl: 3s
  answer_timeout: 3s
  shutdown_timeout: 5s
  rate: { per_second: 10000, burst: 10000 }
  tokens: [{ client: shop, env: SHOP_TOKEN }]
log: { level: info, format: json }
sources:
  - name: stripe
    provider: stripe
    secrets: [{ env: STRIPE_WEBHOOK_SECRET }]
    account: data.object.metadata.account_id
  - name: acme
    provider: generic
    signature: { header: X-Acme-Signature, algorithm: hmac-sha256, encoding: hex, prefix: "sha256=" }
    secrets: [{ env: ACME_SECRET }]
    account: user_id
    event: { id: id, type: type, time: created_at }
    postings:
      - { type: [payment.succeeded, payment.captured], key: payment, amount: amount, unit: minor, currency: currency, direction: credit, movement: payment_id }
      - { type: payout.paid, amount: amount, unit: major, currency: currency, direction: debit, movement: payout_id }
    statuses:
      - { type: order.state, object: order, status: status, ranks: { pending: 10, authorized: 20, paid: 30, refunded: 40 } }
`, strings.Join(r.stage.brokers.bootstrap(""), ", "), r.topic, r.group, partitions, replication, durability,
		r.stage.postgres.URL(r.database), sessionTimeout)
	r.config = filepath.Join(r.dir, "hookledger.yaml")
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

func (r *run) env() []string {
	return []string{"STRIPE_WEBHOOK_SECRET=" + r.secrets[sourceStripe], "ACME_SECRET=" + r.secrets[sourceAcme], "SHOP_TOKEN=" + r.secrets[rolePayments]}
}

// newRole configures a process: its ports, and the links by which it reaches the others.
func (r *run) newRole(name string) *role {
	port, env := r.stage.ports[name], r.env()
	command, admin := "consume", addr(port.admin)
	switch {
	case strings.HasPrefix(name, "ingest"):
		command = "ingest"
		env = append(env, "HOOKLEDGER_INGEST_LISTEN="+addr(port.public), "HOOKLEDGER_INGEST_ADMIN="+admin,
			"HOOKLEDGER_KAFKA_BROKERS="+strings.Join(r.stage.brokers.bootstrap(linkIngestKafka), ","))
	case name == rolePayments:
		command = "payments"
		env = append(env, "HOOKLEDGER_PAYMENTS_LISTEN="+addr(port.public), "HOOKLEDGER_PAYMENTS_ADMIN="+admin,
			"HOOKLEDGER_DATABASE_URL="+r.stage.through(linkPaymentsPostgres, r.database))
	default:
		env = append(env, "HOOKLEDGER_CONSUME_ADMIN="+admin,
			"HOOKLEDGER_KAFKA_BROKERS="+strings.Join(r.stage.brokers.bootstrap(linkWorkerKafka), ","),
			"HOOKLEDGER_DATABASE_URL="+r.stage.through(linkWorkerPostgres, r.database))
		if r.plan.Static {
			env = append(env, "HOOKLEDGER_CONSUME_INSTANCE_ID="+name)
		}
	}
	var crashes []Step
	for _, s := range r.plan.Crashes {
		if s.On == name {
			crashes = append(crashes, s)
		}
	}
	role := newRole(name, r.dir, []string{r.binary, "--config", r.config, command}, env, admin, crashes)
	role.fired = r.crashed
	role.complain = func(format string, args ...any) { r.violate("E1", format, args...) }
	return role
}

// command runs a command of the product to its end, past all proxies.
func (r *run) command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binary, append([]string{"--config", r.config}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), r.env()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitReady waits until the processes can work.
func (r *run) awaitReady(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return poll(ctx, func() error {
		var missing error
		for _, name := range names {
			if err := ready(ctx, r.roles[name].admin); err != nil {
				missing = errors.Join(missing, fmt.Errorf("%s: %w", name, err))
			}
		}
		return missing
	})
}

var probe = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func ready(ctx context.Context, admin string) error {
	status, body, err := get(ctx, "http://"+admin+"/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("readyz is %d: %s", status, body)
	}
	return err
}

func get(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := probe.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
