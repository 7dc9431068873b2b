package signature

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hookledger/schema/provider"
)

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// eventually polls, because a file system tells nobody when it has told everybody.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", within, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ring(secrets []provider.SecretConfig, name string, log zerolog.Logger) (*Keyring, provider.Signature, error) {
	c := config(name, "")
	c.Secrets = secrets
	source, err := provider.New(c)
	if err != nil {
		return nil, provider.Signature{}, err
	}
	k, err := NewKeyring(source, log)
	return k, source.Signature(), err
}

// accepts tells whether a delivery signed with secret is accepted at a time.
func accepts(t *testing.T, k *Keyring, sig provider.Signature, secret provider.Secret, at time.Time) (string, error) {
	t.Helper()
	v, err := New(sig, k)
	if err != nil {
		t.Fatal(err)
	}
	r := signed(t, sig, secret, Message{Body: []byte("{}"), At: at})
	got, err := v.Verify(r)
	return got.KeyID(), err
}

func TestKeyring_RefusesSecretsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	empty, lineOnly := filepath.Join(dir, "empty"), filepath.Join(dir, "line")
	write(t, empty, "")
	write(t, lineOnly, "\n")
	t.Setenv("HOOKLEDGER_TEST_EMPTY", "")
	t.Setenv("HOOKLEDGER_TEST_SECRET", acmeSecret)
	for name, tc := range map[string]struct {
		provider string
		secrets  []provider.SecretConfig
		want     string
	}{
		"none":            {"generic", nil, "there is none"},
		"empty env":       {"generic", []provider.SecretConfig{{Env: "HOOKLEDGER_TEST_EMPTY"}}, "the secret is empty"},
		"missing env":     {"generic", []provider.SecretConfig{{Env: "HOOKLEDGER_TEST_MISSING"}}, "HOOKLEDGER_TEST_MISSING is not set"},
		"blanks alone":    {"generic", []provider.SecretConfig{{Value: " \t "}}, "the secret is empty"},
		"empty file":      {"generic", []provider.SecretConfig{{File: empty}}, "the secret is empty"},
		"line feed alone": {"generic", []provider.SecretConfig{{File: lineOnly}}, "the secret is empty"},
		"missing file":    {"generic", []provider.SecretConfig{{File: filepath.Join(dir, "missing")}}, "no such file"},
		"directory":       {"generic", []provider.SecretConfig{{File: dir}}, "is not a file"},
		"same ID":         {"generic", []provider.SecretConfig{{ID: "a", Value: acmeSecret}, {ID: "a", Value: "other-secret-other-secret"}}, "another secret has the ID a"},
		"same variable":   {"generic", []provider.SecretConfig{{Env: "HOOKLEDGER_TEST_SECRET"}, {Env: "HOOKLEDGER_TEST_SECRET"}}, "another secret has the ID"},
		"prefix alone":    {"standardwebhooks", []provider.SecretConfig{{Value: "whsec_"}}, "the secret is empty"},
		"not base64":      {"standardwebhooks", []provider.SecretConfig{{Value: "whsec_!!!!"}}, "not base64"},
		"line in base64":  {"standardwebhooks", []provider.SecretConfig{{Value: standardSecret + "\n"}}, "not base64"},
		"private key":     {"standardwebhooks", []provider.SecretConfig{{Value: "whsk_AAAA"}}, "private key"},
		"short key":       {"standardwebhooks", []provider.SecretConfig{{Value: "whpk_AAAA"}}, "32 bytes"},
	} {
		_, _, err := ring(tc.secrets, tc.provider, zerolog.Nop())
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.want)
		}
	}
	for name, secrets := range map[string][]provider.SecretConfig{
		"empty":       {{}},
		"two places":  {{Env: "A", Value: "b"}},
		"bad ID":      {{ID: "a\nb", Value: acmeSecret}},
		"empty range": {{Value: acmeSecret, NotBefore: noon, NotAfter: noon.Add(-1)}},
	} {
		if _, _, err := ring(secrets, "generic", zerolog.Nop()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestKeyring_NamesAndStripsAsPromised(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "acme-2026")
	write(t, path, acmeSecret+"\n")
	t.Setenv("HOOKLEDGER_TEST_SECRET", acmeSecret+"-env\n")
	log := &logBuffer{}
	k, sig, err := ring([]provider.SecretConfig{
		{File: path}, {Env: "HOOKLEDGER_TEST_SECRET"}, {Value: "short"}, {ID: "own", Value: acmeSecret + "-own"},
	}, "generic", zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[provider.Secret]string{
		acmeSecret:            "acme-2026",
		acmeSecret + "-env\n": "HOOKLEDGER_TEST_SECRET",
		"short":               "value-3",
		acmeSecret + "-own":   "own",
		acmeSecret + "-env":   "",
		acmeSecret + "\n":     "",
	} {
		if got, err := accepts(t, k, sig, secret, noon); got != want || (err == nil) != (want != "") {
			t.Errorf("secret of %d bytes: got %q, %v, want %q", len(secret), got, err, want)
		}
	}
	for _, want := range []string{"white space", "only 5 bytes"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no warning with %q in %s", want, log)
		}
	}
	if strings.Contains(log.String(), acmeSecret) {
		t.Errorf("the log holds a secret: %s", log)
	}
	uses := k.Uses()
	if len(uses) != 4 || uses[0].Matches != 1 || !uses[0].LastMatched.Equal(noon) || uses[0].KeyID != "acme-2026" {
		t.Errorf("got uses %+v", uses)
	}
}

func TestKeyring_WarnsOfForeignPrefixes(t *testing.T) {
	t.Parallel()
	for secret, odd := range map[provider.Secret]bool{"sk_live_0123456789abcdef": true, stripeSecret: false, " " + stripeSecret: true} {
		log := &logBuffer{}
		if _, _, err := ring([]provider.SecretConfig{{Value: secret}}, "stripe", zerolog.New(log)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), `"level":"warn"`); got != odd {
			t.Errorf("warned %v, want %v: %s", got, odd, log)
		}
	}
}

