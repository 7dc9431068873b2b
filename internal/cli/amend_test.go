package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

// topic gives the shop a topic that holds what was applied, in kfake, and returns what
// commands need to find it.
func (s *shop) topic() (env string, cl *kgo.Client) {
	s.t.Helper()
	addrs := testkit.Kfake(s.t).ListenAddrs()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	if _, err := kadm.NewClient(cl).CreateTopic(s.t.Context(), 1, 1, nil, shopPosition.Topic); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range s.records {
		headers := make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
		}
		k := &kgo.Record{Topic: shopPosition.Topic, Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Timestamp}
		if err := cl.ProduceSync(s.t.Context(), k).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
	return "HOOKLEDGER_KAFKA_BROKERS=" + strings.Join(addrs, ","), cl
}

// nested is a payment whose account is told twice, in two places.
func nested(id, user, owner string, amount int) string {
	return strings.Replace(payment(id, user, amount), `"type"`, `"owner":"`+owner+`","type"`, 1)
}

func TestEvents_OneLifeFromItsRecordToItsAmendments(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const wrong, right = "user_id", "owner"
	evil := `{"id":"evil","type":"paid","user_id":7,"note":"` + "\x1b]0;owned\x07" + `"}`
	s.apply(wrong, nested("e1", "alice", "bob", 100), nested("e1", "alice", "bob", 150), nested("e2", "alice", "carol", 20), evil)
	kafka, cl := s.topic()
	operator, reader := append(s.env("hookledger_operator", right), kafka), append(s.env("hookledger_reader", right), kafka)

	r := hookledger(reader, "events", "show", "e1", "--json")
	r.want(t, app.ExitOK)
	life := jsonOf(t, r, "events-show")
	for _, key := range []string{"event", "records", "outcome", "entries", "conflicts"} {
		if life[key] == nil {
			t.Errorf("events show: no %s in %v", key, life)
		}
	}
	records := life["records"].([]any)
	first := records[0].(map[string]any)
	if life["outcome"] != "applied" || len(records) != 2 || first["of"] != "event" || first["offset"] != 0.0 || first["time"] == nil ||
		!strings.Contains(fmt.Sprint(first["headers"]), "hl_received_at") || records[1].(map[string]any)["of"] != "conflict" {
		t.Errorf("events show: got %v", life)
	}
	// Without Kafka the rest is told.
	r = hookledger(append(s.env("hookledger_reader", right), "HOOKLEDGER_KAFKA_BROKERS=127.0.0.1:1"), "events", "show", "e1", "--json")
	r.want(t, app.ExitOK)
	alone := jsonOf(t, r, "events-show")
	if one := alone["records"].([]any)[0].(map[string]any); one["missing"] == nil || alone["outcome"] != "applied" {
		t.Errorf("without Kafka: got %v", alone)
	}
	hookledger(reader, "events", "show", "nope").want(t, app.ExitFailed, "not on record")

	body := hookledger(reader, "events", "get", "e1", "--body")
	body.want(t, app.ExitOK)
	if body.stdout != nested("e1", "alice", "bob", 100) {
		t.Errorf("events get --body: got %q", body.stdout)
	}
	if got := hookledger(reader, "events", "get", "evil", "--body"); got.stdout != evil {
		t.Errorf("from quarantine: got %q", got.stdout)
	}
	for _, args := range [][]string{{"get", "evil"}, {"show", "evil"}} {
		r := hookledger(reader, append([]string{"events"}, args...)...)
		r.want(t, app.ExitOK)
		if strings.ContainsAny(r.stdout, "\x1b\x07") {
			t.Errorf("%v steers the terminal: %q", args, r.stdout)
		}
	}
	got := jsonOf(t, hookledger(reader, "events", "get", "e2", "--json"), "events-get")
	if got["offset"] != 2.0 || got["body_text"] != nested("e2", "alice", "carol", 20) {
		t.Errorf("events get: got %v", got)
	}

	// The account was the wrong field: look, then mend, once.
	hookledger(operator, "events", "amend", "e1").want(t, app.ExitUsage, "--reason is needed")
	hookledger(reader, "events", "amend", "e1", "--reason", "x").want(t, app.ExitFailed, "hookledger_operator")
	dry := jsonOf(t, hookledger(operator, "events", "amend", "e1", "--dry-run", "--json"), "events-amend")
	if want := "[map[account_id:alice amount:-100 balance:20 currency:EUR] map[account_id:bob amount:100 balance:100 currency:EUR]]"; fmt.Sprint(dry["moves"]) != want || dry["amendment_id"] != nil {
		t.Errorf("dry run: got %v, want moves %s", dry, want)
	}
	if s.balance("alice") != 120 || s.balance("bob") != 0 {
		t.Error("a dry run moved money")
	}
	done := jsonOf(t, hookledger(operator, "events", "amend", "e1", "--reason", "wrong field", "--by", "dave", "--json"), "events-amend")
	if fmt.Sprint(done["moves"]) != fmt.Sprint(dry["moves"]) || done["amendment_id"] == nil {
		t.Errorf("got %v", done)
	}
	again := hookledger(operator, "events", "amend", "e1", "--reason", "wrong field")
	again.want(t, app.ExitOK)
	if !strings.Contains(again.stdout, "nothing to mend") {
		t.Errorf("again: got %q", again.stdout)
	}
	// The provider says that the second body is right, so the conflict is none any more.
	hookledger(operator, "events", "amend", "e2", "--conflict", "c1", "--reason", "x").want(t, app.ExitUsage, "another event")
	dry = jsonOf(t, hookledger(operator, "events", "amend", "e1", "--conflict", "c1", "--dry-run", "--json"), "events-amend")
	if n := len(jsonOf(t, hookledger(reader, "quarantine", "list", "--conflicts", "--json"), "quarantine-list")["conflicts"].([]any)); n != 1 || dry["conflict_resolved"] != nil {
		t.Errorf("a dry run leaves %d conflicts, want 1, and says %v is closed", n, dry["conflict_resolved"])
	}
	done = jsonOf(t, hookledger(operator, "events", "amend", "e1", "--conflict", "c1", "--reason", "confirmed", "--json"), "events-amend")
	if n := len(jsonOf(t, hookledger(reader, "quarantine", "list", "--conflicts", "--json"), "quarantine-list")["conflicts"].([]any)); n != 0 || done["conflict_resolved"] != "c1" {
		t.Errorf("%d conflicts are open, want none, and %v is closed, want c1", n, done["conflict_resolved"])
	}
	again = hookledger(operator, "events", "amend", "e1", "--conflict", "c1", "--reason", "confirmed")
	again.want(t, app.ExitOK)
	if !strings.Contains(again.stdout, "nothing to mend") || !strings.Contains(again.stdout, "conflict c1 is closed") {
		t.Errorf("again: got %q", again.stdout)
	}
	if a, b := s.balance("alice"), s.balance("bob"); a != 20 || b != 150 {
		t.Errorf("balances: got %d and %d, want 20 and 150", a, b)
	}
	// Taken back; also when the topic holds the record no longer.
	offsets := make(kadm.Offsets)
	offsets.AddOffset(shopPosition.Topic, 0, 4, -1)
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	hookledger(operator, "events", "amend", "e2", "--reason", "x").want(t, app.ExitFailed, "--reverse")
	hookledger(operator, "events", "amend", "e2", "--reverse", "--reason", "a test").want(t, app.ExitOK)
	if a, b := s.balance("alice"), s.balance("bob"); a != 0 || b != 150 {
		t.Errorf("balances: got %d and %d, want 0 and 150", a, b)
	}
	hookledger(operator, "events", "amend", "evil", "--reason", "x").want(t, app.ExitFailed)

	life = jsonOf(t, hookledger(reader, "events", "show", "e1", "--json"), "events-show")
	amended := life["amendments"].([]any)
	if len(amended) != 2 || amended[0].(map[string]any)["reason"] != "wrong field" || amended[0].(map[string]any)["amended_by"] != "dave" || len(life["entries"].([]any)) != 5 {
		t.Errorf("events show: got %v", life)
	}
	if r := hookledger(reader, "events", "show", "e1"); !strings.Contains(r.stdout, "wrong field") || !strings.Contains(r.stdout, "amendment ") {
		t.Errorf("got %q", r.stdout)
	}
}

