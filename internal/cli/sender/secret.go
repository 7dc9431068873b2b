package sender

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"hookledger/schema/provider"
)

// secretOf returns the newest secret of source that is valid at now: the one a
// provider signs with in the middle of a rotation. None where the scheme knows none.
func secretOf(source *provider.Source, now time.Time) (provider.Secret, error) {
	if sig := source.Signature(); sig.Secretless() {
		return "", nil
	}
	var chosen *provider.SecretConfig
	for _, c := range source.Secrets() {
		if (!c.NotBefore.IsZero() && now.Before(c.NotBefore)) || (!c.NotAfter.IsZero() && now.After(c.NotAfter)) {
			continue
		}
		if chosen == nil || c.NotBefore.After(chosen.NotBefore) {
			chosen = &c
		}
	}
	if chosen == nil {
		return "", fmt.Errorf("source %s has no secret that is valid now: see not_before and not_after", source.Name())
	}
	secret, err := readSecret(*chosen)
	if err == nil && secret == "" {
		err = errEmpty(*chosen)
	}
	if err != nil {
		return "", fmt.Errorf("read secret of source %s: %w", source.Name(), err)
	}
	return secret, nil
}

func errEmpty(c provider.SecretConfig) error {
	switch {
	case c.Env != "":
		return fmt.Errorf("environment variable %s is not set or empty: set it as the receiver has it", c.Env)
	case c.File != "":
		return fmt.Errorf("file %s is empty: it holds what the receiver has", c.File)
	}
	return errors.New("it is empty")
}

func readSecret(c provider.SecretConfig) (provider.Secret, error) {
	switch {
	case c.Env != "":
		return provider.Secret(os.Getenv(c.Env)), nil
	case c.File != "":
		text, err := os.ReadFile(c.File)
		return provider.Secret(bytes.TrimSuffix(text, []byte("\n"))), err
	}
	return c.Value, nil
}