func TestKeyring_ValidityIsInclusive(t *testing.T) {
	t.Parallel()
	k, sig, err := ring([]provider.SecretConfig{
		{ID: "old", Value: "old-secret-old-secret", NotAfter: noon},
		{ID: "new", Value: "new-secret-new-secret", NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour)},
	}, "generic", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		secret provider.Secret
		at     time.Time
		want   Reason
	}{
		{"old-secret-old-secret", noon, ""},
		{"old-secret-old-secret", noon.Add(1), NoMatch},
		{"old-secret-old-secret", noon.Add(-24 * time.Hour), ""},
		{"new-secret-new-secret", noon.Add(-time.Hour), ""},
		{"new-secret-new-secret", noon.Add(-time.Hour - 1), NoMatch},
		{"new-secret-new-secret", noon.Add(time.Hour), ""},
		{"new-secret-new-secret", noon.Add(time.Hour + 1), NoSecret},
	} {
		_, err := accepts(t, k, sig, tc.secret, tc.at)
		if err == nil && tc.want != "" || err != nil && reasonOf(err) != tc.want {
			t.Errorf("%.3s at %s: got %v, want %q", tc.secret, tc.at, err, tc.want)
		}
	}
}

// watched runs Watch over a keyring with one file.
func watched(t *testing.T, path string) (*Keyring, provider.Signature, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	k, sig, err := ring([]provider.SecretConfig{{ID: "file", File: path}}, "generic", zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, []*Keyring{k}, zerolog.New(log)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	return k, sig, log
}

func TestWatch_FollowsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	write(t, path, "first-secret-first")
	k, sig, log := watched(t, path)
	becomes := func(secret provider.Secret) {
		t.Helper()
		eventually(t, 5*time.Second, func() error {
			_, err := accepts(t, k, sig, secret, noon)
			return err
		})
	}
	becomes("first-secret-first")
	write(t, path, "second-secret-second\n")
	becomes("second-secret-second")
	if _, err := accepts(t, k, sig, "first-secret-first", noon); err == nil {
		t.Error("the first secret is still accepted")
	}
	write(t, filepath.Join(dir, "next"), "third-secret-third")
	if err := os.Rename(filepath.Join(dir, "next"), path); err != nil {
		t.Fatal(err)
	}
	becomes("third-secret-third")

	// One that is no secret leaves the last good one in use and says so.
	write(t, path, "")
	eventually(t, 5*time.Second, func() error {
		if !strings.Contains(log.String(), "the old ones stay in use") {
			return fmt.Errorf("no word of it in %s", log)
		}
		return nil
	})
	becomes("third-secret-third")
	write(t, path, "fourth-secret-fourth")
	becomes("fourth-secret-fourth")
	if strings.Contains(log.String(), "-secret-") {
		t.Errorf("the log holds a secret: %s", log)
	}
}

// Kubernetes mounts secrets as links through a link ..data that is swapped.
func TestWatch_FollowsKubernetesSwaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name, secret string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "secret"), secret)
		next := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..v1", "first-secret-first")
	if err := os.Symlink("..data/secret", filepath.Join(dir, "secret")); err != nil {
		t.Fatal(err)
	}
	k, sig, _ := watched(t, filepath.Join(dir, "secret"))
	if _, err := accepts(t, k, sig, "first-secret-first", noon); err != nil {
		t.Fatal(err)
	}
	version("..v2", "second-secret-second")
	eventually(t, 5*time.Second, func() error {
		_, err := accepts(t, k, sig, "second-secret-second", noon)
		return err
	})
}

// Rotation under load: with old and new in the list, nobody is refused, and counters
// survive the reload.
func TestKeyring_RotatesWithoutARefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "old-secret-old-secret")
	write(t, b, "other-secret-other-secret")
	k, sig, err := ring([]provider.SecretConfig{{File: a}, {File: b}}, "generic", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(sig, k)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	r := signed(t, sig, "old-secret-old-secret", Message{Body: []byte("{}"), At: noon})
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := v.Verify(r); err != nil {
					t.Errorf("refused during the rotation: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 50 {
		write(t, b, fmt.Sprintf("new-secret-new-secret-%d", i))
		if err := k.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if uses := k.Uses(); uses[0].KeyID != "a" || uses[0].Matches < 1 {
		t.Errorf("got %+v", uses)
	}
}

func TestSecrets_DoNotPrintThemselves(t *testing.T) {
	t.Parallel()
	const canary = "canary-secret-canary"
	c := config("generic", canary)
	source, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKeyring(source, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&shown, verb, c)
		fmt.Fprintf(&shown, verb, c.Secrets[0].Value)
		fmt.Fprintf(&shown, verb, k)
		fmt.Fprintf(&shown, verb, source.Secrets())
		fmt.Fprintf(&shown, verb, source)
	}
	shown.Write(text)
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%q", canary)} {
		if strings.Contains(shown.String(), form) {
			t.Errorf("a secret prints itself as %s", form)
		}
	}
}
