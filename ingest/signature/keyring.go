package signature

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hookledger/schema/source"
)

// maxSecretBytes bounds a secret's file: a path to something else shall not be read.
const maxSecretBytes = 64 << 10

// key is one secret, ready to check.
type key struct {
	id                  string
	notBefore, notAfter time.Time
	lock                lock
	uses                *uses
	// print tells whether the secret changed between two loads.
	print [sha256.Size]byte
}

// validAt tells whether the secret may match at t; both bounds are included.
func (k *key) validAt(t time.Time) bool {
	return (k.notBefore.IsZero() || !t.Before(k.notBefore)) && (k.notAfter.IsZero() || !t.After(k.notAfter))
}

// uses counts what a secret matched. It survives reloads.
type uses struct {
	matches atomic.Uint64
	last    atomic.Int64 // Unix nanoseconds, 0 for never
}

func (u *uses) count(at time.Time) {
	u.matches.Add(1)
	u.last.Store(at.UnixNano())
}

// Use tells how often a secret matched since the process started. Whether an old
// secret can be removed is seen here.
type Use struct {
	KeyID     string
	NotBefore time.Time
	NotAfter  time.Time
	Matches   uint64
	// LastMatched is zero for never.
	LastMatched time.Time
}

// Keyring holds the secrets of one source. It is safe for concurrent use.
type Keyring struct {
	source  string
	sig     source.Signature
	configs []source.SecretConfig
	scheme  scheme
	log     zerolog.Logger

	keys atomic.Pointer[[]*key]

	mu   sync.Mutex // held while loading
	uses map[string]*uses
}

// NewKeyring reads the secrets of a source. It fails if there is none, if one is
// empty or not in the shape its scheme needs, or if two share an ID.
// What looks odd is logged as a warning and kept as it is.
func NewKeyring(src *source.Source, log zerolog.Logger) (*Keyring, error) {
	return newKeyring(src.Name(), src.Signature(), src.Secrets(), log)
}

func newKeyring(name string, sig source.Signature, configs []source.SecretConfig, log zerolog.Logger) (*Keyring, error) {
	s, err := newScheme(sig)
	if err != nil {
		return nil, fmt.Errorf("read secrets of source %s: %w", name, err)
	}
	k := &Keyring{
		source: name, sig: sig, configs: configs, scheme: s,
		log:  log.With().Str("source", name).Logger(),
		uses: make(map[string]*uses),
	}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads all secrets again. If any cannot be read, all stay as they are and the
// error says which one: half a rotation would refuse the other half.
func (k *Keyring) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, err := k.load()
	if err != nil {
		return fmt.Errorf("read secrets of source %s: %w", k.source, err)
	}
	before := make(map[string]*key)
	for _, old := range k.current() {
		before[old.id] = old
	}
	for i, n := range next {
		// A secret that did not change keeps its place: no second warning, no cold start.
		if old, ok := before[n.id]; ok && old.print == n.print {
			next[i] = old
			continue
		}
		if n.print == ([sha256.Size]byte{}) {
			continue // no secret
		}
		k.log.Info().Str("key_id", n.id).Bool("reload", len(before) > 0).Msg("secret loaded")
	}
	k.keys.Store(&next)
	k.warnIfNoneIsValid(next)
	return nil
}

// warnIfNoneIsValid says that deliveries will all be refused.
func (k *Keyring) warnIfNoneIsValid(keys []*key) {
	now := time.Now()
	if len(keys) > 0 && !slices.ContainsFunc(keys, func(n *key) bool { return n.validAt(now) }) {
		k.log.Warn().Int("secrets", len(keys)).
			Msg("no secret of the source is valid at this time, so every delivery is refused: see not_before and not_after")
	}
}

