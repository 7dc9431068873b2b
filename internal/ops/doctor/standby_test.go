package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/ops/doctor"
	"hookledger/internal/testkit"
	"hookledger/internal/testkit/standby"
	"hookledger/migrations"
)

// A name in synchronous_standby_names is half of it: one of that name must be there, or
// every commit waits.
func TestExamine_TellsAStandbyFromItsName(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	cluster := testkit.NewPostgres(t)
	p.url = cluster.URL("postgres")
	if err := migrations.Up(t.Context(), p.url); err != nil {
		t.Fatal(err)
	}
	p.sql("create role reader login password 'canary' in role hookledger_reader")
	p.apply()
	whole := p.url
	_, host, _ := strings.Cut(whole, "@")
	reader := "postgres://reader:canary@" + host
	// examineWhen waits until the sessions of Postgres have read the setting.
	examineWhen := func(url, names string) doctor.Report {
		p.url = url
		testkit.Eventually(t, time.Minute, func() error {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.Background()) }()
			var is string
			if err := conn.QueryRow(t.Context(), "show synchronous_standby_names").Scan(&is); err != nil || is != names {
				return errors.Join(fmt.Errorf("synchronous_standby_names is %q", is), err)
			}
			return nil
		})
		return p.examine()
	}
	want(t, examineWhen(whole, ""), "postgres_standby", doctor.Warning, "is empty")
	p.sql("alter system set synchronous_standby_names = 'one'", "select pg_reload_conf()")
	want(t, examineWhen(whole, "one"), "postgres_standby", doctor.Problem, "none of them is connected")
	standby.Attach(t, whole, "other")
	want(t, examineWhen(whole, "one"), "postgres_standby", doctor.Problem, "none of them is connected")
	want(t, examineWhen(reader, "one"), "postgres_standby", doctor.Note, "pg_read_all_stats")
	detach := standby.Attach(t, whole, "one")
	testkit.Eventually(t, time.Minute, func() error {
		for _, f := range p.examine().Findings {
			if f.Check == "postgres_standby" && f.Verdict == doctor.OK && strings.Contains(f.Found, "one, 1 connected") {
				return nil
			}
		}
		p.url = whole
		return fmt.Errorf("doctor does not see the standby")
	})
	p.sql("create table waits_for_it (x int)") // and COMMIT returns
	detach()
	testkit.Eventually(t, time.Minute, func() error {
		for _, f := range p.examine().Findings {
			if f.Check == "postgres_standby" && f.Verdict == doctor.Problem {
				return nil
			}
		}
		return fmt.Errorf("doctor does not miss the standby")
	})
}
