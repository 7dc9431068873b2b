package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"

	"hookledger/internal/e2e/checker"
)

// gather sees all that can be seen from outside: the topic by kcat, the offsets by a
// Python client, the tables by SQL.
func (r *run) gather(ctx context.Context, before *checker.Tables) (checker.World, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := checker.World{
		History: r.client.told(), Tries: r.payer.told(), Samples: r.sampler.end(), Before: before, Forgot: r.plan.has(Forget), Texts: map[string]string{},
	}
	w.CoordinatorMoved = r.plan.has(CoordinatorMove) || r.plan.has(BrokerKill) || r.plan.has(BrokerFreeze)
	if r.plan.has(Rewind) || before != nil {
		w.Incidents = append(w.Incidents, "rewind")
	}
	if r.plan.has(Mirror) {
		// Each copy of what cannot be applied is one more of few records.
		w.Incidents = append(w.Incidents, "quarantine_surge")
	}
	var err error
	if w.Tables, err = checker.ReadTables(ctx, r.stage.postgres.URL(r.database)); err != nil {
		return w, err
	}
	if err := r.wantNoDeadlock(ctx); err != nil {
		return w, err
	}
	if w.Records, err = checker.ReadTopic(ctx, r.stage.brokers.bootstrap(""), r.topic); err != nil {
		return w, err
	}
	if w.Group, err = checker.ReadGroupByPython(ctx, r.stage.python, r.stage.brokers.bootstrap(""), r.group, r.topic); err != nil {
		return w, err
	}
	if len(w.Records) == 0 || len(w.Tables.Entries) == 0 { // events may be forgotten
		return w, fmt.Errorf("nothing to judge: %d records, %d deliveries, %d entries", len(w.Records), len(w.History), len(w.Tables.Entries))
	}
	for _, secret := range r.secrets {
		w.Secrets = append(w.Secrets, secret)
	}
	for name, role := range r.roles {
		w.Texts["output of "+name] = role.output()
		if _, metrics, err := get(ctx, "http://"+role.admin+"/metrics"); err == nil { // it may have ended
			w.Texts["metrics of "+name] = metrics
		}
	}
	return w, nil
}

// replay has the whole topic read again, after all, and returns the tables before that.
func (r *run) replay(ctx context.Context) (*checker.Tables, error) {
	before, err := checker.ReadTables(ctx, r.stage.postgres.URL(r.database))
	if err != nil {
		return nil, err
	}
	moved := r.rewind(ctx, func(int64) int64 { return 0 })
	if err := r.awaitReady(ctx, workerRoles...); err != nil {
		r.violate("I11", "replay: %v", err)
		return nil, nil
	}
	if !moved {
		return nil, nil
	}
	r.fire(Replay)
	if err := poll(ctx, func() error { return r.sampler.drained(ctx) }); err != nil {
		r.violate("I11", "replay: %v", err)
	}
	return &before, nil
}

// rewind stops the workers, moves their offsets to where to says, and starts them. It
// tells whether the offsets were moved.
func (r *run) rewind(ctx context.Context, to func(committed int64) int64) bool {
	workers := append([]string{roleExtra}, workerRoles...)
	for _, name := range workers {
		r.roles[name].signal(syscall.SIGCONT) // another fault may have frozen it
		r.roles[name].down(syscall.SIGTERM)
	}
	for _, name := range workers {
		r.roles[name].awaitDown(ctx, patience/3)
	}
	err := r.reset(ctx, to)
	for _, name := range workerRoles {
		r.roles[name].up()
	}
	if err != nil {
		r.log("offsets were not moved: %v", err)
	}
	return err == nil
}

// reset moves the offsets of the group, which must be empty: a member that was killed is
// in it until its session is over.
func (r *run) reset(ctx context.Context, to func(int64) int64) error {
	ctx, cancel := context.WithTimeout(ctx, millis(4*sessionTimeout))
	defer cancel()
	return poll(ctx, func() error {
		offsets, err := r.sampler.committed(ctx)
		if err != nil {
			return err
		}
		var moved kadm.Offsets
		offsets.Each(func(o kadm.OffsetResponse) {
			if o.Topic == r.topic && o.At > 0 {
				moved.AddOffset(o.Topic, o.Partition, to(o.At), -1)
			}
		})
		answers, err := r.sampler.adm.CommitOffsets(ctx, r.group, moved)
		if err == nil {
			err = answers.Error()
		}
		return err
	})
}

// wantNoDeadlock asks Postgres. Locks are taken in one order, so there is none to break:
// unless our trigger for a full disk, which locks a table and then its partitions, met a
// worker.
func (r *run) wantNoDeadlock(ctx context.Context) error {
	if r.plan.has(PostgresFull) || r.plan.has(Zombie) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var n int64
	if err := poll(ctx, func() error { // a connection of the pool may have been ended by a fault
		return r.sampler.pool.QueryRow(ctx, `select deadlocks from pg_stat_database where datname = $1`, r.database).Scan(&n)
	}); err != nil {
		return fmt.Errorf("count deadlocks: %w", err)
	}
	if n > 0 {
		r.violate("E2", "Postgres broke %d deadlocks", n)
	}
	// A session may keep its count to itself for 10 s; who was ended says so at once.
	for _, name := range slices.Sorted(maps.Keys(r.roles)) {
		if strings.Contains(r.roles[name].output(), "(SQLSTATE 40P01)") {
			r.violate("E2", "%s was ended by a deadlock; see %s", name, r.roles[name].logPath())
		}
	}
	return nil
}
