package chaos

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"hookledger/internal/e2e/checker"
)

// What a process may take (I12). In runs, processes took 33 MiB and had 33 goroutines at
// rest; a worker under a backlog of hours takes up to 150 MiB.
const (
	mostMemoryBytes = 128 << 20
	mostGoroutines  = 150
)

// weigh notes the most memory that this life of the process has had, in bytes.
func (r *role) weigh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil {
		r.peakBytes = max(r.peakBytes, peakBytes(r.proc.PID()))
	}
}

// peakBytes is the highest resident memory of a process. Zero: it ended, or the system
// does not say.
func peakBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(valueOf(string(text), "VmHWM:"), " kB"), 10, 64)
	return kib << 10
}

// valueOf is what stands behind the name in a text of one name and value a line.
func valueOf(text, name string) string {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// wantModesty is I12: no process took more memory than it may, and once all was settled
// none had goroutines that faults left behind.
func (r *run) wantModesty(w checker.World) {
	for _, name := range slices.Sorted(maps.Keys(r.roles)) {
		role := r.roles[name]
		role.weigh()
		if role.peakBytes > mostMemoryBytes {
			r.violate("I12", "%s took %d MiB of memory, more than %d", name, role.peakBytes>>20, mostMemoryBytes>>20)
		}
		n, _ := strconv.Atoi(valueOf(w.Texts["metrics of "+name], "go_goroutines ")) // none: it has ended
		if n > mostGoroutines {
			r.violate("I12", "%s has %d goroutines at the end, more than %d", name, n, mostGoroutines)
		}
		r.log("%s took %d MiB at most and has %d goroutines", name, role.peakBytes>>20, n)
	}
}
