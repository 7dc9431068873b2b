package payments

import (
	"errors"
	"fmt"
	"net"
	"time"

	"hookledger/schema/provider"
)

// Values of Config.Durability.
const (
	// Replicated refuses to work on a Postgres without a synchronous standby.
	Replicated = "replicated"
	// Single accepts that a payment is on one machine when it is answered 201.
	Single = "single"
)

// Config is how payments are taken: the keys payments.* of the configuration.
type Config struct {
	// Listen is the address clients post to.
	Listen string `yaml:"listen"`
	// Admin is the address of probes and metrics.
	Admin string `yaml:"admin"`

	// Durability is Replicated or Single. Payments are not in the topic, so what
	// Postgres loses of them nothing brings back.
	Durability string `yaml:"durability"`

	// ClaimTTL is how long a request may work on a key before another one takes it over,
	// by the clock of Postgres. Timeouts of statements are a third of it.
	ClaimTTL time.Duration `yaml:"claim_ttl"`
	// KeyTTL is how long a key is remembered, from its claim. Used again later it is new.
	KeyTTL time.Duration `yaml:"key_ttl"`
	// DuplicateWindow is how far apart two payments of one client that mean the same,
	// under different keys, may be to be counted.
	DuplicateWindow time.Duration `yaml:"duplicate_window"`

	// MaxConnections bounds the connections served at once; more wait to be accepted.
	MaxConnections int `yaml:"max_connections"`
	// MaxBodyBytes is the largest body accepted; a larger one is answered 413.
	MaxBodyBytes int `yaml:"max_body_bytes"`
	// AnswerTimeout is how long a request waits for Postgres before it is answered 503.
	// The work in hand goes on, and the next request with the key finds its result.
	AnswerTimeout time.Duration `yaml:"answer_timeout"`

	// Rate bounds the requests of one client, in each process.
	Rate Rate `yaml:"rate"`
	// Tokens say who may pay. Several may name one client: that is how they are rotated.
	Tokens []Token `yaml:"tokens"`

	// ShutdownDelay is how long, after a stop was asked for, payments are still accepted
	// while the probe says not ready: until load balancers have noticed.
	ShutdownDelay time.Duration `yaml:"shutdown_delay"`
	// ShutdownTimeout is how long payments in hand may then take.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// Rate is a token bucket.
type Rate struct {
	// PerSecond is how many requests a second a client may make over time.
	PerSecond float64 `yaml:"per_second"`
	// Burst is how many it may make at once.
	Burst int `yaml:"burst"`
}

// Token is one bearer token of a client: its text is in Env, File or Value.
type Token struct {
	// Client is whose token it is. Keys and payments belong to the client, not the token.
	Client string `yaml:"client"`
	// ID stands for the token in metrics and logs. Empty: the name of the variable, the
	// base name of the file, or value-N with N its place in the list.
	ID string `yaml:"id,omitempty"`
	// Env is the name of an environment variable, File the path of a file that is read
	// again when it changes. Value is the token itself, only with durability single.
	Env   string          `yaml:"env,omitempty"`
	File  string          `yaml:"file,omitempty"`
	Value provider.Secret `yaml:"value,omitempty"`
	// NotBefore and NotAfter bound when the token is good; zero is no bound.
	NotBefore time.Time `yaml:"not_before,omitempty"`
	NotAfter  time.Time `yaml:"not_after,omitempty"`
	// From are patterns of the accounts that may be spent from; * stands for any
	// characters. None: every account.
	From []string `yaml:"from,omitempty"`
}

// DefaultConfig returns the configuration of someone who wrote none.
func DefaultConfig() Config {
	return Config{
		Listen:     ":8081",
		Admin:      "127.0.0.1:9094", // 9092 and 9093 are Kafka's
		Durability: Replicated,
		ClaimTTL:   30 * time.Second,
		KeyTTL:     24 * time.Hour,
		// A person who presses twice, and a client whose retries make a new key each.
		DuplicateWindow: 10 * time.Minute,
		// As many bodies of the largest size are 64 MiB.
		MaxConnections: 4096,
		// The largest payment is 4 texts of 255 bytes, each byte escaped as six.
		MaxBodyBytes:    16 << 10,
		AnswerTimeout:   5 * time.Second,
		Rate:            Rate{PerSecond: 100, Burst: 300},
		ShutdownDelay:   0,
		ShutdownTimeout: 20 * time.Second,
	}
}

// Validate returns every reason why c cannot be used, each ending in the repair. That
// there are tokens, and that they can be read, is seen when a Server is made.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	bounds := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			refuse("payments.%s is %s: set %s to %s", name, d, least, most)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		refuse("payments.listen is %q: set host:port, such as :8081", c.Listen)
	}
	if c.Durability != Replicated && c.Durability != Single {
		refuse("payments.durability is %q: set %s, or %s for development", c.Durability, Replicated, Single)
	}
	bounds("claim_ttl", c.ClaimTTL, time.Second, time.Hour)
	if c.KeyTTL < c.ClaimTTL || c.KeyTTL > 366*24*time.Hour {
		refuse("payments.key_ttl is %s: set payments.claim_ttl (%s) to 8784h", c.KeyTTL, c.ClaimTTL)
	}
	bounds("duplicate_window", c.DuplicateWindow, time.Second, 30*24*time.Hour)
	if c.MaxConnections < 1 || c.MaxConnections > 1<<20 {
		refuse("payments.max_connections is %d: set 1 to 1048576, and LimitNOFILE of the process above it", c.MaxConnections)
	}
	if c.MaxBodyBytes < 1<<10 || c.MaxBodyBytes > 1<<20 {
		refuse("payments.max_body_bytes is %d: set 1KiB to 1MiB", c.MaxBodyBytes)
	}
	bounds("answer_timeout", c.AnswerTimeout, 100*time.Millisecond, time.Minute)
	if !(c.Rate.PerSecond > 0) || c.Rate.PerSecond > 1e6 {
		refuse("payments.rate.per_second is %g: set more than 0, up to 1000000", c.Rate.PerSecond)
	}
	if c.Rate.Burst < 1 || c.Rate.Burst > 1_000_000 {
		refuse("payments.rate.burst is %d: set 1 to 1000000", c.Rate.Burst)
	}
	bounds("shutdown_delay", c.ShutdownDelay, 0, 5*time.Minute)
	bounds("shutdown_timeout", c.ShutdownTimeout, time.Second, 5*time.Minute)
	for i := range c.Tokens {
		for _, err := range c.Tokens[i].problems(c.Durability) {
			refuse("payments.tokens[%d]%w", i, err)
		}
	}
	return errors.Join(errs...)
}

// problems returns what is wrong with a token as configured, each beginning with the
// rest of its key.
func (t *Token) problems(durability string) []error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !isClientName(t.Client) {
		refuse(".client is %.80q: use 1 to 63 lower-case letters, digits and . _ -, beginning with a letter or digit", t.Client)
	}
	n := 0
	for _, set := range []bool{t.Env != "", t.File != "", t.Value != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		refuse(": set one of env, file and value, not %d", n)
	}
	if t.Value != "" && durability != Single {
		refuse(".value: a token in the configuration itself is for development, with payments.durability: single; name it by env or file")
	}
	if !t.NotAfter.IsZero() && t.NotAfter.Before(t.NotBefore) {
		refuse(".not_after lies before not_before: no time is left")
	}
	for j, p := range t.From {
		if p == "" {
			refuse(".from[%d] is empty: write an account, or a pattern such as shop:*", j)
		}
	}
	return errs
}

func isClientName(s string) bool {
	if len(s) < 1 || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		alnum := 'a' <= s[i] && s[i] <= 'z' || '0' <= s[i] && s[i] <= '9'
		if !alnum && (i == 0 || s[i] != '.' && s[i] != '_' && s[i] != '-') {
			return false
		}
	}
	return true
}
