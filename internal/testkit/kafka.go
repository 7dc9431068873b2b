package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// KafkaCluster is Apache Kafka in KRaft mode: real processes, each a broker
// and a controller. Methods that start and end brokers fail the test on errors
// and are not safe for concurrent use.
type KafkaCluster struct {
	tb      testing.TB
	parts   kafkaInstallation
	dir     string
	brokers []*kafkaBroker
}

var sharedKafka = sync.OnceValues(func() (*KafkaCluster, error) { return newKafkaCluster(1, kafkaExtra{}) })

// Kafka returns the broker that all tests of this process share; the first
// call starts it. Topics and groups need names of their own: UniqueName. It is
// not to be killed, stopped or paused.
func Kafka(tb testing.TB) *KafkaCluster {
	tb.Helper()
	shared, err := sharedKafka()
	if err != nil {
		tb.Fatalf("start Apache Kafka: %v", err)
	}
	return &KafkaCluster{tb: sharedOnly{tb}, parts: shared.parts, dir: shared.dir, brokers: shared.brokers}
}

// Kafka1 starts a broker of the test's own, which it may kill, stop and pause.
func Kafka1(tb testing.TB) *KafkaCluster {
	tb.Helper()
	return ownKafka(tb, 1, kafkaExtra{})
}

// KafkaCluster3 starts three brokers of the test's own. New topics have
// replication 3 and min.insync.replicas 2 unless they say otherwise.
func KafkaCluster3(tb testing.TB) *KafkaCluster {
	tb.Helper()
	return ownKafka(tb, 3, kafkaExtra{})
}

func ownKafka(tb testing.TB, brokers int, extra kafkaExtra) *KafkaCluster {
	tb.Helper()
	k, err := newKafkaCluster(brokers, extra)
	if err != nil {
		tb.Fatalf("start Apache Kafka: %v", err)
	}
	k.tb = tb
	tb.Cleanup(func() {
		for _, b := range k.brokers {
			b.kill()
			if tb.Failed() {
				tb.Logf("the end of the log of broker %d:\n%s", b.id, tail(b.logPath(), 40))
			}
		}
		_ = os.RemoveAll(k.dir) // now rather than when this process ends
	})
	return k
}

// newKafkaCluster formats and starts the brokers and returns when every one
// of them is listed.
func newKafkaCluster(size int, extra kafkaExtra) (*KafkaCluster, error) {
	parts, err := kafkaParts()
	if err != nil {
		return nil, err
	}
	dir, err := scratchDir()
	if err != nil {
		return nil, err
	}
	k := &KafkaCluster{parts: parts, dir: dir}
	if k.brokers, err = planBrokers(parts, dir, size, extra); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*startWithin)
	defer cancel()
	errs := make([]error, size)
	var formats sync.WaitGroup
	for i, b := range k.brokers {
		formats.Go(func() { errs[i] = b.format(ctx) })
	}
	formats.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, b := range k.brokers {
		if err := b.start(); err != nil {
			return nil, err
		}
	}
	if err := k.awaitAlive(ctx); err != nil {
		return nil, fmt.Errorf("%w; the end of the log of broker 1:\n%s", err, tail(k.brokers[0].logPath(), 40))
	}
	return k, nil
}

// Brokers are the addresses to bootstrap from.
func (k *KafkaCluster) Brokers() []string {
	var addrs []string
	for _, b := range k.brokers {
		addrs = append(addrs, b.addr())
	}
	return addrs
}

// Client returns a client for the cluster, closed after the test.
func (k *KafkaCluster) Client(opts ...kgo.Opt) *kgo.Client {
	k.tb.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(k.Brokers()...)}, opts...)...)
	if err != nil {
		k.tb.Fatalf("make Kafka client: %v", err)
	}
	k.tb.Cleanup(cl.Close)
	return cl
}

// Kill ends broker i (from 0) with SIGKILL.
func (k *KafkaCluster) Kill(i int) {
	k.tb.Helper()
	k.mustOwn("Kill")
	k.brokers[i].kill()
}

