package testkit

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// janitorScript reads folders, one per line, until this process ends, however
// it ends, and then removes them. Where the kernel does not end our children
// with us, it first ends what the pid files name; Postgres gets SIGQUIT, so
// that it gives its shared memory back.
const janitorScript = `
trap '' INT TERM HUP
set --
while IFS= read -r dir; do set -- "$@" "$dir"; done
for dir in "$@"; do
  if [ "$(uname)" != Linux ]; then
    for file in "$dir"/*.pid; do
      [ -f "$file" ] && kill -9 "$(head -n 1 "$file")"
    done
    for file in "$dir"/data/postmaster.pid "$dir"/*/data/postmaster.pid; do
      [ -f "$file" ] && kill -QUIT "$(head -n 1 "$file")"
    done
  fi
  tries=0
  while rm -rf "$dir"; [ -e "$dir" ] && [ "$tries" -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
done
`

var janitor struct {
	once  sync.Once
	mu    sync.Mutex
	stdin io.WriteCloser
	err   error
}

// removeAtExit has dir removed when this process ends, even by kill -9.
func removeAtExit(dir string) error {
	janitor.once.Do(func() { janitor.stdin, janitor.err = startJanitor() })
	if janitor.err != nil {
		return janitor.err
	}
	if strings.ContainsRune(dir, '\n') {
		return fmt.Errorf("folder name %q contains a line break", dir)
	}
	janitor.mu.Lock()
	defer janitor.mu.Unlock()
	_, err := io.WriteString(janitor.stdin, dir+"\n")
	return err
}

func startJanitor() (io.WriteCloser, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript)
	cmd.Dir = "/"
	// Out of our process group: what ends the group must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to janitor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	return stdin, nil
}

// scratchDir makes a folder that other users may enter and that goes away when
// this process ends.
func scratchDir() (string, error) {
	dir, err := os.MkdirTemp("", "hookledger-test-")
	if err != nil {
		return "", fmt.Errorf("create scratch folder: %w", err)
	}
	if err := removeAtExit(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// moduleRoot is the folder of go.mod: tests run in their package's folder.
var moduleRoot = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("find go.mod: run the tests inside the repository")
		}
		dir = parent
	}
})
