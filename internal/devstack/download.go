//go:build unix

package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// newestMajor is fetched when no local binaries serve and none in particular are wanted.
const newestMajor = 18

// downloadable are the versions that can be fetched, by major version.
var downloadable = map[int]embeddedpostgres.PostgresVersion{
	15: embeddedpostgres.V15,
	16: embeddedpostgres.V16,
	17: embeddedpostgres.V17,
	18: embeddedpostgres.V18,
}

// downloader fetches Postgres from a Maven repository.
type downloader struct {
	// repository is its address; empty is Maven Central.
	repository string
	// waits are the pauses between attempts, of which there is one more.
	waits []time.Duration
}

var download = downloader{waits: []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second}}

// binaries fetches Postgres of a major version (0: the newest) once into a folder that
// the account reaches, and returns it at once when it is there already. Any number of
// processes may do so at the same time.
func (d downloader) binaries(ctx context.Context, acc account, major int, log func(string)) (binaries, error) {
	if major == 0 {
		major = newestMajor
	}
	version, ok := downloadable[major]
	if !ok {
		return binaries{}, fmt.Errorf("no Postgres %d is here, and it is none that can be downloaded: install the Debian package postgresql-%[1]d", major)
	}
	parent, err := downloadFolder(acc)
	if err != nil {
		return binaries{}, err
	}
	final := filepath.Join(parent, "postgres-"+string(version))
	if b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin")); err == nil {
		return b, nil
	}
	log("no Postgres " + strconv.Itoa(major) + " found here: downloading " + string(version))
	scratch, err := os.MkdirTemp(parent, "download-")
	if err != nil {
		return binaries{}, fmt.Errorf("create download folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	unpacked, err := d.fetch(ctx, scratch, version, log)
	if err != nil {
		return binaries{}, fmt.Errorf("download Postgres %s: %w: check that this machine reaches Maven Central, or install the Debian package postgresql-%d", version, err, major)
	}
	return keep(ctx, acc, unpacked, final, major)
}

// keep moves what was unpacked to its final place, unless another process was faster:
// what is there and works may be running already.
func keep(ctx context.Context, acc account, unpacked, final string, major int) (binaries, error) {
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return binaries{}, fmt.Errorf("open download folder to %s: %w", acc.name, err)
	}
	if b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin")); err == nil {
		return b, nil
	}
	if err := os.Rename(unpacked, final); err != nil {
		// Something stands there: what another process has just kept, or what is broken.
		if b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin")); err == nil {
			return b, nil
		}
		if err := os.RemoveAll(final); err != nil {
			return binaries{}, fmt.Errorf("remove broken download: %w", err)
		}
		if err := os.Rename(unpacked, final); err != nil {
			return binaries{}, fmt.Errorf("keep download: %w", err)
		}
	}
	b, err := inspectBinaries(ctx, acc, filepath.Join(final, "bin"))
	if err != nil {
		return binaries{}, fmt.Errorf("try downloaded Postgres: %w: install the Debian package postgresql-%d", err, major)
	}
	return b, nil
}

// fetch tries until Postgres is unpacked below scratch, and returns where.
func (d downloader) fetch(ctx context.Context, scratch string, version embeddedpostgres.PostgresVersion, log func(string)) (string, error) {
	for attempt := 0; ; attempt++ {
		dir := filepath.Join(scratch, strconv.Itoa(attempt))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		err := d.fetchOnce(ctx, dir, version)
		unpacked := filepath.Join(dir, "postgres")
		_, missing := os.Stat(filepath.Join(unpacked, "bin", "postgres"))
		if missing == nil && ctx.Err() == nil {
			return unpacked, nil
		}
		err = errors.Join(err, missing)
		if attempt == len(d.waits) || ctx.Err() != nil {
			return "", fmt.Errorf("%d attempts: %w", attempt+1, err)
		}
		log(fmt.Sprintf("downloading Postgres again in %s: %v", d.waits[attempt], err))
		timer := time.NewTimer(d.waits[attempt])
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// fetchOnce leaves Postgres in dir/postgres. The library has no call that only
// fetches: its Start also makes a cluster and runs it, which root may not do
// and which we want done our own way. So it gets a data folder that looks
// like a cluster but is none, and the error with which Start ends is to be
// believed only if the binaries are not there.
func (d downloader) fetchOnce(ctx context.Context, dir string, version embeddedpostgres.PostgresVersion) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	notACluster := filepath.Join(dir, "not-a-cluster")
	if err := os.Mkdir(notACluster, 0o700); err != nil {
		return err
	}
	major := strconv.Itoa(majorOf(version))
	if err := os.WriteFile(filepath.Join(notACluster, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig().
		Version(version).
		Port(uint32(port)).
		CachePath(filepath.Join(dir, "cache")).
		BinariesPath(filepath.Join(dir, "postgres")).
		RuntimePath(filepath.Join(dir, "runtime")).
		DataPath(notACluster).
		Logger(io.Discard)
	if d.repository != "" {
		config = config.BinaryRepositoryURL(d.repository)
	}
	// The library waits for a silent server for ever: after ctx it is left to itself, and
	// what it still unpacks is removed with the folder or left over.
	done := make(chan error, 1)
	go func() { done <- embeddedpostgres.NewDatabase(config).Start() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func majorOf(version embeddedpostgres.PostgresVersion) int {
	for major, v := range downloadable {
		if v == version {
			return major
		}
	}
	return 0
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