func TestEventsList_SearchesByAccountObjectAndTime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.apply("user_id", payment("e1", "alice", 1), payment("e2", "bob", 2), payment("e3", "alice", 3))
	execSQL(t, s.url, `update processed_events set received_at = '2026-01-01T00:00:00Z' where event_id = 'e1'`)
	reader := s.env("hookledger_reader", "user_id")
	for args, want := range map[string]string{
		"--account alice": "[e1 e3]",
		"--account alice --since 2026-02-01T00:00:00Z": "[e3]",
		"--until 2026-02-01T00:00:00Z":                 "[e1]",
		"--object p_e2":                                "[e2]",
		"--type paid --outcome applied":                "[e1 e2 e3]",
		"--type refunded":                              "[]",
		"--account nobody":                             "[]",
	} {
		list := jsonOf(t, hookledger(reader, append([]string{"events", "list", "--json"}, strings.Fields(args)...)...), "events-list")
		got := []string{}
		for _, e := range list["events"].([]any) {
			got = append(got, e.(map[string]any)["event_id"].(string))
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", args, got, want)
		}
	}
	hookledger(reader, "events", "list", "--since", "yesterday").want(t, app.ExitUsage, "--since is an RFC 3339 time")
}

func TestAccountsShow_RunningBalanceAndAsItWas(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.apply("user_id", payment("e1", "alice", 1), payment("e2", "bob", 2), payment("e3", "alice", 30))
	execSQL(t, s.url, `update ledger_entries set applied_at = '2026-01-01T00:00:00Z' where event_id = 'e1'`)
	reader := s.env("hookledger_reader", "user_id")
	show := func(args ...string) (accounts, entries []any) {
		t.Helper()
		v := jsonOf(t, hookledger(reader, append([]string{"accounts", "show", "alice", "--json"}, args...)...), "accounts-show")
		return v["accounts"].([]any), v["entries"].([]any)
	}
	accounts, entries := show()
	first := accounts[0].(map[string]any)
	if first["balance"] != 31.0 || first["entry_count"] != 2.0 || len(entries) != 2 ||
		entries[0].(map[string]any)["balance"] != 31.0 || entries[1].(map[string]any)["balance"] != 1.0 {
		t.Errorf("got %v, %v", accounts, entries)
	}
	if _, entries = show("--limit", "1"); len(entries) != 1 || entries[0].(map[string]any)["balance"] != 31.0 {
		t.Errorf("the latest: got %v", entries)
	}
	if accounts, entries = show("--at", "2026-02-01T00:00:00Z"); accounts[0].(map[string]any)["balance"] != 1.0 || len(entries) != 1 {
		t.Errorf("as it was: got %v, %v", accounts, entries)
	}
	r := hookledger(reader, "accounts", "show", "alice")
	if !strings.Contains(r.stdout, "0.31 EUR") || !strings.Contains(r.stdout, "BALANCE") {
		t.Errorf("got %q", r.stdout)
	}
	hookledger(reader, "accounts", "show", "alice", "--at", "2025-01-01T00:00:00Z").want(t, app.ExitFailed, "had no entries")
	hookledger(reader, "accounts", "show", "alice", "--at", "noon").want(t, app.ExitUsage, "--at is an RFC 3339 time")
}
