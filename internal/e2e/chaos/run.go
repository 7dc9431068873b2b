package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hookledger/internal/e2e/checker"
)

// Options say what to run. Stage is required.
type Options struct {
	Stage *Stage
	// Binary is a hookledger built with the tag chaos. Empty: the stage's.
	Binary string
	// Seed makes the plan, unless there is one, and the load.
	Seed uint64
	// Plan nil: the seed's.
	Plan *Plan
	// Log is told what happens. Nil drops it.
	Log func(format string, args ...any)
}

// Violation is a broken invariant, see the checker's page. Beyond its own there are
// E1 (a process ended by itself, or wrote of a panic or a data race) and V1 (the program's
// own `verify` finds something).
type Violation struct {
	Invariant string   `json:"invariant"`
	Detail    string   `json:"detail"`
	EventIDs  []string `json:"event_ids,omitempty"`
}

// String is one line.
func (v Violation) String() string {
	if len(v.EventIDs) == 0 {
		return v.Invariant + ": " + v.Detail
	}
	return v.Invariant + ": " + v.Detail + ": " + strings.Join(v.EventIDs, ", ")
}

// Report is what came of a run.
type Report struct {
	Seed uint64
	Plan Plan
	// Faults counts what happened, by kind: a crash point that was not reached is not in
	// it, nor a cut that nothing passed.
	Faults map[Kind]int
	// Points counts the crash points at which a process was killed or frozen.
	Points     map[string]int
	Violations []Violation
	// Deliveries and Acknowledged count attempts and answers 2xx, Records the topic.
	Deliveries, Acknowledged, Records, Payments int
	Took                                        time.Duration
	// Dir holds the plan, the histories and what the processes wrote, if there are
	// violations; empty otherwise.
	Dir string
}

// run is one run.
type run struct {
	stage  *Stage
	binary string
	plan   Plan
	log    func(string, ...any)

	dir      string
	topic    string
	group    string
	database string
	secrets  map[string]string
	config   string

	roles   map[string]*role
	client  *client
	payer   *payer
	sampler *sampler
	author  *author

	mu         sync.Mutex
	fired      map[Kind]int
	points     map[string]int
	violations []Violation
}

// Run carries out a plan against real processes and judges what came of it. The error is
// of the harness itself; what the program did wrong is in the report. It must be called on
// the goroutine of the test that made the stage.
func Run(ctx context.Context, o Options) (report Report, err error) {
	began := time.Now()
	r, err := newRun(o)
	if err != nil {
		return report, err
	}
	report = Report{Seed: r.plan.Seed, Plan: r.plan}
	defer r.close(&report)
	if err := r.prepare(ctx); err != nil {
		return report, err
	}
	w, err := r.play(ctx)
	if err != nil {
		return report, err
	}
	r.judge(ctx, w)
	report.Faults, report.Points, report.Violations = r.fired, r.points, r.violations
	report.Deliveries, report.Records, report.Payments = len(w.History), len(w.Records), len(w.Tables.Payments)
	report.Acknowledged = int(r.client.acks.Load())
	report.Took = time.Since(began)
	return report, nil
}

func newRun(o Options) (*run, error) {
	if o.Stage == nil {
		return nil, errors.New("run chaos: no stage")
	}
	r := &run{stage: o.Stage, binary: o.Binary, log: o.Log, roles: map[string]*role{}, fired: map[Kind]int{}, points: map[string]int{}}
	if r.binary == "" {
		r.binary = o.Stage.binary
	}
	if r.log == nil {
		r.log = func(string, ...any) {}
	}
	if o.Plan != nil {
		r.plan = *o.Plan
	} else {
		r.plan = NewPlan(o.Seed, o.Stage.target)
	}
	var err error
	if r.dir, err = os.MkdirTemp("", fmt.Sprintf("hookledger-chaos-%d-", r.plan.Seed)); err != nil {
		return nil, fmt.Errorf("create folder of the run: %w", err)
	}
	unique := fmt.Sprintf("%d_%d_%d", r.plan.Seed, os.Getpid(), time.Now().UnixNano()%1e9)
	r.topic, r.group, r.database = "chaos."+unique, "chaos-"+unique, "chaos_"+unique
	r.secrets = map[string]string{
		// Canaries: they must be seen nowhere.
		sourceStripe: "whsec_stripe_canary_" + unique, sourceAcme: "acme_canary_" + unique, rolePayments: "token_canary_" + unique,
	}
	r.author = &author{rnd: stream(r.plan.Seed, streamEvents), seed: r.plan.Seed}
	// Written before the run: whatever happens, the plan is there.
	return r, os.WriteFile(filepath.Join(r.dir, "plan.json"), []byte(r.plan.String()+"\n"), 0o600)
}

// prepare makes topic, database and configuration, and starts the processes.
func (r *run) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.stage.execute(ctx, "postgres", `create database `+r.database+` template `+template); err != nil {
		return err
	}
	if err := r.configure(); err != nil {
		return err
	}
	if out, err := r.command(ctx, "topics", "apply"); err != nil {
		return fmt.Errorf("make topic: %w: %s", err, out)
	}
	var err error
	if r.sampler, err = newSampler(ctx, r); err != nil {
		return err
	}
	var targets []string
	for i := range ingestRoles {
		targets = append(targets, "http://"+r.stage.links[linkClientIngest][i].Addr())
	}
	r.client = newClient(targets, r.secrets)
	r.payer = newPayer("http://"+addr(r.stage.ports[rolePayments].public), r.secrets[rolePayments])
	for _, name := range append([]string{roleExtra}, allRoles...) {
		r.roles[name] = r.newRole(name)
		go r.roles[name].live() // ends with close
	}
	for _, name := range allRoles {
		r.roles[name].up()
	}
	return nil
}

