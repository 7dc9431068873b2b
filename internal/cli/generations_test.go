package cli

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"hookledger/internal/cli/app"
)

func TestDoctorGenerations_RotatesAndForgetsByHand(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run(t, "doctor", "generations").want(t, app.ExitUsage, "hookledger migrate up")
	in.run(t, "migrate", "up").want(t, app.ExitOK)
	conn, err := pgx.Connect(t.Context(), in.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()

	ask := func(schema string, args ...string) map[string]any {
		t.Helper()
		r := in.run(t, append([]string{"doctor", "generations", "--json"}, args...)...)
		r.want(t, app.ExitOK)
		return jsonOf(t, r, schema)
	}
	ring := func(open, used, forgotten int) {
		t.Helper()
		got := ask("doctor-generations")
		if fmt.Sprint(got["open"], got["in_use"], got["forgotten"], len(got["generations"].([]any))) != fmt.Sprint(open, used, forgotten, 8) {
			t.Errorf("got %v, want open %d, %d in use and %d forgotten", got, open, used, forgotten)
		}
	}
	ring(0, 1, 0)
	if got := ask("doctor-generations-rotate", "rotate", "--dry-run"); got["generation"] != 1.0 || got["opened"] != false {
		t.Errorf("rotate --dry-run: got %v", got)
	}
	ring(0, 1, 0)
	if got := ask("doctor-generations-rotate", "rotate"); got["generation"] != 1.0 || got["opened"] != true {
		t.Errorf("rotate: got %v", got)
	}
	ring(1, 2, 0)

	// Nothing is as old as dedupe.keep.
	if got := ask("doctor-generations-forget", "forget"); len(got["generations"].([]any)) != 0 {
		t.Errorf("forget: got %v", got)
	}
	in.run(t, "doctor", "generations", "forget").want(t, app.ExitOK)
	if got := ask("doctor-generations-forget", "forget", "--oldest", "--dry-run"); fmt.Sprint(got["generations"]) != "[0]" || got["dry_run"] != true {
		t.Errorf("forget --oldest --dry-run: got %v", got)
	}
	ring(1, 2, 0)

	// Somebody reads it.
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select count(*) from processed_events`); err != nil {
		t.Fatal(err)
	}
	in.run(t, "doctor", "generations", "forget", "--oldest").want(t, app.ExitFailed, fmt.Sprintf("read by pid %d", conn.PgConn().PID()), "end that transaction")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask("doctor-generations-forget", "forget", "--oldest"); fmt.Sprint(got["generations"]) != "[0]" {
		t.Errorf("forget --oldest: got %v", got)
	}
	ring(1, 1, 1)

	// All that is older than dedupe.keep, at once; and a full ring says so.
	for range 7 {
		ask("doctor-generations-rotate", "rotate")
	}
	ring(0, 8, 1)
	in.run(t, "doctor", "generations", "rotate").want(t, app.ExitFailed, "all generations hold events")
	in.run(t, "doctor").want(t, app.ExitFound)
	if _, err := conn.Exec(t.Context(), `update event_ring set opened_at = array(select now() - interval '841 hours' from generate_series(1, 8))`); err != nil {
		t.Fatal(err)
	}
	if got := ask("doctor-generations"); got["forget_due"] != true || got["rotate_due"] != true || len(got["notes"].([]any)) != 2 {
		t.Errorf("got %v", got)
	}
	if got := ask("doctor-generations-forget", "forget"); fmt.Sprint(got["generations"]) != "[1 2 3 4 5 6 7]" {
		t.Errorf("forget: got %v", got)
	}
	ring(0, 1, 8)
	in.run(t, "doctor", "generations").want(t, app.ExitOK)
}
