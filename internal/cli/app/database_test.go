package app

import (
	"fmt"
	"strings"
	"testing"

	"hookledger/internal/config"
	"hookledger/internal/testkit"
	"hookledger/internal/testkit/authority"
	"hookledger/migrations"
)

// On a real Postgres that speaks TLS: migrations and pools use what the URL says, and
// believe nobody else.
func TestNewPool_VerifiesWhoAnswers(t *testing.T) {
	t.Parallel()
	ca, other := authority.New(t), authority.New(t)
	pg := testkit.NewPostgres(t)
	pg.EnableTLS(ca, "127.0.0.1")
	load := func(url string) *config.Loaded {
		t.Helper()
		l, err := config.Parse("c.yaml", fmt.Appendf(nil, "database: { url: %q }", url), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	right := load(pg.TLSURL(ca, "127.0.0.1", "verify-full", "postgres"))
	if err := migrations.Up(t.Context(), right.Database.URL); err != nil {
		t.Fatal(err)
	}
	pool, err := NewPool(t.Context(), right, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var encrypted bool
	var version string
	if err := pool.QueryRow(t.Context(), "select ssl, version from pg_stat_ssl where pid = pg_backend_pid()").Scan(&encrypted, &version); err != nil || !encrypted {
		t.Errorf("got ssl %t (%v), want true", encrypted, err)
	}
	for name, c := range map[string]struct{ url, want string }{
		"another authority": {pg.TLSURL(other, "127.0.0.1", "verify-full", "postgres"), "unknown authority"},
		"another name":      {pg.TLSURL(ca, "localhost", "verify-full", "postgres"), "localhost"},
	} {
		wrong, err := NewPool(t.Context(), load(c.url), "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		wrong.Close()
		if err := migrations.Up(t.Context(), c.url); err == nil {
			t.Errorf("%s: migrated", name)
		}
	}
}
