package config

import (
	"time"

	"hookledger/consumer"
	"hookledger/ingest"
	"hookledger/ingest/payments"
	"hookledger/internal/broker"
	"hookledger/schema/provider"
)

// Config is every setting of hookledger. Each package owns its part: the type, the
// defaults and what is refused; here they are put together.
type Config struct {
	Kafka    broker.Config     `yaml:"kafka"`
	Database Database          `yaml:"database"`
	Ingest   ingest.Config     `yaml:"ingest"`
	Consume  consumer.Config   `yaml:"consume"`
	Payments payments.Config   `yaml:"payments"`
	Dedupe   Dedupe            `yaml:"dedupe"`
	Log      Log               `yaml:"log"`
	Sources  []provider.Config `yaml:"sources"`
}

// Dedupe says how long processed_events remembers an event. The ledger's own two
// walls never forget, so these times are about the cost of a repeat, not about money.
type Dedupe struct {
	// Rotate is the age at which a new generation is opened.
	Rotate time.Duration `yaml:"rotate"`
	// Keep is how long an event is remembered at least.
	Keep time.Duration `yaml:"keep"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Default returns the configuration of someone who wrote none.
func Default() Config {
	return Config{
		Kafka:    broker.DefaultConfig(),
		Ingest:   ingest.DefaultConfig(),
		Consume:  consumer.DefaultConfig(),
		Payments: payments.DefaultConfig(),
		// Five generations of a week: 840 h = topic retention of 720 h + 24 h of segment
		// age, rounded up to whole weeks.
		Dedupe: Dedupe{Rotate: 168 * time.Hour, Keep: 840 * time.Hour},
		Log:    Log{Level: "info", Format: "auto"},
	}
}
