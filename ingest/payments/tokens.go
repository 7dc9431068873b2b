package payments

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// maxTokenBytes bounds a token, so that a path to something else is not read.
const maxTokenBytes = 4 << 10

// token is one bearer token as it is held: its hash, never its text.
type token struct {
	client, id          string
	hash                [sha256.Size]byte
	notBefore, notAfter time.Time
	from                []string
}

// goodAt tells whether the token may be used at t; both bounds are included.
func (t *token) goodAt(now time.Time) bool {
	return (t.notBefore.IsZero() || !now.Before(t.notBefore)) && (t.notAfter.IsZero() || !now.After(t.notAfter))
}

// maySpendFrom tells whether account is one of those the token names.
func (t *token) maySpendFrom(account string) bool {
	if len(t.from) == 0 {
		return true
	}
	for _, pattern := range t.from {
		if matches(pattern, account) {
			return true
		}
	}
	return false
}

// matches tells whether s is what pattern says, where * stands for any characters, none
// among them, and everything else for itself.
func matches(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}

// tokens are all bearer tokens. It is safe for concurrent use.
type tokens struct {
	configs []Token
	log     zerolog.Logger
	current atomic.Pointer[[]token]
	mu      sync.Mutex // held while loading
}

// newTokens reads the tokens. It fails if there is none, if one is empty or cannot be
// sent in a header, or if two clients share one.
func newTokens(configs []Token, log zerolog.Logger) (*tokens, error) {
	t := &tokens{configs: configs, log: log}
	return t, t.reload()
}

// reload reads all tokens again. If any cannot be read, all stay as they are and the
// error says which.
func (t *tokens) reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, err := loadTokens(t.configs)
	if err != nil {
		return fmt.Errorf("read payments.tokens: %w", err)
	}
	before := make(map[[sha256.Size]byte]bool)
	if old := t.current.Load(); old != nil {
		for _, o := range *old {
			before[o.hash] = true
		}
	}
	for i := range next {
		if !before[next[i].hash] {
			t.log.Info().Str("client", next[i].client).Str("token_id", next[i].id).Msg("token loaded")
		}
	}
	t.current.Store(&next)
	return nil
}

func loadTokens(configs []Token) ([]token, error) {
	if len(configs) == 0 {
		return nil, errors.New("there is none, so nobody could pay: add { client: NAME, env: VARIABLE }")
	}
	list := make([]token, 0, len(configs))
	for i, c := range configs {
		id, text, err := readToken(i, c)
		if err != nil {
			return nil, fmt.Errorf("tokens[%d] of client %s: %w", i, c.Client, err)
		}
		n := token{client: c.Client, id: id, hash: sha256.Sum256(text), notBefore: c.NotBefore, notAfter: c.NotAfter, from: c.From}
		for j := range list {
			switch {
			case list[j].hash == n.hash:
				return nil, fmt.Errorf("tokens[%d] of client %s is the same text as tokens[%d] of client %s: make a new one", i, c.Client, j, list[j].client)
			case list[j].client == n.client && list[j].id == n.id:
				return nil, fmt.Errorf("tokens[%d] of client %s: another of its tokens has the ID %s: give one of them an id", i, c.Client, id)
			}
		}
		list = append(list, n)
	}
	return list, nil
}

// readToken returns ID and text of a configured token.
func readToken(i int, c Token) (string, []byte, error) {
	id := c.ID
	or := func(name string) {
		if id == "" {
			id = name
		}
	}
	var text []byte
	switch {
	case c.Env != "":
		or(c.Env)
		value, ok := os.LookupEnv(c.Env)
		if !ok {
			return "", nil, fmt.Errorf("environment variable %s is not set", c.Env)
		}
		text = []byte(value)
	case c.File != "":
		or(filepath.Base(c.File))
		info, err := os.Stat(c.File)
		if err != nil {
			return "", nil, fmt.Errorf("read token: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > maxTokenBytes {
			return "", nil, fmt.Errorf("read token: %s is not a file of up to %d bytes", c.File, maxTokenBytes)
		}
		if text, err = os.ReadFile(c.File); err != nil {
			return "", nil, fmt.Errorf("read token: %w", err)
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
	default:
		or(fmt.Sprintf("value-%d", i+1))
		text = []byte(string(c.Value))
	}
	if len(text) < minTokenBytes {
		return "", nil, fmt.Errorf("token %s has %d bytes and could be guessed: make one of at least %d, such as `openssl rand -hex 32`", id, len(text), minTokenBytes)
	}
	for _, b := range text {
		if b <= ' ' || b > '~' {
			return "", nil, fmt.Errorf("token %s holds white space or a character that no header can carry: make it of printable ASCII", id)
		}
	}
	return id, text, nil
}

// minTokenBytes is the shortest token accepted: 64 bits, if written in hex.
const minTokenBytes = 16

// find returns the token whose text was presented, nil if there is none that is good
// now. It takes the same time for every text: all hashes are compared, whole.
func (t *tokens) find(text string, now time.Time) *token {
	hash := sha256.Sum256([]byte(text))
	list := *t.current.Load()
	found := -1
	for i := range list {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], list[i].hash[:]), i, found)
	}
	if found < 0 || !list[found].goodAt(now) {
		return nil
	}
	return &list[found]
}

// bearer returns the token of an Authorization header, empty if it is not one.
func bearer(values []string) string {
	if len(values) != 1 {
		return ""
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(text, " ")
}
