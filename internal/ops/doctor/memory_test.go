package doctor_test

import (
	"testing"

	"hookledger/internal/ops/doctor"
)

func TestExamine_FindsAMemoryThatNobodyTends(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.apply()
	want(t, p.examine(), "memory_generations", doctor.OK, "1 of 8 generations in use")
	opened := func(all string) string {
		return "opened_at = array(select now() - interval '" + all + "' from generate_series(1, 8))"
	}
	p.sql("update event_ring set " + opened("335 hours"))
	want(t, p.examine(), "memory_generations", doctor.OK, "")
	p.sql("update event_ring set " + opened("337 hours"))
	want(t, p.examine(), "memory_generations", doctor.Warning, "start a worker")
	p.sql("update event_ring set open_generation = 1, " + opened("1009 hours"))
	want(t, p.examine(), "memory_generations", doctor.Warning, "the oldest one should be forgotten since 168h")
	p.sql("update event_ring set open_generation = 7")
	want(t, p.examine(), "memory_generations", doctor.Warning, "none can be opened")
}
