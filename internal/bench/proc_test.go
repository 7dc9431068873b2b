package bench

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hookledger/internal/testkit"
)

// A kernel counts the work of processes in ticks of 10 ms.
const tick = 10 * time.Millisecond

// stat returns the fields of /proc/PID/stat behind the name; none if it is gone, or on
// another system than Linux, whose lines then have no figures of that kind.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

func ticks(fields []string, from, to int) time.Duration {
	var sum time.Duration
	for i := from; i < to && i < len(fields); i++ {
		n, _ := strconv.Atoi(fields[i])
		sum += time.Duration(n) * tick
	}
	return sum
}

// cpuOf is what a process has worked, user and system.
func cpuOf(pid int) time.Duration { return ticks(stat(pid), 11, 13) }

// cpuOfTree is what a process, its children and those it has waited for have worked.
func cpuOfTree(pid int) time.Duration {
	sum := ticks(stat(pid), 11, 15)
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(path))
		if f := stat(child); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			sum += ticks(f, 11, 13)
		}
	}
	return sum
}

// memoryOf returns a figure of /proc/PID/status in MiB: VmHWM, the most that was
// resident, or VmRSS, what is.
func memoryOf(pid int, what string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, what+":"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kib) / 1024
		}
	}
	return 0
}

// peakOf is the most memory that a process had which has ended.
func peakOf(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes there
		return float64(usage.Maxrss) / (1 << 20)
	}
	return float64(usage.Maxrss) / 1024
}

func memoryGiB() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	kib, _ := strconv.Atoi(fields[1])
	return float64(kib) / (1 << 20)
}

// usage is what processes worked in a while.
type usage struct {
	b      *bench
	pids   []int
	before []time.Duration
	main   time.Duration
}

// add begins to count the work of processes.
func (u *usage) add(ps []*testkit.KillableProcess) {
	for _, p := range ps {
		u.pids = append(u.pids, p.PID())
		u.before = append(u.before, cpuOf(p.PID()))
	}
}

// watch begins to count the work of processes, and that of Postgres.
func (b *bench) watch(ps ...*testkit.KillableProcess) *usage {
	u := &usage{b: b}
	u.add(ps)
	if b.shared.main != 0 {
		u.main = cpuOfTree(b.shared.main)
	}
	return u
}

// per returns what the processes, and what Postgres, worked for each of n, in µs.
func (u *usage) per(n int) (own, postgres float64) {
	var sum time.Duration
	for i, pid := range u.pids {
		sum += cpuOf(pid) - u.before[i]
	}
	if u.b.shared.main != 0 {
		postgres = float64((cpuOfTree(u.b.shared.main) - u.main).Microseconds()) / float64(n)
	}
	return float64(sum.Microseconds()) / float64(n), postgres
}

// profileRole keeps a CPU profile of a role's busy seconds and what it has allocated by
// then, if a folder for profiles was named.
func (b *bench) profileRole(role, admin string) {
	if *profiles == "" {
		return
	}
	ctx := b.tb.Context()
	done := make(chan struct{})
	b.tb.Cleanup(func() { <-done }) // the context ended before
	go func() {                     // ends with the group
		defer close(done)
		for n := 0; ; n++ {
			for wait := n == 0; wait; { // until it listens
				conn, err := net.Dial("tcp", admin)
				if wait = err != nil && ctx.Err() == nil; wait {
					<-time.After(5 * time.Millisecond)
				} else if err == nil {
					_ = conn.Close()
				}
			}
			for _, kind := range []string{"profile?seconds=3", "allocs"} {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/debug/pprof/"+kind, http.NoBody)
				if err != nil {
					return
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return
				}
				text, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				name := fmt.Sprintf("%s-%s-%s-%d.pb.gz", b.group, role, strings.TrimSuffix(kind, "?seconds=3"), n)
				if err == nil {
					err = os.WriteFile(filepath.Join(*profiles, name), text, 0o644)
				}
				if err != nil {
					return
				}
			}
		}
	}()
}

// kafkaVersion is that of the jars which run.
func kafkaVersion() string {
	dir, err := os.Getwd()
	if err != nil {
		return "unknown"
	}
	jars, _ := filepath.Glob(filepath.Join(dir, "..", "..", ".cache", "kafka", "kafka-clients-*.jar"))
	if len(jars) == 0 {
		return "unknown"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-clients-"), ".jar")
}
