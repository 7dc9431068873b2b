//go:build unix

package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hookledger/internal/devstack/process"
)

// What a cluster's folder holds.
const (
	dataFolder   = "data"
	unfinished   = ".new" // suffix of a data folder that initdb still writes
	passwordFile = "password"
	logFile      = "postgres.log"
)

// maxLogBytes is when the log starts afresh at a start.
const maxLogBytes = 16 << 20

// cluster is one data folder and what runs it.
type cluster struct {
	home      string
	acc       account
	bin       binaries
	throwaway bool
}

func (c cluster) data() string { return filepath.Join(c.home, dataFolder) }

// isCluster reports whether initdb finished in data.
func isCluster(data string) bool { return clusterMajor(data) != 0 }

// clusterMajor is the major version that made data, 0 if there is none.
func clusterMajor(data string) int {
	version, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(version)))
	return major
}

// password returns the kept password of Superuser, made on first use. The file
// belongs to the account, because initdb reads it.
func (c cluster) password() (string, error) {
	path := filepath.Join(c.home, passwordFile)
	kept, err := os.ReadFile(path)
	if err == nil && len(kept) > 0 {
		return strings.TrimSpace(string(kept)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read postgres password: %w", err)
	}
	if isCluster(c.data()) {
		return "", fmt.Errorf("the password of the cluster in %s is gone (file %s): restore it or start over with an empty folder", c.home, path)
	}
	password := rand.Text()
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep postgres password: %w", err)
	}
	if err := c.acc.own(path); err != nil {
		return "", fmt.Errorf("give postgres password to %s: %w", c.acc.name, err)
	}
	return password, nil
}

// initialize makes the cluster beside its final place and then moves it there,
// so that a crash never leaves half a cluster that looks whole.
func (c cluster) initialize(ctx context.Context) error {
	scratch := c.data() + unfinished
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("remove unfinished cluster: %w", err)
	}
	args := []string{
		"--pgdata=" + scratch,
		"--username=" + Superuser,
		"--pwfile=" + filepath.Join(c.home, passwordFile),
		"--auth=scram-sha-256",
		"--encoding=UTF8",
		// Bytewise order everywhere: the same on every machine.
		"--locale=C",
	}
	if c.throwaway {
		args = append(args, "--no-sync")
	}
	out, err := c.acc.command(ctx, c.home, c.bin.path("initdb"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make cluster in %s: initdb: %w: %s", c.home, err, bytes.TrimSpace(out))
	}
	if err := os.Rename(scratch, c.data()); err != nil {
		return fmt.Errorf("keep new cluster: %w", err)
	}
	return nil
}

// run starts the server as our own child, not through pg_ctl, so that the
// kernel can tell it when we die.
func (c cluster) run(port int, overrides map[string]string) (*process.Process, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	settings := c.settings(port)
	maps.Copy(settings, overrides)
	args := []string{"-D", c.data()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	// Not bound to a context: the server outlives the call that started it
	// and ends in Stop.
	cmd := exec.Command(c.bin.path("postgres"), args...)
	cmd.Dir = c.home
	cmd.Stdout, cmd.Stderr = log, log
	if c.acc.other() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.acc.cred}
	}
	return process.Start(cmd, syscall.SIGINT)
}

func (c cluster) settings(port int) map[string]string {
	s := map[string]string{
		"listen_addresses": "127.0.0.1",
		"port":             strconv.Itoa(port),
		// TCP only: a socket's path may be too long, and a shared folder for
		// sockets may not exist.
		"unix_socket_directories": "",
		"max_connections":         "200",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_line_prefix":         "%m [%p] %d ",
		"fsync":                   "on",
		"full_page_writes":        "on",
		"synchronous_commit":      "on",
	}
	if c.throwaway {
		s["fsync"], s["full_page_writes"] = "off", "off"
	}
	return s
}

// openLog opens the server's log for appending, emptied when it grew large.
func (c cluster) openLog() (*os.File, error) {
	path := filepath.Join(c.home, logFile)
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open postgres log: %w", err)
	}
	return log, nil
}

// logTail is the last kilobyte of the server's log, for an error message.
func (c cluster) logTail() string {
	log, err := os.ReadFile(filepath.Join(c.home, logFile))
	if err != nil {
		return err.Error()
	}
	if over := len(log) - 1024; over > 0 {
		log = log[over:]
	}
	return string(bytes.TrimSpace(log))
}
