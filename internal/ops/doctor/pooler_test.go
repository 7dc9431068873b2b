package doctor_test

import (
	"testing"

	"hookledger/internal/ops/doctor"
	"hookledger/internal/testkit"
)

func TestExamine_TellsPoolersApart(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	direct := p.url
	for _, c := range []struct {
		mode    string
		verdict doctor.Verdict
		words   string
	}{
		{"session", doctor.OK, "each connection is its own"},
		{"transaction", doctor.Note, "direct connection"},
		{"statement", doctor.Problem, "pool_mode"},
	} {
		p.url = testkit.PgBouncer(t, direct, c.mode).URL
		r := p.examine()
		want(t, r, "database_pooler", c.verdict, c.words)
		if c.mode != "statement" {
			want(t, r, "schema", doctor.OK, "")
		}
	}
}
