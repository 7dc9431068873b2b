//go:build unix

package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// folderLock keeps two processes from using one data folder. The kernel drops
// it when its holder dies, however it dies.
type folderLock struct{ file *os.File }

// lockFolder takes dir/lock or says which process holds it.
func lockFolder(dir string) (*folderLock, error) {
	path := filepath.Join(dir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is in use by process %s: stop it or choose another folder", dir, holder(file))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writeHolder(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write lock file: %w", err)
	}
	return &folderLock{file: file}, nil
}

// release drops the lock. The file stays: removing it would let two processes
// lock two files of one name.
func (l *folderLock) release() { _ = l.file.Close() }

func writeHolder(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(file *os.File) string {
	buf := make([]byte, 20)
	n, _ := file.ReadAt(buf, 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return pid
	}
	return "(unknown)"
}
