//go:build unix

package devstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// sharedFolder holds clusters and downloaded binaries when we are root and the
// wanted folder is closed to the account that runs Postgres.
const sharedFolder = "/var/lib/hookledger"

// account is who runs Postgres: ourselves, or, because initdb and postgres
// refuse to run as root, another user.
type account struct {
	name string
	cred *syscall.Credential // nil: ourselves
}

// postgresAccount chooses who runs Postgres. Root gives way to the user
// postgres, else nobody.
func postgresAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid())}, nil
	}
	if err := canSwitchAccount(); err != nil {
		return account{}, err
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("read ids of user %s: %w", name, err)
		}
		return account{name: name, cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return account{}, errors.New("postgres refuses to run as root and there is neither a user postgres nor nobody: " +
		"run as an ordinary user, or create one with `useradd --system postgres`")
}

// other reports whether Postgres runs under another uid than ours.
func (a account) other() bool { return a.cred != nil }

// command prepares a program to run under the account, in dir.
func (a account) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if a.other() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.cred}
	}
	return cmd
}

// own gives path to the account.
func (a account) own(path string) error {
	if !a.other() {
		return nil
	}
	return os.Chown(path, int(a.cred.Uid), int(a.cred.Gid))
}

// reaches tries, as the account, to enter dir and to run the program there.
func (a account) reaches(ctx context.Context, dir, program string, args ...string) error {
	out, err := a.command(ctx, dir, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s in %s as %s: %w %s", program, dir, a.name, err, firstLine(out))
	}
	return nil
}

// home returns the folder, made and owned, in which the account keeps the
// cluster wanted in dir: dir itself if the account reaches it, else a folder
// named after dir below sharedFolder. A folder that already holds a cluster
// comes first, so that data is found again when permissions changed.
func (a account) home(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve data folder: %w", err)
	}
	if !a.other() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("create data folder: %w", err)
		}
		return dir, nil
	}
	candidates := homes(dir)
	for _, home := range candidates {
		if isCluster(filepath.Join(home, dataFolder)) {
			candidates = []string{home}
			break
		}
	}
	var refused []error
	for _, home := range candidates {
		err := a.settle(ctx, home)
		if err == nil {
			return home, nil
		}
		refused = append(refused, err)
	}
	return "", fmt.Errorf("postgres refuses to run as root and user %s can't reach a folder for its data: "+
		"run as an ordinary user, or choose a data folder whose parents all have mode 0755: %w", a.name, errors.Join(refused...))
}

// homes lists where a cluster wanted in dir may live when we are root.
func homes(dir string) []string {
	sum := sha256.Sum256([]byte(dir))
	return []string{dir, filepath.Join(sharedFolder, hex.EncodeToString(sum[:8]))}
}

// settle makes home, gives it to the account and tries it.
func (a account) settle(ctx context.Context, home string) error {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := a.own(home); err != nil {
		return err
	}
	return a.reaches(ctx, home, "/bin/sh", "-c", `: > .reach && rm .reach`)
}
