package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/cli/app"
	"hookledger/internal/testkit"
)

// as is the database URL of a connection that has the rights of role and no others.
func as(url, role string) string {
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	return url + sep + "options=-c%20role%3D" + role
}

// envAs is an environment in which commands have the rights of role.
func envAs(url, role string) []string {
	return []string{"HOOKLEDGER_DATABASE_URL=" + as(url, role)}
}

// execSQL runs statements as the owner of the database.
func execSQL(t *testing.T, url string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// scanSQL reads one value as the owner of the database.
func scanSQL[T any](t *testing.T, url, sql string, args ...any) T {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var v T
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestIncidents_AreListedAndAcknowledgedOnce(t *testing.T) {
	t.Parallel()
	url := testkit.LedgerURL(t)
	operator, reader := envAs(url, "hookledger_operator"), envAs(url, "hookledger_reader")
	none := hookledger(reader, "incidents", "list")
	none.want(t, app.ExitOK)
	if none.stdout != "no incidents\n" {
		t.Errorf("got %q", none.stdout)
	}
	execSQL(t, url,
		`insert into incidents (severity, kind, topic, partition, from_offset, to_offset, raised_at) values ('loss', 'expired', 'payments', 3, 10, 20, now())`,
		`insert into incidents (severity, kind, raised_at, detail) values ('warning', 'quarantine_surge', now(), jsonb_build_object('source', e'\x1b]0;owned\x07'))`,
		`insert into incidents (severity, kind, raised_at) values ('info', 'rewind', now())`)

	list := jsonOf(t, hookledger(reader, "incidents", "list", "--json"), "incidents-list")["incidents"].([]any)
	if len(list) != 3 {
		t.Fatalf("got %d incidents, want 3", len(list))
	}
	loss := list[2].(map[string]any)
	for key, want := range map[string]any{"incident_id": 1.0, "severity": "loss", "kind": "expired", "topic": "payments", "partition": 3.0,
		"from_offset": 10.0, "to_offset": 20.0, "acknowledged_at": nil} {
		if got, ok := loss[key]; !ok || got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	if raised, ok := loss["raised_at"].(string); !ok || !strings.HasSuffix(raised, "Z") {
		t.Errorf("raised_at: got %v, want a time in UTC", loss["raised_at"])
	}
	table := hookledger(reader, "incidents", "list")
	if strings.ContainsAny(table.stdout, "\x1b\x07") || !strings.Contains(table.stdout, "payments/3@10…20") {
		t.Errorf("got %q", table.stdout)
	}

	hookledger(operator, "incidents", "ack", "1").want(t, app.ExitUsage, "--reason is needed")
	hookledger(operator, "incidents", "ack", "one", "--reason", "x").want(t, app.ExitUsage, "no incident ID")
	hookledger(operator, "incidents", "ack", "1", "99", "--reason", "x").want(t, app.ExitFailed, "incident 99", "incidents list")
	hookledger(reader, "incidents", "ack", "1", "--reason", "x").want(t, app.ExitFailed, "hookledger_operator")
	dry := jsonOf(t, hookledger(operator, "incidents", "ack", "1", "2", "--dry-run", "--json"), "incidents-ack")
	if fmt.Sprint(dry["acknowledged"]) != "[1 2]" || dry["dry_run"] != true {
		t.Errorf("dry run: got %v", dry)
	}
	if n := scanSQL[int](t, url, `select count(*) from incidents where acknowledged_at is not null`); n != 0 {
		t.Errorf("%d acknowledged by what should have changed nothing", n)
	}
	hookledger(operator, "incidents", "ack", "1", "--reason", "restored from the provider", "--by", "alice").want(t, app.ExitOK)
	second := jsonOf(t, hookledger(operator, "incidents", "ack", "1", "2", "--reason", "other", "--by", "bob", "--json"), "incidents-ack")
	if fmt.Sprint(second["acknowledged"], second["acknowledged_before"]) != "[2] [1]" {
		t.Errorf("got %v", second)
	}
	if got := scanSQL[string](t, url, `select acknowledged_by || ': ' || acknowledged_reason from incidents where incident_id = 1`); got != "alice: restored from the provider" {
		t.Errorf("got %q: the first acknowledgement stands", got)
	}
	open := jsonOf(t, hookledger(reader, "incidents", "list", "--open", "--json"), "incidents-list")["incidents"].([]any)
	if len(open) != 1 || open[0].(map[string]any)["kind"] != "rewind" {
		t.Errorf("open: got %v", open)
	}
}

// A worker that waits at a topic of the same name goes on when somebody says that it is
// meant to be.
func TestIncidentsAck_LetsAWaitingPartitionGoOn(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	in.run(t, "topics", "apply").want(t, app.ExitOK)
	ingest, worker := in.start(t, "ingest", in.ingestAdmin), in.start(t, "consume", in.worker)
	in.run(t, "send", "--count", "30", "--seed", "1").want(t, app.ExitOK)
	applied := func(n int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if got := scanSQL[int](t, in.database, `select count(*) from processed_events`); got != n {
				return fmt.Errorf("%d events on record, want %d", got, n)
			}
			return nil
		})
	}
	applied(30)
	worker.Stop(time.Minute)
	ingest.Stop(time.Minute)

	cl, err := kgo.NewClient(kgo.SeedBrokers(in.brokers(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), "payments"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error {
		if r := in.run(t, "topics", "apply"); r.code != app.ExitOK {
			return fmt.Errorf("topics apply: %s", r.stderr)
		}
		return nil
	})
	in.start(t, "ingest", in.ingestAdmin)
	in.start(t, "consume", in.worker)
	in.run(t, "send", "--count", "30", "--seed", "2").want(t, app.ExitOK)
	testkit.Eventually(t, time.Minute, func() error {
		if n := scanSQL[int](t, in.database, `select count(*) from incidents where kind = 'topic_recreated'`); n != 3 {
			return fmt.Errorf("%d partitions wait, want 3", n)
		}
		return nil
	})
	if n := scanSQL[int](t, in.database, `select count(*) from processed_events`); n != 30 {
		t.Errorf("%d events on record before the acknowledgement, want 30", n)
	}
	ids := strings.Fields(scanSQL[string](t, in.database, `select string_agg(incident_id::text, ' ') from incidents where kind = 'topic_recreated'`))
	in.run(t, append([]string{"incidents", "ack", "--reason", "meant to be"}, ids...)...).want(t, app.ExitOK)
	applied(60)
}

// brokers are those of the configuration.
func (in installation) brokers(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(in.file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "brokers: [")
	list, _, _ := strings.Cut(rest, "]")
	return strings.Split(list, ", ")
}
