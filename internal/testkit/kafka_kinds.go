package testkit

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaBehind is three brokers whose clients pass proxies: one for each broker and each
// kind of client, so that what hurts one kind leaves the others alone.
type KafkaBehind struct {
	*KafkaCluster
	// Proxies has one for each broker, by kind of client.
	Proxies map[string][]*Proxy
}

// KafkaCluster3Behind is KafkaCluster3 with a listener more for each kind of client. A
// client of a kind bootstraps from Bootstrap of it, and is told addresses of proxies.
func KafkaCluster3Behind(tb testing.TB, kinds ...string) *KafkaBehind {
	tb.Helper()
	const size = 3
	k := &KafkaBehind{Proxies: map[string][]*Proxy{}}
	extra := kafkaExtra{each: make([][]kafkaListener, size)}
	for _, kind := range kinds {
		for i := range size {
			addr := FreeAddr(tb)
			p := NewProxy(tb, addr)
			k.Proxies[kind] = append(k.Proxies[kind], p)
			extra.each[i] = append(extra.each[i], kafkaListener{
				name: strings.ToUpper(kind), protocol: "PLAINTEXT", addr: addr, advertised: p.Addr(),
			})
		}
	}
	k.KafkaCluster = ownKafka(tb, size, extra)
	return k
}

// Bootstrap are the addresses for clients of a kind.
func (k *KafkaBehind) Bootstrap(kind string) []string {
	var addrs []string
	for _, p := range k.Proxies[kind] {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// Kfake starts Kafka inside this process, in memory, with one broker unless
// opts say otherwise, and closes it after the test. Addresses:
// ListenAddrs. Faults: Control, ControlKey and their relatives.
func Kfake(tb testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	tb.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		tb.Fatalf("start kfake: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}
