package ingest

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// recordOverheadBytes is room for key and headers of a record beside its value: the
// headers of a request are bounded by 16 KiB, ours by less than 4.
const recordOverheadBytes = 64 << 10

// Config is how deliveries are received: the keys ingest.* of the configuration.
type Config struct {
	// Listen is the public address.
	Listen string `yaml:"listen"`
	// Admin is the address of probes and metrics.
	Admin string `yaml:"admin"`
	// TLS is the certificate of the public address.
	TLS TLS `yaml:"tls"`
	// TrustedProxies are the addresses and networks of proxies of ours, such as
	// 10.0.0.0/8. From them X-Forwarded-For is believed, for providers that are told by
	// the sender's address.
	TrustedProxies []string `yaml:"trusted_proxies"`

	// MaxConnections is how many connections are served at once; more wait.
	MaxConnections int `yaml:"max_connections"`
	// MaxBodyBytes is the largest body accepted; a larger one is answered 413.
	MaxBodyBytes int `yaml:"max_body_bytes"`
	// MaxInflightBytes bounds the bodies being received and checked at once. Beyond it
	// a delivery is answered 503.
	MaxInflightBytes int `yaml:"max_inflight_bytes"`

	// AckTimeout is how long the broker may take before the delivery is answered 503.
	AckTimeout time.Duration `yaml:"ack_timeout"`
	// MaxBufferedRecords and MaxBufferedBytes bound what waits for the broker, also
	// what nobody waits for any more. Beyond them a delivery is answered 503 at once.
	MaxBufferedRecords int `yaml:"max_buffered_records"`
	MaxBufferedBytes   int `yaml:"max_buffered_bytes"`

	// ShutdownDelay is how long, after a stop was asked for, deliveries are still
	// accepted while the probe says not ready: until load balancers have noticed.
	ShutdownDelay time.Duration `yaml:"shutdown_delay"`
	// ShutdownTimeout is how long deliveries in hand may then take.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// DefaultConfig returns the configuration of someone who wrote none.
func DefaultConfig() Config {
	return Config{
		Listen: ":8080",
		Admin:  "127.0.0.1:9090",
		// The largest webhooks documented are below 256 KiB.
		// 16 KiB each before a byte of body, so 128 MiB in an attack; four times what 2,000
		// slow senders hold.
		MaxConnections:   8192,
		MaxBodyBytes:     1 << 20,
		MaxInflightBytes: 64 << 20,
		// Providers give up after 5 to 30 s; an answer in time lets them repeat sooner.
		AckTimeout: 5 * time.Second,
		// Two seconds of 5,000 deliveries of 6 KiB.
		MaxBufferedRecords: 10_000,
		MaxBufferedBytes:   64 << 20,
		ShutdownDelay:      0,
		ShutdownTimeout:    20 * time.Second,
	}
}

// Validate returns every reason why c cannot be used, each ending in the repair.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		refuse("ingest.listen is %q: set host:port, such as :8080", c.Listen)
	}
	if err := c.TLS.validate(); err != nil {
		errs = append(errs, err)
	}
	for i, text := range c.TrustedProxies {
		if _, err := readNetwork(text); err != nil {
			refuse("ingest.trusted_proxies[%d] is %.60q: set an address or a network, such as 10.0.0.0/8", i, text)
		}
	}
	if c.MaxConnections < 1 || c.MaxConnections > 1<<20 {
		refuse("ingest.max_connections is %d: set 1 to 1048576, and LimitNOFILE of the process above it", c.MaxConnections)
	}
	if c.MaxBodyBytes < 1<<10 || c.MaxBodyBytes > 64<<20 {
		refuse("ingest.max_body_bytes is %d: set 1KiB to 64MiB", c.MaxBodyBytes)
	}
	// A body that grows is held twice for a moment.
	if least := 2*c.MaxBodyBytes + recordOverheadBytes; c.MaxInflightBytes < least {
		refuse("ingest.max_inflight_bytes is %d: set at least twice max_body_bytes + 64KiB, %d", c.MaxInflightBytes, least)
	}
	least := c.MaxBodyBytes + recordOverheadBytes
	if c.MaxBufferedBytes < least {
		refuse("ingest.max_buffered_bytes is %d: set at least max_body_bytes + 64KiB, %d", c.MaxBufferedBytes, least)
	}
	if c.MaxBufferedRecords < 1 {
		refuse("ingest.max_buffered_records is %d: set at least 1", c.MaxBufferedRecords)
	}
	if c.AckTimeout < 100*time.Millisecond || c.AckTimeout > time.Minute {
		refuse("ingest.ack_timeout is %s: set 100ms to 1m", c.AckTimeout)
	}
	if c.ShutdownDelay < 0 || c.ShutdownDelay > 5*time.Minute {
		refuse("ingest.shutdown_delay is %s: set 0s to 5m", c.ShutdownDelay)
	}
	if c.ShutdownTimeout < time.Second || c.ShutdownTimeout > 5*time.Minute {
		refuse("ingest.shutdown_timeout is %s: set 1s to 5m", c.ShutdownTimeout)
	}
	return errors.Join(errs...)
}
