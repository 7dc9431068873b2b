package bench

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	table    = flag.Bool("table", false, "measure and print the table")
	quick    = flag.Bool("quick", false, "with -table: short runs, for a first look")
	full     = flag.Bool("full", false, "with -table: more repetitions, and ten million entries")
	only     = flag.String("only", "", "with -table: groups to run, separated by commas")
	profiles = flag.String("profiles", "", "with -table: a folder for CPU and allocation profiles of the roles")
	out      = flag.String("out", "", "with -table: a file to write the table to as well")
)

// tableOut is where the table goes. Whatever else is printed goes to standard error.
var tableOut = os.Stdout

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runFloor(role))
	}
	flag.Parse()
	if *table {
		// The package testing says PASS there.
		os.Stdout = os.Stderr
	}
	os.Exit(m.Run())
}

// group is lines that share what they are measured on.
type group struct {
	name string
	run  func(*bench)
}

// groups in the order of the table.
var groups = []group{
	{"accept", measureAccept},
	{"burst", measureBurst},
	{"delay", measureDelay},
	{"apply", measureApply},
	{"growth", measureGrowth},
	{"recovery", measureRecovery},
	{"signature", measureSignatures},
	{"payments", measurePayments},
	{"verify", measureVerify},
	{"lag", measureLag},
}

// mode is how much is measured.
type mode struct {
	name string
	// reps is how often each pair is measured.
	reps int
	// span is how long a load lasts.
	span time.Duration
	// backlog is how many records an applier has before it.
	backlog int
	// verified is how many records are proven, lagging how many are behind.
	verified, lagging int
	// entries are how many stand in the ledger before.
	entries []int
	// brokers are the sizes of the clusters that accept.
	brokers []int
	callers []int
}

var (
	tinyMode   = mode{"tiny", 1, 200 * time.Millisecond, 600, 600, 600, []int{1_000}, []int{1}, []int{4}}
	quickMode  = mode{"quick", 2, 2 * time.Second, 150_000, 100_000, 1_000_000, []int{10_000, 300_000}, []int{1}, []int{64, 256}}
	normalMode = mode{"normal", 3, 4 * time.Second, 300_000, 1_000_000, 10_000_000, []int{10_000, 1_000_000}, []int{1, 3}, []int{64, 256}}
	fullMode   = mode{"full", 5, 8 * time.Second, 300_000, 1_000_000, 10_000_000, []int{10_000, 1_000_000, 10_000_000}, []int{1, 3}, []int{64, 256}}
)

// bench is what a group measures with.
type bench struct {
	mode
	tb    testing.TB
	group string
	lines []*line
	// shared outlives the group.
	shared *shared
	began  time.Time
}

func (b *bench) tiny() bool { return b.mode.name == tinyMode.name }

// add adds a line. Figures are read when the table is printed.
func (b *bench) add(l line) *line {
	l.group = b.group
	b.lines = append(b.lines, &l)
	return &l
}

// say tells on standard error what is going on.
func (b *bench) say(format string, args ...any) {
	if !b.tiny() {
		fmt.Fprintf(os.Stderr, "%6.0fs  %-9s  %s\n", time.Since(b.began).Seconds(), b.group, fmt.Sprintf(format, args...))
	}
}

// alternate runs both sides in turn, reps times.
func (b *bench) alternate(ours, floor func(rep int)) {
	for rep := range b.reps {
		if rep%2 == 0 {
			ours(rep)
			floor(rep)
		} else {
			floor(rep)
			ours(rep)
		}
	}
}

// measure runs the groups and returns their lines.
func measure(t *testing.T, m mode, names []string) []*line {
	t.Helper()
	s := &shared{tb: t, tiny: m.name == tinyMode.name}
	began := time.Now()
	var lines []*line
	for _, g := range groups {
		if len(names) > 0 && !slices.Contains(names, g.name) {
			continue
		}
		b := &bench{mode: m, group: g.name, shared: s, began: began}
		t.Run(g.name, func(t *testing.T) {
			b.tb = t
			g.run(b)
		})
		lines = append(lines, b.lines...)
	}
	return lines
}

// TestTable measures and prints the table; without -table it has nothing to do.
func TestTable(t *testing.T) {
	if !*table {
		return
	}
	m := normalMode
	switch {
	case *quick:
		m = quickMode
	case *full:
		m = fullMode
	}
	var names []string
	for _, n := range strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == n }) {
			t.Fatalf("there is no group %q to run", n)
		}
		names = append(names, n)
	}
	began := time.Now()
	lines := measure(t, m, names)
	var text bytes.Buffer
	if err := printTable(&text, lines); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "\n%s\n", circumstances(m, time.Since(began)))
	if _, err := io.Copy(tableOut, bytes.NewReader(text.Bytes())); err != nil {
		t.Fatal(err)
	}
	if *out != "" {
		if err := os.WriteFile(*out, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// circumstances is where and how the table was made.
func circumstances(m mode, took time.Duration) string {
	cpu := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if _, name, ok := strings.Cut(l, ": "); ok && strings.HasPrefix(l, "model name") {
				cpu = strings.TrimSpace(name)
				break
			}
		}
	}
	load := ""
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = ", load average at the end " + strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return fmt.Sprintf("%s, %s mode (%d repetitions) in %s. %d × %s, %.0f GiB, %s/%s, %s; %s; Apache Kafka %s; %s%s.",
		time.Now().UTC().Format("2006-01-02"), m.name, m.reps, took.Round(time.Second), runtime.NumCPU(), cpu, memoryGiB(),
		runtime.GOOS, runtime.GOARCH, runtime.Version(), version("postgres"), kafkaVersion(), "everything on this machine, over loopback", load)
}

// TestTable_EveryLineHasAFloor runs all of it in the smallest size, so that it cannot
// rot, and wants a figure of both sides on every line.
func TestTable_EveryLineHasAFloor(t *testing.T) {
	if *table {
		return
	}
	lines := measure(t, tinyMode, nil)
	seen := map[string]bool{}
	for _, l := range lines {
		name := l.group + ": " + l.name
		if seen[name] {
			t.Errorf("%s: there are two lines of this name", name)
		}
		seen[name] = true
		seen[l.group] = true
		if l.floorName == "" || l.unit == "" {
			t.Errorf("%s: floor %q, unit %q: want both", name, l.floorName, l.unit)
		}
		if len(l.ours) == 0 || len(l.ours) != len(l.floor) || !(median(l.ours) > 0) || !(median(l.floor) > 0) {
			t.Errorf("%s: got %v beside %v, want as many figures of both sides, above zero", name, l.ours, l.floor)
		}
	}
	for _, g := range groups {
		if !seen[g.name] {
			t.Errorf("group %s has no line", g.name)
		}
	}
	var text bytes.Buffer
	if err := printTable(&text, lines); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n != len(lines)+2 {
		t.Errorf("got %d lines of table for %d lines:\n%s", n, len(lines), text.String())
	}
}

func version(program string) string {
	if text, err := exec.Command(program, "--version").Output(); err == nil {
		return strings.TrimSpace(string(text))
	}
	return "Postgres"
}
