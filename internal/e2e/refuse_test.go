package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/testkit"
)

// Roles refuse what could lose money, at once, with exit code 2 and the repair.
func TestRoles_RefuseAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	k := testkit.Kafka(t)
	for _, tc := range []struct {
		name    string
		opts    options
		prepare func(s *system)
		roles   []string
		want    string // in what the role writes
	}{
		{
			name: "schema missing", opts: options{unprepared: true}, prepare: func(s *system) { s.mustRun("topics", "apply") },
			roles: []string{"consume"}, want: "run `hookledger migrate up`",
		},
		{
			name: "schema older", prepare: func(s *system) {
				s.exec(`delete from hookledger_schema where version_id = (select max(version_id) from hookledger_schema)`)
			},
			roles: []string{"consume"}, want: "run `hookledger migrate up`",
		},
		{
			name: "schema newer", prepare: func(s *system) {
				s.exec(`insert into hookledger_schema (version_id, is_applied) values (99999, true)`)
			},
			roles: []string{"consume"}, want: "deploy the release that migrated it",
		},
		{
			name: "topic missing", opts: options{unprepared: true}, prepare: func(s *system) { s.mustRun("migrate", "up") },
			roles: []string{"ingest", "consume"}, want: "run `hookledger topics apply`",
		},
		{
			name: "one replica and durability replicated", opts: options{unprepared: true, durability: "replicated", replication: 3},
			prepare: func(s *system) {
				s.mustRun("migrate", "up")
				s.createTopic(1)
			},
			roles: []string{"ingest", "consume"}, want: "set kafka.durability: single and accept",
		},
		{
			name: "replication 1 and durability replicated in the file", opts: options{unprepared: true, durability: "replicated", replication: 1},
			roles: []string{"ingest", "consume"}, want: "raise it, or set kafka.durability: single",
		},
		{
			name: "unknown key", prepare: func(s *system) { s.replace("ack_timeout:", "ack_timeuot:") },
			roles: []string{"ingest", "consume"}, want: "ingest.ack_timeout",
		},
		{
			name: "reset to latest", prepare: func(s *system) { s.replace("check_interval: 1s", "auto_offset_reset: latest") },
			roles: []string{"consume"}, want: "latest",
		},
		{
			name: "empty secret", prepare: func(s *system) { s.write(s.dir+"/acme.secret", "\n") },
			roles: []string{"ingest"}, want: "acme",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, k, tc.opts)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			for _, role := range tc.roles {
				stdout, stderr, code := s.run(role)
				if code != 2 || !strings.Contains(stderr, tc.want) {
					t.Errorf("%s: got exit code %d and\n%s%s\nwant 2 and %q", role, code, stdout, stderr, tc.want)
				}
				for _, secret := range s.secrets {
					if strings.Contains(stdout+stderr, secret) {
						t.Errorf("%s: its message holds a secret", role)
					}
				}
			}
		})
	}
}

func (s *system) exec(sql string) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.opts.database)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		s.tb.Fatalf("%s: %v", sql, err)
	}
}

// createTopic makes the topic without the product's help.
func (s *system) createTopic(replication int16) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if _, err := kadm.NewClient(s.kafka.Client()).CreateTopic(ctx, int32(s.opts.partitions), replication, nil, s.topic); err != nil {
		s.tb.Fatal(err)
	}
}

// replace changes the configuration file.
func (s *system) replace(old, replacement string) {
	s.tb.Helper()
	text, err := os.ReadFile(s.config)
	if err != nil {
		s.tb.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		s.tb.Fatalf("the configuration has no %q", old)
	}
	s.write(s.config, strings.ReplaceAll(string(text), old, replacement))
}
