package books

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hookledger/internal/cli/app"
	"hookledger/internal/verify"
)

// maxMarkBytes bounds a file that claims to be a mark: 30 bytes are of each partition.
const maxMarkBytes = 4 << 20

// readMark reads the mark of the last increment; nil if there is none yet. A file that
// is no mark is a matter of usage: it is not overwritten.
func readMark(path string) (*verify.Mark, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, app.Usage(fmt.Errorf("read mark: %w", err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxMarkBytes))
	if err != nil {
		return nil, app.Usage(fmt.Errorf("read mark: %w", err))
	}
	var m verify.Mark
	if err := json.Unmarshal(text, &m); err != nil || m.Version == 0 {
		return nil, app.Usage(fmt.Errorf("read mark %s: it is no mark of verify: remove the file, or name another with --mark", path))
	}
	return &m, nil
}

// writeMark replaces the mark at once: a run that is cut leaves the old one.
func writeMark(path string, m *verify.Mark) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // of no use once renamed
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	return nil
}