// play makes load and faults, heals, waits until all is read, and gathers the world.
func (r *run) play(ctx context.Context) (checker.World, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	if err := r.awaitReady(ctx, ingestRoles...); err != nil {
		return checker.World{}, fmt.Errorf("start: %w", err)
	}
	r.sampler.start(ctx)
	var load sync.WaitGroup
	load.Go(func() { r.client.run(ctx, workload(&r.plan), r.plan.PerSecond) }) // ends with its work, or ctx
	load.Go(func() {                                                           // the same
		r.awaitMoney(ctx)
		r.payer.run(ctx, payments(&r.plan), max(r.plan.PerSecond/5, 1))
	})
	if err := r.nemesis(ctx, &load); err != nil {
		return checker.World{}, err
	}
	healed := time.Now()
	if err := r.heal(ctx); err != nil {
		return checker.World{}, err
	}
	r.settle(ctx, &load)
	r.log("settled %s after healing", time.Since(healed).Round(time.Millisecond))
	var before *checker.Tables
	if r.plan.has(Replay) {
		var err error
		if before, err = r.replay(ctx); err != nil {
			return checker.World{}, err
		}
	}
	return r.gather(ctx, before)
}

// awaitMoney waits until there is something to pay with, for a while: an empty account is
// an answer for good.
func (r *run) awaitMoney(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_ = poll(ctx, func() error {
		var rich int
		if err := r.sampler.pool.QueryRow(ctx, `select count(*) from accounts where balance > 0`).Scan(&rich); err != nil {
			return err
		}
		if rich < accounts {
			return fmt.Errorf("%d accounts have money", rich)
		}
		return nil
	})
}

// settle waits until every delivery is answered and every record applied. What does not
// come to an end is a violation.
func (r *run) settle(ctx context.Context, load *sync.WaitGroup) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := r.awaitReady(ctx, allRoles...)
	if err == nil {
		err = poll(ctx, func() error {
			if n, m := r.client.open.Load(), r.payer.open.Load(); n+m > 0 {
				return fmt.Errorf("%d deliveries and %d payments have no answer", n, m)
			}
			return nil
		})
	}
	if err == nil {
		load.Wait()
		r.client.under.Wait()
		err = poll(ctx, func() error { return r.sampler.drained(ctx) })
	}
	if err != nil {
		r.violate("I11", "after healing: %v", err)
	}
}

// judge asks the checker, and the program itself.
func (r *run) judge(ctx context.Context, w checker.World) {
	for _, v := range checker.Check(w) {
		r.mu.Lock()
		r.violations = append(r.violations, Violation{Invariant: v.Invariant, Detail: v.What, EventIDs: v.Events})
		r.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(r.roles)) {
		for _, alarm := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "panic while"} {
			if strings.Contains(r.roles[name].output(), alarm) {
				r.violate("E1", "%s wrote %q; see %s", name, alarm, r.roles[name].logPath())
			}
		}
	}
	r.wantModesty(w)
	if out, err := r.command(ctx, "verify", "--json"); err != nil {
		r.violate("V1", "verify: %v: %s", err, out)
	}
}

func (r *run) violate(invariant, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, Violation{Invariant: invariant, Detail: fmt.Sprintf(format, args...)})
}

func (r *run) fire(kind Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fired[kind]++
}

// crashed notes that a process came to its crash point.
func (r *run) crashed(s Step) {
	r.fire(s.Kind)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points[s.Point]++
}

// close ends the processes and removes what the run made, but what is needed to look into
// a violation.
func (r *run) close(report *Report) {
	var all sync.WaitGroup
	for _, role := range r.roles {
		all.Go(role.close)
	}
	all.Wait()
	if r.client != nil {
		r.client.http.CloseIdleConnections()
		r.payer.http.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r.sampler != nil {
		r.sampler.close(ctx)
	}
	if len(report.Violations) > 0 {
		report.Dir = r.dir
		r.keep()
		return
	}
	_ = r.stage.execute(ctx, "postgres", `drop database if exists `+r.database+` with (force)`)
	_ = os.RemoveAll(r.dir)
}

// keep writes the histories beside the plan.
func (r *run) keep() {
	if r.client == nil {
		return
	}
	var deliveries, tries strings.Builder
	for _, d := range r.client.told() {
		_ = json.NewEncoder(&deliveries).Encode(d)
	}
	for _, t := range r.payer.told() {
		_ = json.NewEncoder(&tries).Encode(t)
	}
	if samples, err := json.Marshal(r.sampler.all); err == nil {
		_ = os.WriteFile(filepath.Join(r.dir, "samples.json"), samples, 0o600)
	}
	_ = os.WriteFile(filepath.Join(r.dir, "history.jsonl"), []byte(deliveries.String()), 0o600)
	_ = os.WriteFile(filepath.Join(r.dir, "payments.jsonl"), []byte(tries.String()), 0o600)
}
