//go:build unix && !linux

package devstack

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// processesOn lists the main process of a server that runs on data: its
// command line names the folder.
func processesOn(ctx context.Context, data string) ([]int, error) {
	out, err := exec.CommandContext(ctx, "ps", "-axo", "pid=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		number, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err == nil && strings.Contains(command, "postgres") && strings.Contains(command, "-D "+data+" ") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