// Stop ends broker i (from 0) in good order: it hands over what it leads.
func (k *KafkaCluster) Stop(i int) {
	k.tb.Helper()
	k.mustOwn("Stop")
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := k.brokers[i].proc.Stop(ctx, syscall.SIGTERM); err != nil {
		k.tb.Fatalf("stop broker %d: %v", i, err)
	}
}

// Start starts broker i (from 0) again, on its old address and data, and
// returns when every broker that runs is listed and in sync with its partitions.
func (k *KafkaCluster) Start(i int) {
	k.tb.Helper()
	k.mustOwn("Start")
	if err := k.brokers[i].start(); err != nil {
		k.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := k.awaitAlive(ctx); err != nil {
		k.tb.Fatal(err)
	}
}

// Launch starts broker i (from 0) as Start does, and does not wait until it is of use.
func (k *KafkaCluster) Launch(i int) error {
	k.tb.Helper()
	k.mustOwn("Launch")
	return k.brokers[i].start()
}

// AwaitAlive waits until every broker that runs is listed and in sync with its
// partitions, or ctx ends.
func (k *KafkaCluster) AwaitAlive(ctx context.Context) error { return k.awaitAlive(ctx) }

// Pause freezes broker i (from 0): its connections stay open and it does not
// answer. Resume thaws it.
func (k *KafkaCluster) Pause(i int) {
	k.tb.Helper()
	k.mustOwn("Pause")
	if err := k.brokers[i].proc.Signal(syscall.SIGSTOP); err != nil {
		k.tb.Fatal(err)
	}
}

// Resume ends a Pause.
func (k *KafkaCluster) Resume(i int) {
	k.tb.Helper()
	k.mustOwn("Resume")
	if err := k.brokers[i].proc.Signal(syscall.SIGCONT); err != nil {
		k.tb.Fatal(err)
	}
}

// Tool runs one of Kafka's own tools, such as
// org.apache.kafka.tools.consumer.group.ConsumerGroupCommand, and returns what
// it printed. The address of the cluster is added unless args have it.
func (k *KafkaCluster) Tool(ctx context.Context, class string, args ...string) (string, error) {
	if !slices.Contains(args, "--bootstrap-server") {
		args = append([]string{"--bootstrap-server", k.Brokers()[0]}, args...)
	}
	return k.parts.run(ctx, class, args...)
}

// The official tools, by class.
const (
	TopicCommand         = "org.apache.kafka.tools.TopicCommand"
	ConsumerGroupCommand = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
)

// awaitAlive waits until the cluster lists every broker whose process runs and
// each has caught up with its partitions.
func (k *KafkaCluster) awaitAlive(ctx context.Context) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers()...), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := k.missing(ctx, adm)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the brokers: %w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// missing says which running broker is not listed or lags behind.
func (k *KafkaCluster) missing(ctx context.Context, adm *kadm.Client) error {
	once, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	listed, err := adm.ListBrokers(once)
	if err != nil {
		return err
	}
	for _, b := range k.brokers {
		if !b.runs() {
			continue
		}
		if !slices.Contains(listed.NodeIDs(), b.id) {
			return fmt.Errorf("broker %d is not listed", b.id)
		}
		// One that was killed is listed for a while, and its successor with it.
		conn, err := (&net.Dialer{}).DialContext(once, "tcp", b.addr())
		if err != nil {
			return fmt.Errorf("broker %d does not listen: %w", b.id, err)
		}
		_ = conn.Close()
	}
	topics, err := adm.ListTopicsWithInternal(once)
	if err != nil {
		return err
	}
	for _, p := range topics {
		for _, part := range p.Partitions.Sorted() {
			for _, b := range k.brokers {
				if b.runs() && slices.Contains(part.Replicas, b.id) && !slices.Contains(part.ISR, b.id) {
					return fmt.Errorf("broker %d is not in sync with partition %s/%d", b.id, part.Topic, part.Partition)
				}
			}
		}
	}
	return nil
}

// sharedOnly marks the handle of a shared cluster.
type sharedOnly struct{ testing.TB }

func (k *KafkaCluster) mustOwn(what string) {
	k.tb.Helper()
	if _, shared := k.tb.(sharedOnly); shared {
		k.tb.Fatalf("%s on the shared broker would hurt other tests: use Kafka1 or KafkaCluster3", what)
	}
}