func (k *Keyring) load() ([]*key, error) {
	if open, ok := k.scheme.(keyless); ok {
		if len(k.configs) > 0 {
			return nil, errors.New("the scheme knows no secret: remove secrets")
		}
		id, l := open.open()
		if l == nil {
			return nil, nil
		}
		return []*key{{id: id, lock: l, uses: k.usesOf(id)}}, nil
	}
	if len(k.configs) == 0 {
		return nil, errors.New("there is none: add one to secrets, or nobody can be believed")
	}
	keys := make([]*key, 0, len(k.configs))
	seen := make(map[string]bool)
	for i, c := range k.configs {
		id, secret, err := readSecret(i, c)
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		if seen[id] {
			return nil, fmt.Errorf("secrets[%d]: another secret has the ID %s: give one of them an id", i, id)
		}
		seen[id] = true
		l, err := k.scheme.lock(secret)
		if err != nil {
			return nil, fmt.Errorf("secrets[%d] (%s): %w", i, id, err)
		}
		n := &key{id: id, notBefore: c.NotBefore, notAfter: c.NotAfter, lock: l, uses: k.usesOf(id), print: sha256.Sum256(secret)}
		if !k.holds(n) {
			for _, w := range oddities(secret, k.sig) {
				k.log.Warn().Str("key_id", id).Msg("secret " + w)
			}
		}
		keys = append(keys, n)
	}
	return keys, nil
}

func (k *Keyring) holds(n *key) bool {
	for _, old := range k.current() {
		if old.id == n.id && old.print == n.print {
			return true
		}
	}
	return false
}

func (k *Keyring) usesOf(id string) *uses {
	if k.uses[id] == nil {
		k.uses[id] = &uses{}
	}
	return k.uses[id]
}

func (k *Keyring) current() []*key {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Uses tells what each secret matched, in the order of the configuration.
func (k *Keyring) Uses() []Use {
	var out []Use
	for _, key := range k.current() {
		u := Use{KeyID: key.id, NotBefore: key.notBefore, NotAfter: key.notAfter, Matches: key.uses.matches.Load()}
		if last := key.uses.last.Load(); last != 0 {
			u.LastMatched = time.Unix(0, last).UTC()
		}
		out = append(out, u)
	}
	return out
}

// Format names the source for every verb, and nothing of its secrets: fmt does not ask
// unexported fields how they print.
func (k *Keyring) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "keyring of source "+k.source)
}

// readSecret returns ID and bytes of a configured secret.
func readSecret(i int, c source.SecretConfig) (string, []byte, error) {
	id := c.ID
	var secret []byte
	switch {
	case c.Env != "":
		text, ok := os.LookupEnv(c.Env)
		if !ok {
			return "", nil, fmt.Errorf("environment variable %s is not set", c.Env)
		}
		if id == "" {
			id = c.Env
		}
		secret = []byte(text)
	case c.File != "":
		if id == "" {
			id = filepath.Base(c.File)
		}
		text, err := readFile(c.File)
		if err != nil {
			return "", nil, err
		}
		secret = bytes.TrimSuffix(text, []byte("\n"))
	default:
		if id == "" {
			id = fmt.Sprintf("value-%d", i+1)
		}
		secret = []byte(string(c.Value))
	}
	if len(bytes.TrimSpace(secret)) == 0 {
		return "", nil, fmt.Errorf("%w (%s)", errEmptySecret, id)
	}
	return id, secret, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecretBytes {
		return nil, fmt.Errorf("read secret: %s is not a file of up to %d bytes", path, maxSecretBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return text, nil
}

// oddities says what about a secret is unusual. Nothing is repaired: some providers
// do have such secrets.
func oddities(secret []byte, sig source.Signature) []string {
	var out []string
	if bytes.HasPrefix(secret, []byte("-----BEGIN ")) {
		return nil // a public key; lock judged it
	}
	if !bytes.Equal(bytes.TrimSpace(secret), secret) {
		out = append(out, "begins or ends with white space, which is taken for a part of it")
	}
	if len(secret) < 16 {
		out = append(out, fmt.Sprintf("has only %d bytes and could be guessed", len(secret)))
	}
	if n := len(secret); n > 16 && n%2 == 1 && isHex(secret) {
		out = append(out, "is hexadecimal with an odd number of digits, so one may have been lost")
	}
	known := len(sig.SecretPrefixes) == 0
	for _, prefix := range sig.SecretPrefixes {
		known = known || bytes.HasPrefix(secret, []byte(prefix))
	}
	if !known {
		out = append(out, "does not begin with "+strings.Join(sig.SecretPrefixes, " or ")+" as this provider's secrets do")
	}
	return out
}

func isHex(text []byte) bool {
	return len(bytes.Trim(text, "0123456789abcdefABCDEF")) == 0
}
