package devstack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processesOn lists the Postgres processes whose working folder is data; every
// process of a server has it there. The main process, if any, comes first:
// it has the lowest number unless numbers wrapped around.
func processesOn(_ context.Context, data string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Errors mean that the process just ended or is another user's.
		cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || cwd != data {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "postgres") {
			continue
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
