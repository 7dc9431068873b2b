package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/cli/app"
	"hookledger/schema"
)

// evil is what a provider may write into any text: it sets a terminal's title, clears it,
// rings, turns the writing around and starts a line.
const evil = "\x1b]0;owned\x07\x1b[2J\u202e\r\u009b31m"

// hostile is an installation whose every table, and whose topic, holds evil texts.
type hostile struct {
	installation
	plan, events string
}

func newHostile(t *testing.T) hostile {
	t.Helper()
	h := hostile{installation: install(t)}
	h.run(t, "migrate", "up").want(t, app.ExitOK)
	h.run(t, "topics", "apply").want(t, app.ExitOK)
	cl, err := kgo.NewClient(kgo.SeedBrokers(h.brokers(t)...), kgo.DefaultProduceTopic("payments"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	body := []byte(`{"id":"evt_1","type":"payment_intent.succeeded","note":"` + evil + `"}`)
	e := schema.Event{Source: "stripe", ID: "evt_1", Type: "paid" + evil, ReceivedAt: time.Now(), DeliveryID: evil, Scheme: evil, KeyID: evil,
		SignatureHeaders: []schema.Header{{Key: "x-" + evil, Value: []byte(evil + "\xff")}}, ContentType: evil, Body: body, BodySHA256: sha256.Sum256(body)}
	r := &kgo.Record{Key: e.RecordKey(), Value: body, Timestamp: e.ReceivedAt}
	for _, one := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: one.Key, Value: one.Value})
	}
	if err := cl.ProduceSync(t.Context(), r, &kgo.Record{Key: []byte(evil), Value: []byte(evil + "\xff")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	h.plan = filepath.Join(h.dir, "p"+evil+".plan")
	h.events = filepath.Join(h.dir, "e.jsonl")
	if err := os.WriteFile(h.events, []byte(evil+"\n"+`{"body":{},"headers":{"`+`\u001b`+`":1}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.fill(t, e, hex.EncodeToString(e.BodySHA256[:]))
	hookledger(nil, "replay", "plan", "--config", h.file, "--out", h.plan).want(t, app.ExitOK)
	return h
}

// fill puts evil into every text of every table.
func (h hostile) fill(t *testing.T, e schema.Event, hash string) {
	t.Helper()
	key := e.Key()
	event := hex.EncodeToString(key[:])
	q := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	x := q(evil)
	execSQL(t, h.database,
		fmt.Sprintf(`insert into processed_events (generation, processed_at, topic, partition, event_key, source, event_id, type, outcome, meaning, "offset", received_at, body_sha256)
			values ((select open_generation from event_ring), now(), 'payments', 0, '%s', 'stripe', 'evt_1', %s, 'applied', gen_random_uuid(), 0, now(), decode('%s', 'hex'))`, event, x, hash),
		fmt.Sprintf(`insert into ledger_entries (applied_at, effect_key, event_key, line, source, event_id, account_id, contra, currency, amount, rule, movement_id)
			values (now(), gen_random_uuid(), '%s', 0, 'stripe', 'evt_1', %s, %[2]s, %[2]s, 5, %[2]s, %[2]s)`, event, x),
		fmt.Sprintf(`insert into accounts (account_id, currency, balance, entry_count, updated_at) values (%s, %[1]s, 5, 1, now())`, x),
		fmt.Sprintf(`insert into payment_states (rank, occurred_at, updated_at, event_key, source, object, status, event_id) values (1, now(), now(), '%s', 'stripe', %s, %[2]s, 'evt_1')`, event, x),
		fmt.Sprintf(`insert into quarantined_events ("offset", record_time, quarantined_at, topic_id, partition, source, event_id, topic, reason, detail, record_key, headers, body)
			values (1, now(), now(), gen_random_uuid(), 0, %s, %[1]s, %[1]s, %[1]s, %[1]s, convert_to(%[1]s, 'UTF8'), jsonb_build_array(jsonb_build_object('key', %[1]s, 'value', %[1]s)), convert_to(%[1]s, 'UTF8') || '\xff'::bytea)`, x),
		fmt.Sprintf(`insert into event_conflicts ("offset", first_offset, seen_at, received_at, event_key, meaning, first_meaning, topic_id, partition, first_partition, body_sha256, first_body_sha256, source, event_id, type, topic, headers, body)
			values (1, 0, now(), now(), '%s', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, 0, 'x', 'y', 'stripe', 'evt_1', %s, %[2]s, jsonb_build_array(jsonb_build_object('key', %[2]s, 'value', %[2]s)), convert_to(%[2]s, 'UTF8'))`, event, x),
		fmt.Sprintf(`insert into incidents (raised_at, severity, kind, topic, detail) values (now(), 'warning', %s, %[1]s, jsonb_build_object(%[1]s, %[1]s))`, x),
		fmt.Sprintf(`insert into amendments (amended_at, amendment_id, event_key, kind, source, event_id, amended_by, reason) values (now(), gen_random_uuid(), '%s', 'reverse', 'stripe', 'evt_1', %s, %[2]s)`, event, x),
		fmt.Sprintf(`insert into replays (attempt, started_at, beat_at, finished_at, kind, state, cluster_id, topic, topic_id, plan_hash, requested_by, reason, detail, plan, partition, next_offset)
			values (1, now(), now(), now(), 'run', 'done', %s, %[1]s, gen_random_uuid(), %[1]s, %[1]s, %[1]s, %[1]s, jsonb_build_object('would', jsonb_build_object(%[1]s, 1)), 0, 1)`, x),
		fmt.Sprintf(`insert into replay_moves (replay_id, currency, amount) values (1, %s, 5)`, x),
		fmt.Sprintf(`insert into payments (amount, created_at, payment_id, meaning, client, from_account, to_account, currency, reference, status, idempotency_key)
			select 5, now() + n * interval '1 second', gen_random_uuid(), '00000000-0000-0000-0000-000000000001', %s, %[1]s, %[1]s || 'b', 'EUR', %[1]s, 'succeeded', %[1]s || n from generate_series(1, 2) n`, x),
		fmt.Sprintf(`insert into consumer_progress (from_offset, next_offset, updated_at, topic_id, partition, leader_epoch, cluster_id, topic) values (0, 1, now(), gen_random_uuid(), 0, 0, %s, %[1]s)`, x),
	)
}

// how a command is tried: its arguments, and the exit codes that are right for them.
type trial struct {
	args  []string
	codes []int
	// raw says that the answer for people is bytes of others, by intent, and not for a
	// terminal.
	raw bool
}

func (h hostile) trials() map[string]trial {
	found := []int{app.ExitOK, app.ExitFailed, app.ExitFound}
	return map[string]trial{
		"accounts duplicates":        {},
		"accounts list":              {},
		"accounts show":              {args: []string{evil}},
		"config check":               {},
		"config reference":           {},
		"config show":                {},
		"doctor":                     {codes: found},
		"doctor generations":         {},
		"doctor generations forget":  {args: []string{"--dry-run"}},
		"doctor generations rotate":  {args: []string{"--dry-run"}},
		"events amend":               {args: []string{"evt_1", "--reverse", "--dry-run"}, codes: found},
		"events get":                 {args: []string{"evt_1"}},
		"events import":              {args: []string{h.events, "--source", "stripe", "--dry-run"}, codes: []int{app.ExitFailed}},
		"events list":                {},
		"events show":                {args: []string{"evt_1"}},
		"incidents ack":              {args: []string{"1", "--dry-run"}},
		"incidents list":             {},
		"lag":                        {},
		"migrate down":               {args: []string{"--dry-run"}},
		"migrate status":             {},
		"migrate up":                 {args: []string{"--dry-run"}},
		"quarantine discard":         {args: []string{"--all", "--dry-run"}, codes: found},
		"quarantine list":            {},
		"quarantine retry":           {args: []string{"--all", "--dry-run"}, codes: found},
		"quarantine show":            {args: []string{"1"}},
		"replay list":                {},
		"replay plan":                {},
		"replay reset":               {args: []string{"--to-earliest", "--dry-run"}},
		"replay run":                 {args: []string{h.plan, "--dry-run"}, codes: found},
		"replay show":                {args: []string{"1"}},
		"send":                       {args: []string{"--dry-run", "--count", "1"}},
		"sources check":              {args: []string{"--vectors", h.events}, codes: found, raw: true},
		"sources events":             {args: []string{"stripe"}},
		"sources list":               {},
		"sources new":                {args: []string{"stripe", "--name", "other"}},
		"sources providers":          {},
		"sources secrets":            {args: []string{"stripe"}, codes: found},
		"sources show":               {args: []string{"stripe"}},
		"topics apply":               {args: []string{"--dry-run"}},
		"topics check":               {codes: found},
		"verify":                     {codes: found},
		"version":                    {},
		"quarantine show (conflict)": {args: []string{"c1"}},
	}
}

// running are commands that answer with a log, or with an exit code alone.
var running = []string{"dev", "ingest", "consume", "payments", "ready"}

// Every command: what is evil in any table or in the topic never steers the terminal;
// --json is one object and nothing else; and what writes can be asked what it would do.
func TestEveryCommand_AnswersSafelyAndInJSON(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	trials := h.trials()
	for _, c := range commands(newRoot(&app.App{})) {
		name := strings.TrimPrefix(c.CommandPath(), "hookledger ")
		_, tried := trials[name]
		if group := c.HasSubCommands() && !tried; c.Runnable() && !group && !tried && !slices.Contains(running, name) && c.HasParent() {
			t.Errorf("`hookledger %s` is not tried here", name)
		}
	}
	for name, c := range trials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, _, _ := strings.Cut(name, " (")
			args := append(append(strings.Fields(command), c.args...), "--config", h.file)
			if c.codes == nil {
				c.codes = []int{app.ExitOK}
			}
			human := hookledger(nil, args...)
			if !slices.Contains(c.codes, human.code) {
				t.Errorf("exit code %d, want one of %v: %s", human.code, c.codes, human.stderr)
			}
			if !c.raw && human.stdout == "" {
				t.Error("it says nothing")
			}
			wantHarmless(t, "stdout", human.stdout)
			wantHarmless(t, "stderr", human.stderr)

			r := hookledger(nil, append(args, "--json")...)
			if r.code != human.code {
				t.Errorf("with --json: exit code %d, want %d", r.code, human.code)
			}
			if c.raw {
				return
			}
			jsonOf(t, r, strings.ReplaceAll(command, " ", "-"))
			if strings.Count(r.stdout, "\n") != 1 || !strings.HasSuffix(r.stdout, "\n") {
				t.Errorf("with --json: got %d lines, want one", strings.Count(r.stdout, "\n"))
			}
			wantHarmless(t, "JSON", r.stdout)
			wantHarmless(t, "stderr beside JSON", r.stderr)
		})
	}
}

// wantHarmless fails if anything in s could steer a terminal.
func wantHarmless(t *testing.T, what, s string) {
	t.Helper()
	for i, r := range s {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\ufffd') {
			t.Errorf("%s: %q at byte %d of %.200q", what, r, i, s[max(i-60, 0):])
			return
		}
	}
}

// What changes anything has --dry-run; the others have none.
func TestEveryCommand_ThatWritesHasADryRun(t *testing.T) {
	t.Parallel()
	writes := []string{
		"doctor generations forget", "doctor generations rotate", "events amend", "events import", "incidents ack", "migrate down", "migrate up",
		"quarantine discard", "quarantine retry", "replay reset", "replay run", "send", "topics apply",
	}
	for _, c := range commands(newRoot(&app.App{})) {
		name := strings.TrimPrefix(c.CommandPath(), "hookledger ")
		if got, want := c.Flags().Lookup("dry-run") != nil, slices.Contains(writes, name); got != want {
			t.Errorf("`hookledger %s`: dry-run is %t, want %t: does it write?", name, got, want)
		}
		if c.InheritedFlags().Lookup("json") == nil && c.HasParent() {
			t.Errorf("`hookledger %s` has no --json", name)
		}
	}
}

// A look that no index serves gives up, with what to do, and holds nothing up.
func TestLooks_WithoutAnIndexGiveUp(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.apply("user_id", payment("e1", "alice", 5))
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Whoever reads waits for this; a slow disk does the same.
	if _, err := tx.Exec(t.Context(), `lock table ledger_entries, processed_events in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	reader := s.env("hookledger_reader", "user_id")
	hookledger(reader, "events", "list", "--patience", "200ms").want(t, app.ExitFailed, "longer than 200ms", "hookledger events show")
	hookledger(reader, "accounts", "show", "alice", "--patience", "200ms").want(t, app.ExitFailed, "longer than 200ms", "hookledger accounts list")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	hookledger(reader, "events", "list").want(t, app.ExitOK)
	hookledger(reader, "accounts", "show", "alice").want(t, app.ExitOK)
	hookledger(reader, "events", "list", "--patience", "0s").want(t, app.ExitUsage, "--patience is 0s")
}
