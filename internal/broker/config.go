package broker

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Values of Config.Durability.
const (
	// Replicated refuses to start on a topic that can lose acknowledged records.
	Replicated = "replicated"
	// Single accepts one copy of each record: for development and tests.
	Single = "single"
)

// recordOverheadBytes is what a record's key, headers and batch framing may need
// beside its value.
const recordOverheadBytes = 64 << 10

// Config says where Kafka is and what the topic is like: the keys kafka.* of the
// configuration.
type Config struct {
	// Brokers are the addresses asked first, host:port.
	Brokers []string `yaml:"brokers"`
	// ClientID is the name under which brokers log us and apply quotas.
	ClientID string `yaml:"client_id"`

	TLS  TLS  `yaml:"tls"`
	SASL SASL `yaml:"sasl"`
	// InsecurePlaintext accepts connections to other machines without TLS: whoever is
	// on the network reads and changes what is sent.
	InsecurePlaintext bool `yaml:"insecure_plaintext"`

	// Topic holds the events.
	Topic string `yaml:"topic"`
	// Partitions is the number of partitions to create the topic with. More can be
	// added by `topics apply`, fewer cannot be had.
	Partitions int `yaml:"partitions"`
	// Replication is the number of copies of each record to create the topic with.
	Replication int `yaml:"replication"`
	// Retention is how long the topic keeps a record: the longest outage, and the
	// furthest rewind, that loses nothing.
	Retention time.Duration `yaml:"retention"`
	// Durability is Replicated or Single.
	Durability string `yaml:"durability"`

	// Group is the consumer group of the workers.
	Group string `yaml:"group"`
}

// DefaultConfig returns the configuration of someone who wrote none.
func DefaultConfig() Config {
	return Config{
		Brokers:     []string{"127.0.0.1:9092"},
		ClientID:    "hookledger",
		Topic:       "payments.events",
		Partitions:  12,
		Replication: 3,
		Retention:   720 * time.Hour,
		Durability:  Replicated,
		Group:       "hookledger",
	}
}

// topicName is what Apache Kafka 4.3 accepts, but for the names "." and "..".
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// maxPartitions catches a slip of the keyboard: each partition costs every broker files
// and memory.
const maxPartitions = 10_000

// Validate returns every reason why c cannot be used, each ending in the repair.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Brokers) == 0 {
		refuse("kafka.brokers is empty: name at least one host:port")
	}
	for _, b := range c.Brokers {
		host, port, _ := net.SplitHostPort(b)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
			refuse("kafka.brokers holds %.100q: write host:port, such as kafka-1:9092", b)
		}
	}
	if !topicName.MatchString(c.Topic) || c.Topic == "." || c.Topic == ".." {
		refuse("kafka.topic is %.100q: name the topic of the events, with 1 to 249 letters, digits and ._-", c.Topic)
	}
	if c.Group == "" {
		refuse("kafka.group is empty: name the consumer group")
	}
	if c.Partitions < 1 || c.Partitions > maxPartitions {
		refuse("kafka.partitions is %d: set 1 to %d", c.Partitions, maxPartitions)
	}
	if c.Replication < 1 || c.Replication > 1<<15-1 {
		refuse("kafka.replication is %d: set at least 1", c.Replication)
	}
	if c.Retention < time.Hour {
		refuse("kafka.retention is %s: set at least 1h, better the longest outage you plan for", c.Retention)
	}
	switch c.Durability {
	case Replicated:
		if c.Replication < minReplicas {
			refuse("kafka.replication is %d with kafka.durability: replicated, which needs %d: raise it, or set kafka.durability: single and accept that losing one broker loses acknowledged webhooks",
				c.Replication, minReplicas)
		}
	case Single:
	default:
		refuse("kafka.durability is %q: set replicated or single", c.Durability)
	}
	return errors.Join(append(errs, c.validateSecurity()...)...)
}

// Warning says what the configuration gives up, or nothing.
func (c *Config) Warning() string {
	var all []string
	if c.Durability == Single {
		all = append(all, "kafka.durability is single: a webhook answered 2xx may exist in one copy, and losing that broker loses the money; not for production")
	}
	if c.InsecurePlaintext && !c.TLS.Enabled {
		all = append(all, "kafka.insecure_plaintext is true: whoever is on the network reads and changes webhooks on their way to the broker")
	}
	return strings.Join(all, "; ")
}

// MinRecordBytes is the smallest max.message.bytes of a topic, and the smallest
// batch limit of a producer, that takes every body of up to maxBodyBytes. Sizes
// count before compression, so a body that compresses badly fits too.
func MinRecordBytes(maxBodyBytes int) int { return maxBodyBytes + recordOverheadBytes }
