package dev

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hookledger/internal/devstack"
)

// folder is where everything of dev lives.
type folder struct{ path string }

func (f folder) kafka() string    { return filepath.Join(f.path, "kafka") }
func (f folder) postgres() string { return filepath.Join(f.path, "postgres") }
func (f folder) config() string   { return filepath.Join(f.path, "hookledger.yaml") }
func (f folder) secret(source string) string {
	return filepath.Join(f.path, "secrets", source)
}

// reset removes all data. It fails while another dev uses it.
func (f folder) reset(ctx context.Context) error {
	if err := devstack.ResetKafka(f.kafka()); err != nil {
		return err
	}
	return devstack.ResetPostgres(ctx, f.postgres())
}

// keepSecret makes the development secret of a source at the first start. It is kept by
// a reset, so that commands copied earlier still work.
func (f folder) keepSecret(source string, generate func() string) error {
	path := f.secret(source)
	kept, err := os.ReadFile(path)
	if secret := strings.TrimSuffix(string(kept), "\n"); err == nil && secret != "" {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read development secret of %s: %w", source, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep development secret of %s: %w", source, err)
	}
	return writePrivate(path, generate()+"\n")
}

// writePrivate replaces a file of mode 0600 as a whole, so that a reader never sees
// half of it.
func writePrivate(path, text string) error {
	scratch := path + ".new"
	if err := os.WriteFile(scratch, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// An older scratch file may have had another mode.
	if err := os.Chmod(scratch, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(scratch, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func randomHex() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

func stripeSecret() string { return "whsec_" + randomHex() }

// standardSecret is base64 of 32 bytes behind whsec_, as Standard Webhooks write it.
func standardSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}
