//go:build unix

package devstack

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaOptions says where and how the embedded Kafka runs.
type KafkaOptions struct {
	// Dir is a folder for Kafka alone; it is made when missing.
	Dir string
	// Port on 127.0.0.1. Zero takes a free one.
	Port int
	// DefaultPartitions is for topics created without a number. Zero means 12.
	DefaultPartitions int
	// BrokerConfigs are Kafka broker settings by name, such as
	// message.max.bytes.
	BrokerConfigs map[string]string
	// Advertise is the address, host:port, that clients are told: that of a proxy in
	// front. Empty: where it listens.
	Advertise string
	// Log receives warnings and errors of the broker. Nil drops them.
	Log func(message string)
}

// Kafka is a running broker inside this process. Its methods are safe for
// concurrent use.
type Kafka struct {
	cluster *kfake.Cluster
	groups  *groups
	addr    string
	lock    *folderLock
	stop    sync.Once
}

// StartKafka starts a single broker that keeps its records in opts.Dir and
// syncs every write before it acknowledges. Records, group offsets, topic IDs
// and the cluster ID survive restarts, kill -9 included. The caller must Stop
// it.
func StartKafka(_ context.Context, opts KafkaOptions) (*Kafka, error) {
	data := filepath.Join(opts.Dir, dataFolder)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder of Kafka: %w", err)
	}
	lock, err := lockFolder(opts.Dir)
	if err != nil {
		return nil, err
	}
	k := &Kafka{lock: lock}
	if err := k.start(opts, data); err != nil {
		lock.release()
		return nil, fmt.Errorf("start Kafka in %s: %w", opts.Dir, err)
	}
	return k, nil
}

func (k *Kafka) start(opts KafkaOptions, data string) error {
	port, err := choosePort(opts.Port)
	if err != nil {
		return err
	}
	partitions := opts.DefaultPartitions
	if partitions == 0 {
		partitions = 12
	}
	k.cluster, err = kfake.NewCluster(
		kfake.Ports(port), // one port, one broker
		kfake.DataDir(data),
		kfake.SyncWrites(),
		// Used once: an ID found on disk wins. Random, so that a database
		// filled from one folder notices when it meets another.
		kfake.ClusterID(newClusterID()),
		kfake.DefaultNumPartitions(partitions),
		kfake.BrokerConfigs(opts.BrokerConfigs),
		kfake.WithLogger(brokerLog(opts.Log)),
		kfake.ListenFn(opts.listen),
	)
	if err != nil {
		return err
	}
	k.groups = watchGroups(k.cluster, local(port))
	k.addr = k.cluster.ListenAddrs()[0]
	return nil
}

// listen listens as net.Listen does, and says that it is where clients are told.
func (o KafkaOptions) listen(network, addr string) (net.Listener, error) {
	ln, err := net.Listen(network, addr)
	if err != nil || o.Advertise == "" {
		return ln, err
	}
	told, err := net.ResolveTCPAddr(network, o.Advertise)
	if err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("advertise %s: %w", o.Advertise, err)
	}
	return advertised{ln, told}, nil
}

// advertised is a listener that says that it is elsewhere.
type advertised struct {
	net.Listener
	addr net.Addr
}

func (a advertised) Addr() net.Addr { return a.addr }

// Brokers are the addresses to bootstrap from.
func (k *Kafka) Brokers() []string { return []string{k.addr} }

// Stop writes everything out and stops listening. Stopping twice is fine.
func (k *Kafka) Stop(context.Context) error {
	k.stop.Do(func() {
		k.groups.close()
		k.cluster.Close()
		k.lock.release()
	})
	return nil
}

// ResetKafka removes what StartKafka keeps in dir. A broker that runs there is
// an error. Nothing there is fine.
func ResetKafka(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := os.RemoveAll(filepath.Join(dir, dataFolder)); err != nil {
		return fmt.Errorf("remove Kafka's data: %w", err)
	}
	return nil
}

// newClusterID is 16 random bytes in the form Kafka writes cluster IDs.
func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// brokerLog passes on what deserves attention.
type brokerLog func(string)

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	if l != nil && (level == kfake.LogLevelError || level == kfake.LogLevelWarn) {
		l(fmt.Sprintf(format, args...))
	}
}
