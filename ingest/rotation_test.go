package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookledger/ingest/signature"
	"hookledger/internal/testkit"
	"hookledger/schema/provider"
)

// rotation is a provider that signs with one secret after the other, under load.
type rotation struct {
	b *bundle
	// mu is held for reading while a delivery is signed and answered: a provider that
	// stopped to use a secret has nothing on its way that is signed with it.
	mu       sync.RWMutex
	secret   provider.Secret
	accepted atomic.Int64
	refused  atomic.Int64
}

// deliver sends one event and returns the status it was answered with.
func (r *rotation) deliver(secret provider.Secret, id string) (int, error) {
	src, _ := r.b.sources.ByName("acme")
	m, err := signature.Sign(src.Signature(), secret, signature.Message{Header: http.Header{}, Body: []byte(event(id)), At: time.Now()})
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequest(http.MethodPost, r.b.url+"acme", bytes.NewReader(m.Body))
	if err != nil {
		return 0, err
	}
	request.Header = m.Header
	request.Header.Set("Content-Type", "application/json")
	a, err := send(http.DefaultClient, request)
	return a.code, err
}

// load delivers until stop is closed.
func (r *rotation) load(t *testing.T, worker int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		r.mu.RLock()
		code, err := r.deliver(r.secret, fmt.Sprintf("w%d-%d", worker, i))
		r.mu.RUnlock()
		switch {
		case err != nil:
			t.Errorf("deliver: %v", err)
			return
		case code == 202:
			r.accepted.Add(1)
		default:
			t.Errorf("got %d during the rotation, want 202", code)
			r.refused.Add(1)
			return
		}
	}
}

// flow waits until n more deliveries were accepted.
func (r *rotation) flow(t *testing.T, n int64) {
	t.Helper()
	goal := r.accepted.Load() + n
	testkit.Eventually(t, 2*time.Minute, func() error {
		if got := r.accepted.Load(); got < goal && r.refused.Load() == 0 {
			return fmt.Errorf("%d of %d deliveries", got, goal)
		}
		return nil
	})
}

// Three rotations while deliveries come: the new secret is added beside the old one, the
// provider goes over, the old one is taken away. Nobody is refused, and the old secret is.
func TestServer_RotatesSecretsUnderLoadWithoutARefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := [2]string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	secretOf := func(n int) provider.Secret {
		return provider.Secret(fmt.Sprintf("secret-of-rotation-%d-0123456789", n))
	}
	write := func(path string, secret provider.Secret) {
		t.Helper()
		// As a secret's owner does it: a new file in place of the old one.
		if err := os.WriteFile(path+".new", []byte(string(secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(paths[0], secretOf(0))
	write(paths[1], "nobody-signs-with-this-0123456789")
	b := setup(t, options{
		sources: func(all []provider.Config) {
			all[1].Secrets = []provider.SecretConfig{{ID: "one", File: paths[0]}, {ID: "two", File: paths[1]}}
		},
	})
	r := &rotation{b: b, secret: secretOf(0)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() { r.load(t, worker, stop) })
	}
	defer wg.Wait()
	defer close(stop)
	r.flow(t, 20)
	for n := 1; n <= 3; n++ {
		next := secretOf(n)
		write(paths[n%2], next) // the place that the secret before the last one had
		testkit.Eventually(t, 2*time.Minute, func() error {
			code, err := r.deliver(next, fmt.Sprintf("probe-%d", n))
			if err == nil && code != 202 {
				err = errors.New("the new secret is not known yet")
			}
			return err
		})
		r.flow(t, 20)
		r.mu.Lock()
		r.secret = next
		r.mu.Unlock()
		r.flow(t, 20)
		write(paths[(n+1)%2], "nobody-signs-with-this-0123456789")
		if n == 2 { // by the command of an operator instead of by the file's change
			if err := b.server.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		testkit.Eventually(t, 2*time.Minute, func() error {
			code, err := r.deliver(secretOf(n-1), fmt.Sprintf("old-%d", n))
			if err == nil && code != 400 {
				err = errors.New("the old secret is still accepted")
			}
			return err
		})
		r.flow(t, 20)
	}
	for _, id := range []string{"one", "two"} {
		if got := b.counter("matches", "acme", id); got < 20 {
			t.Errorf("got %v matches of %s", got, id)
		}
	}
}
