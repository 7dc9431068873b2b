package consumer

import (
	"errors"
	"fmt"
	"time"
)

// Config is how the worker consumes: the keys consume.* of the configuration.
type Config struct {
	// Admin is the address of health and metrics.
	Admin string `yaml:"admin"`

	// SessionTimeout is how long the group waits for a silent worker before its
	// partitions move. kgo's default of 45 s leaves the partitions of a killed worker
	// idle for so long (measured, franz-go v1.22.3). Zero means 10 s.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// InstanceID makes the worker a static member, so that it is back at once after a
	// restart. Each worker of a group needs its own. Empty: a dynamic member.
	InstanceID string `yaml:"instance_id"`

	// Appliers is how many partitions are applied at once. Zero means the smaller of 4
	// and the database pool.
	Appliers int `yaml:"appliers"`
	// BatchMaxRecords is the most records of one transaction.
	BatchMaxRecords int `yaml:"batch_max_records"`
	// BatchMaxBytes is the most bytes of one transaction; a single larger record still
	// gets one of its own.
	BatchMaxBytes int `yaml:"batch_max_bytes"`
	// BufferBytes bounds the records that were read and wait to be applied, all
	// partitions together. One fetch of each broker comes on top.
	BufferBytes int `yaml:"buffer_bytes"`

	// CheckInterval is how often positions are compared with Postgres, so that a
	// partition without records notices too when Postgres lost commits.
	CheckInterval time.Duration `yaml:"check_interval"`
}

// DefaultConfig returns the configuration of someone who wrote none.
func DefaultConfig() Config {
	return Config{
		Admin:           "127.0.0.1:9091",
		SessionTimeout:  10 * time.Second,
		BatchMaxRecords: 1000,
		BatchMaxBytes:   4 << 20,
		BufferBytes:     12 << 20,
		CheckInterval:   10 * time.Second,
	}
}

// Validate returns every reason why c cannot be used, each ending in the repair.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.SessionTimeout < time.Second || c.SessionTimeout > 30*time.Minute {
		refuse("consume.session_timeout is %s: set 1s to 30m", c.SessionTimeout)
	}
	if c.Appliers < 0 {
		refuse("consume.appliers is %d: set at least 1, or 0 for the default", c.Appliers)
	}
	if c.BatchMaxRecords < 1 || c.BatchMaxRecords > 100_000 {
		refuse("consume.batch_max_records is %d: set 1 to 100000", c.BatchMaxRecords)
	}
	if c.BatchMaxBytes < 1 {
		refuse("consume.batch_max_bytes is %d: set at least 1", c.BatchMaxBytes)
	}
	if c.BufferBytes < 1<<20 {
		refuse("consume.buffer_bytes is %d: set at least 1048576", c.BufferBytes)
	}
	if c.CheckInterval < 10*time.Millisecond {
		refuse("consume.check_interval is %s: set at least 10ms, better some seconds", c.CheckInterval)
	}
	return errors.Join(errs...)
}

// Times that follow from the session timeout, S. In the order in which they must run
// out: a statement (S/2), a batch (S), the worker's share of a rebalance (3 S).

// StatementTimeout bounds a statement of the ledger, and the time its transaction may
// stand still. A frozen worker's locks are gone when its partitions have a new owner.
func (c *Config) StatementTimeout() time.Duration { return c.SessionTimeout / 2 }

// LockTimeout bounds a wait for a lock, below StatementTimeout so that the error tells
// a lock from a slow statement.
func (c *Config) LockTimeout() time.Duration { return c.SessionTimeout * 3 / 10 }

// batchTimeout bounds one attempt to apply a batch, below half the rebalance timeout.
func (c *Config) batchTimeout() time.Duration { return c.SessionTimeout }

// finishTimeout is how long a batch in hand may go on when its partition is revoked or
// the worker stops; then it is rolled back.
func (c *Config) finishTimeout() time.Duration { return c.SessionTimeout / 2 }

func (c *Config) rebalanceTimeout() time.Duration  { return 3 * c.SessionTimeout }
func (c *Config) heartbeatInterval() time.Duration { return min(c.SessionTimeout/4, 3*time.Second) }
