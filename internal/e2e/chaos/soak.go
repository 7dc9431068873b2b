package chaos

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// SoakOptions say how long to go on. At least one of Seeds and For is set.
type SoakOptions struct {
	Stage *Stage
	// Binary is as in Options.
	Binary string
	// First is the first seed; the others follow it.
	First uint64
	// Seeds is how many to run, For how long. What is over first ends the soak.
	Seeds int
	For   time.Duration
	// Out is told a line for each seed, and the table at the end.
	Out io.Writer
	// Tries is how often a smaller plan is run before it counts as fine; 0 does not
	// shrink.
	Tries int
	// Verbose tells what happens in each run.
	Verbose bool
}

// Summary is what came of a soak.
type Summary struct {
	Target   string
	Runs     int
	Took     time.Duration
	Faults   map[Kind]int
	Points   map[string]int
	Failed   []Report
	Sent     int
	Acked    int
	Records  int
	Payments int
}

// Soak runs one seed after another. The error is of the harness.
func Soak(ctx context.Context, o SoakOptions) (Summary, error) {
	began := time.Now()
	s := Summary{Target: o.Stage.target, Faults: map[Kind]int{}, Points: map[string]int{}}
	for seed := o.First; o.Seeds == 0 || s.Runs < o.Seeds; seed++ {
		if o.For > 0 && time.Since(began) >= o.For || ctx.Err() != nil {
			break
		}
		report, err := Run(ctx, o.options(seed))
		if err != nil {
			return s, fmt.Errorf("seed %d: %w", seed, err)
		}
		s.add(report)
		_, _ = fmt.Fprintln(o.Out, report.line())
		if len(report.Violations) > 0 {
			o.tell(ctx, report)
		}
	}
	s.Took = time.Since(began)
	s.print(o.Out)
	return s, nil
}

func (o *SoakOptions) options(seed uint64) Options {
	run := Options{Stage: o.Stage, Binary: o.Binary, Seed: seed}
	if o.Verbose {
		run.Log = func(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, "    "+format+"\n", args...) }
	}
	return run
}

// tell prints a failed plan, what it violates, and a smaller one that does too.
func (o *SoakOptions) tell(ctx context.Context, report Report) {
	_, _ = fmt.Fprintf(o.Out, "  plan: %s\n", report.Plan.String())
	for _, v := range report.Violations {
		_, _ = fmt.Fprintf(o.Out, "  violated %s\n", v)
	}
	_, _ = fmt.Fprintf(o.Out, "  kept in %s\n", report.Dir)
	if o.Tries == 0 {
		return
	}
	small := Shrink(report.Plan, func(p Plan) bool {
		for range o.Tries {
			again := o.options(p.Seed)
			again.Plan = &p
			r, err := Run(ctx, again)
			if err != nil {
				_, _ = fmt.Fprintf(o.Out, "  shrinking: %v\n", err)
				return false
			}
			if len(r.Violations) > 0 {
				return true
			}
		}
		return false
	})
	_, _ = fmt.Fprintf(o.Out, "  smallest plan that failed: %s\n", small.String())
}

func (s *Summary) add(r Report) {
	s.Runs++
	for kind, n := range r.Faults {
		s.Faults[kind] += n
	}
	for point, n := range r.Points {
		s.Points[point] += n
	}
	if len(r.Violations) > 0 {
		s.Failed = append(s.Failed, r)
	}
	s.Sent += r.Deliveries
	s.Acked += r.Acknowledged
	s.Records += r.Records
	s.Payments += r.Payments
}

// line is a run in one line.
func (r *Report) line() string {
	what := "ok"
	if len(r.Violations) > 0 {
		what = "VIOLATED " + r.Violations[0].String()
	}
	return fmt.Sprintf("seed %d %s: %d deliveries, %d acknowledged, %d payments, faults %v, %.1f s: %s",
		r.Seed, r.Plan.Target, r.Deliveries, r.Acknowledged, r.Payments, counts(r.Faults), r.Took.Seconds(), what)
}

// counts is a map of faults as text, in order.
func counts(faults map[Kind]int) string {
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(faults)) {
		text += fmt.Sprintf(" %s×%d", kind, faults[kind])
	}
	return "[" + text[min(1, len(text)):] + "]"
}

// print writes the table.
func (s *Summary) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\ntarget                %s\nseeds                 %d\nduration              %s (%.1f s each)\ndeliveries            %d, %d acknowledged\nrecords               %d\npayments              %d\nseeds with violations %d\n",
		s.Target, s.Runs, s.Took.Round(time.Second), s.Took.Seconds()/float64(max(s.Runs, 1)), s.Sent, s.Acked, s.Records, s.Payments, len(s.Failed))
	total := 0
	for _, f := range families {
		_, _ = fmt.Fprintf(out, "  %-19s %d\n", f.kind, s.Faults[f.kind])
		total += s.Faults[f.kind]
	}
	_, _ = fmt.Fprintf(out, "  %-19s %d\n", "all faults", total)
	_, _ = fmt.Fprintf(out, "crash points          %d of %d\n", len(s.Points), len(reached))
	for _, point := range points() {
		_, _ = fmt.Fprintf(out, "  %-21s %d\n", point, s.Points[point])
	}
	for i := range s.Failed {
		_, _ = fmt.Fprintln(out, s.Failed[i].line())
	}
}
