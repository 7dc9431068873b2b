package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/ingest/payments"
	"hookledger/internal/broker"
)

const (
	// databasePatience bounds all questions to Postgres.
	databasePatience = 20 * time.Second
	oldestPostgres   = 150000
	// clockTolerance is far below the tolerance of signatures (5 minutes), and far above
	// what NTP leaves.
	clockTolerance = 2 * time.Second
)

// errEnough ends an examination whose finding says why it cannot go on.
var errEnough = errors.New("it was said why")

func (e *examination) postgres(ctx context.Context, id identity) {
	if e.Connect == nil {
		e.add(Note, "database", "database.url is not set", "ingest needs none; consume and every command that reads the books do", "set database.url where they run")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	if e.Config.Database.InsecurePlaintext {
		e.add(Warning, "database_tls", "database.insecure_plaintext is true", "whoever is on the network could read the books, or be the database", "use sslmode=verify-full and remove it")
	}
	conn, err := e.Connect(ctx)
	if err != nil {
		e.add(Problem, "database", err.Error(), "events wait in the topic until Postgres is back", "start it, or correct database.url")
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, examine := range []func(context.Context, *pgx.Conn) error{e.server, e.clock, e.pooler, e.rights} {
		err := examine(ctx, conn)
		if errors.Is(err, errEnough) {
			return
		}
		if err != nil {
			e.add(Problem, "database", err.Error(), "it could not be examined", "look at Postgres and its log")
			return
		}
	}
	if err := e.CheckSchema(ctx); err != nil {
		e.add(Problem, "schema", err.Error(), "roles refuse to start on it", "run what it says, with the release that is to run")
		return
	}
	e.ok("schema", "as this program needs it")
	if err := e.memory(ctx, conn); err != nil {
		e.add(Problem, "memory_generations", err.Error(), "whether the memory of events is tended is not known", "give this user SELECT on event_ring")
	}
	if err := e.positions(ctx, conn, id); err != nil {
		e.add(Problem, "positions", err.Error(), "whether the database belongs to this topic is not known", "give this user SELECT on consumer_progress")
	}
}

// server looks at what a commit is worth.
func (e *examination) server(ctx context.Context, conn *pgx.Conn) error {
	var version int
	var standby bool
	s := map[string]string{}
	err := conn.QueryRow(ctx, "select current_setting('server_version_num')::int, pg_is_in_recovery()", pgx.QueryExecModeExec).Scan(&version, &standby)
	if err != nil {
		return fmt.Errorf("read version of Postgres: %w", err)
	}
	for _, name := range []string{"synchronous_commit", "synchronous_standby_names", "fsync", "full_page_writes", "server_version"} {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", pgx.QueryExecModeExec, name).Scan(&value); err != nil {
			return fmt.Errorf("read setting %s: %w", name, err)
		}
		s[name] = value
	}
	e.unless(version >= oldestPostgres, Problem, "postgres_version", "Postgres "+s["server_version"], "15 is the oldest that is tested", "upgrade it")
	e.unless(!standby, Problem, "postgres_primary", map[bool]string{true: "a standby, which cannot be written to", false: "the primary"}[standby],
		"nothing can be applied there", "name the primary in database.url, or add target_session_attrs=read-write")
	e.unless(s["fsync"] == "on" && s["full_page_writes"] == "on", e.needed(), "postgres_disk", fmt.Sprintf("fsync %s, full_page_writes %s", s["fsync"], s["full_page_writes"]),
		"a crash of the machine may leave books that cannot be read at all", "set both to on")
	e.unless(s["synchronous_commit"] != "off", Warning, "postgres_synchronous_commit", "synchronous_commit "+s["synchronous_commit"],
		"the worker turns it on for its own commits; what operators write could be lost in a crash", "set synchronous_commit = on")
	verdict := Warning
	if e.Config.Kafka.Durability == broker.Single {
		verdict = Note
	}
	if s["synchronous_standby_names"] == "" {
		e.add(verdict, "postgres_standby", "synchronous_standby_names is empty", "a failover to another machine loses the latest commits; workers heal them from the topic while it holds them, but what operators wrote is lost",
			"set synchronous_standby_names to a standby")
	} else if err := e.standby(ctx, conn, s["synchronous_standby_names"]); err != nil {
		return err
	}
	if p := e.Config.Payments; len(p.Tokens) > 0 && p.Durability == payments.Replicated && s["synchronous_standby_names"] == "" {
		e.add(Problem, "payments_standby", "payments.durability is replicated and Postgres has no synchronous standby",
			"payments are not in the topic, so nothing brings back what a failover loses; the role refuses to start", "set synchronous_standby_names, or payments.durability: single")
	}
	return nil
}

// standby looks whether one is there that commits wait for. Who may not see that sees
// standbys without their state (Postgres 15).
func (e *examination) standby(ctx context.Context, conn *pgx.Conn, names string) error {
	var synchronous, hidden int
	err := conn.QueryRow(ctx, "select count(*) filter (where sync_state in ('sync', 'quorum')), count(*) filter (where sync_state is null) from pg_stat_replication",
		pgx.QueryExecModeExec).Scan(&synchronous, &hidden)
	if err != nil {
		return fmt.Errorf("read standbys: %w", err)
	}
	switch {
	case synchronous > 0:
		e.ok("postgres_standby", fmt.Sprintf("synchronous_standby_names %s, %d connected", names, synchronous))
	case hidden > 0:
		e.add(Note, "postgres_standby", "this user may not see which standbys commits wait for", "it could not be examined", "grant pg_read_all_stats to this user, or ask as another")
	default:
		e.add(Problem, "postgres_standby", "synchronous_standby_names "+names+", and none of them is connected",
			"every commit waits until one is: nothing is applied, and payments are answered 503", "start the standby, or take its name out of synchronous_standby_names")
	}
	return nil
}

// clock compares this machine's clock with the database's.
func (e *examination) clock(ctx context.Context, conn *pgx.Conn) error {
	var theirs time.Time
	before := e.Now()
	if err := conn.QueryRow(ctx, "select clock_timestamp()", pgx.QueryExecModeExec).Scan(&theirs); err != nil {
		return fmt.Errorf("read clock of Postgres: %w", err)
	}
	after := e.Now()
	difference := theirs.Sub(before.Add(after.Sub(before) / 2)).Abs()
	e.unless(difference <= clockTolerance+after.Sub(before)/2, Warning, "clock", fmt.Sprintf("differs from the database's by %s", difference.Round(time.Millisecond)),
		"times of signing are compared with this clock, and a wrong one refuses every delivery", "run an NTP client on both machines")
	return nil
}

// pooler finds out whether connections are to Postgres itself. Two connections of ours
// that are served by one process share it transaction by transaction.
func (e *examination) pooler(ctx context.Context, conn *pgx.Conn) error {
	const ask = "select pg_backend_pid()"
	var first, second int
	if err := conn.QueryRow(ctx, ask, pgx.QueryExecModeExec).Scan(&first); err != nil {
		return fmt.Errorf("ask which process serves us: %w", err)
	}
	other, err := e.Connect(ctx)
	if err != nil {
		e.add(Warning, "database_connections", err.Error(), "a worker needs several connections", "raise max_connections, or the pooler's limit")
		return nil
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	if err := other.QueryRow(ctx, ask, pgx.QueryExecModeExec).Scan(&second); err != nil {
		return fmt.Errorf("ask which process serves us: %w", err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		e.add(Problem, "database_pooler", err.Error(), "the books are written in transactions, which this pooler does not let through", "set its pool_mode to transaction or session")
		return errEnough
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	e.unless(first != second, Note, "database_pooler", map[bool]string{true: "each connection is its own", false: "a pooler that shares connections by transaction"}[first != second],
		"roles work through it, but migrations wait for each other by a lock of their connection, which it does not keep", "run `hookledger migrate up` on a direct connection")
	return nil
}

// rights looks at what this user may do, and may not be allowed to.
func (e *examination) rights(ctx context.Context, conn *pgx.Conn) error {
	var user string
	var super, there bool
	err := conn.QueryRow(ctx, "select current_user, coalesce((select rolsuper from pg_roles where rolname = current_user), false), to_regclass('ledger_entries') is not null",
		pgx.QueryExecModeExec).Scan(&user, &super, &there)
	if err != nil {
		return fmt.Errorf("read rights: %w", err)
	}
	if !there {
		return nil // the schema is told of elsewhere
	}
	verdict := Warning
	if e.Config.Kafka.Durability == broker.Single {
		verdict = Note
	}
	var tooMany, missing []string
	for _, want := range []struct {
		table, right string
		may          bool
	}{
		{"ledger_entries", "insert", true}, {"ledger_entries", "update", false}, {"ledger_entries", "delete", false}, {"ledger_entries", "truncate", false},
		{"processed_events", "insert", true}, {"accounts", "update", true}, {"consumer_progress", "update", true}, {"incidents", "insert", true}, {"quarantined_events", "insert", true},
		{"hookledger_schema", "select", true},
	} {
		var may bool
		if err := conn.QueryRow(ctx, "select has_table_privilege($1::text, $2::text)", pgx.QueryExecModeExec, want.table, want.right).Scan(&may); err != nil {
			return fmt.Errorf("read right to %s %s: %w", want.right, want.table, err)
		}
		switch {
		case want.may && !may:
			missing = append(missing, want.right+" "+want.table)
		case !want.may && may:
			tooMany = append(tooMany, want.right+" "+want.table)
		}
	}
	if super {
		tooMany = []string{"everything, as a superuser"}
	}
	e.unless(len(tooMany) == 0, verdict, "role_rights", fmt.Sprintf("user %s may %s", user, or(strings.Join(tooMany, ", "), "add entries and not change them")),
		"a mistake or an intruder could rewrite the books", "use a user of its own for each role: deploy/ACLS.md")
	if len(missing) > 0 {
		e.add(Warning, "role_rights", fmt.Sprintf("user %s may not %s", user, strings.Join(missing, ", ")), "a worker or an operator could not work with it; for reading it is as it should be",
			"grant hookledger_worker or hookledger_operator to it: deploy/ACLS.md")
	}
	return nil
}

// positions holds the database against the topic.
func (e *examination) positions(ctx context.Context, conn *pgx.Conn, id identity) error {
	if !id.known {
		return nil
	}
	rows, err := conn.Query(ctx, "select distinct cluster_id, topic_id from consumer_progress where topic = $1", pgx.QueryExecModeExec, e.Config.Kafka.Topic)
	if err != nil {
		return fmt.Errorf("read positions: %w", err)
	}
	seen, sameCluster, sameTopic := 0, false, false
	var cluster string
	var topicID [16]byte
	if _, err := pgx.ForEachRow(rows, []any{&cluster, &topicID}, func() error {
		seen++
		sameCluster = sameCluster || cluster == id.clusterID
		sameTopic = sameTopic || cluster == id.clusterID && topicID == id.topicID
		return nil
	}); err != nil {
		return errors.Join(errors.New("read positions"), err)
	}
	switch {
	case seen == 0:
		e.ok("identity", "nothing was applied yet")
	case !sameCluster:
		e.add(Problem, "identity", "the positions are of another Kafka cluster", "this is the wrong database or the wrong cluster, and workers refuse to start", "correct database.url or kafka.brokers")
	case !sameTopic:
		e.add(Problem, "identity", "the positions are of a topic of this name that is gone", "the topic was deleted and made again; workers wait until a person has looked", "find out what was lost with it, then acknowledge the incident topic_recreated")
	default:
		e.ok("identity", "the database belongs to this topic of this cluster")
	}
	return nil
}
