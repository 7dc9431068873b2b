//go:build unix

package devstack

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest Postgres that hookledger supports.
const oldestMajor = 15

// binaries is one installation of Postgres.
type binaries struct {
	dir   string // holds initdb and postgres
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// localFolders are searched after PATH.
var localFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/usr/local/pgsql/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// findBinaries returns local binaries of the wanted major version (0: the
// newest, at least oldestMajor), or ok false. Only binaries that the account
// can run count.
func findBinaries(ctx context.Context, acc account, want int) (found binaries, ok bool) {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		// Debian links single programs into PATH: the folder of the
		// target is the one that has initdb too.
		if target, err := filepath.EvalSymlinks(p); err == nil {
			p = target
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, pattern := range localFolders {
		matches, _ := filepath.Glob(pattern) // fails on bad patterns only
		dirs = append(dirs, matches...)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		b, err := inspectBinaries(ctx, acc, dir)
		if err != nil || b.major < oldestMajor || (want != 0 && b.major != want) {
			continue
		}
		if b.major > found.major {
			found, ok = b, true
		}
	}
	return found, ok
}

// inspectBinaries runs each program we need and reads the version.
func inspectBinaries(ctx context.Context, acc account, dir string) (binaries, error) {
	b := binaries{dir: dir}
	for _, program := range []string{"initdb", "postgres"} {
		out, err := acc.command(ctx, "/", b.path(program), "--version").CombinedOutput()
		if err != nil {
			return b, fmt.Errorf("run %s as %s: %w %s", b.path(program), acc.name, err, firstLine(out))
		}
		if b.major, err = parseMajor(string(out)); err != nil {
			return b, err
		}
	}
	return b, nil
}

// parseMajor reads "postgres (PostgreSQL) 15.14 (Debian …)", "… 18beta1" too.
func parseMajor(version string) (int, error) {
	_, after, _ := strings.Cut(version, "(PostgreSQL) ")
	end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(after)
	}
	major, err := strconv.Atoi(after[:end])
	if err != nil {
		return 0, fmt.Errorf("read postgres version from %q", strings.TrimSpace(version))
	}
	return major, nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
