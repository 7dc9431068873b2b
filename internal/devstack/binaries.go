//go:build unix

package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// oldestMajor is the oldest Postgres that hookledger supports.
const oldestMajor = 15

// downloadVersion is fetched when no local binaries serve.
const downloadVersion = embeddedpostgres.V18

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

// downloadBinaries fetches Postgres once into a folder that the account
// reaches, and returns it at once when it is there already.
func downloadBinaries(ctx context.Context, acc account, log func(string)) (binaries, error) {
	parent, err := downloadFolder(acc)
	if err != nil {
		return binaries{}, err
	}
	final := filepath.Join(parent, "postgres-"+string(downloadVersion))
	if b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin")); err == nil {
		return b, nil
	}
	log("no Postgres " + strconv.Itoa(oldestMajor) + " or newer found here: downloading " + string(downloadVersion))
	scratch, err := os.MkdirTemp(parent, "download-")
	if err != nil {
		return binaries{}, fmt.Errorf("create download folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	unpacked := filepath.Join(scratch, "postgres")
	fetchErr := fetchAndUnpack(scratch, unpacked)
	if _, err := os.Stat(filepath.Join(unpacked, "bin", "postgres")); err != nil {
		return binaries{}, fmt.Errorf("download Postgres %s: %w: check the network, or install Postgres %d or newer (Debian package postgresql)",
			downloadVersion, errors.Join(fetchErr, err), oldestMajor)
	}
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return binaries{}, fmt.Errorf("open download folder to %s: %w", acc.name, err)
	}
	if err := os.RemoveAll(final); err != nil {
		return binaries{}, fmt.Errorf("remove broken download: %w", err)
	}
	if err := os.Rename(unpacked, final); err != nil {
		return binaries{}, fmt.Errorf("keep download: %w", err)
	}
	b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin"))
	if err != nil {
		return binaries{}, fmt.Errorf("try downloaded Postgres: %w: install Postgres %d or newer (Debian package postgresql)", err, oldestMajor)
	}
	return b, nil
}

// fetchAndUnpack leaves Postgres in dir. The library has no call that only
// fetches: its Start also makes a cluster and runs it, which root may not do
// and which we want done our own way. So it gets a data folder that looks
// like a cluster but is none, and the error with which Start ends is to be
// believed only if the binaries are not there.
func fetchAndUnpack(scratch, dir string) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	notACluster := filepath.Join(scratch, "not-a-cluster")
	if err := os.Mkdir(notACluster, 0o700); err != nil {
		return err
	}
	major, _, _ := strings.Cut(string(downloadVersion), ".")
	if err := os.WriteFile(filepath.Join(notACluster, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	return embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		Port(uint32(port)).
		CachePath(filepath.Join(scratch, "cache")).
		BinariesPath(dir).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(notACluster).
		Logger(io.Discard)).Start()
}

// downloadFolder is where downloads are kept: our cache folder, or for root a
// folder that the other account reaches.
func downloadFolder(acc account) (string, error) {
	folder := sharedFolder
	if !acc.other() {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find cache folder: %w", err)
		}
		folder = filepath.Join(cache, "hookledger")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create folder for downloads: %w", err)
	}
	return folder, nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
