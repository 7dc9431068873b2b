package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/devstack/process"
	"hookledger/internal/testkit"
)

// brokers is what a stage wants of its Kafka.
type brokers interface {
	// bootstrap are the addresses for a kind of client, empty for one that no fault
	// is meant for.
	bootstrap(link string) []string
	// kill, launch and signal act on one of the processes, from 0; size is how many
	// there are. Launch does not wait.
	kill(i int)
	launch(i int) error
	signal(i int, sig syscall.Signal)
	size() int
	// alive waits until all processes run and are of use.
	alive(ctx context.Context) error
	// durability and replication are what the configuration says of the topic.
	durability() (string, int)
}

// realBrokers are three brokers of Apache Kafka.
type realBrokers struct {
	k    *testkit.KafkaBehind
	down map[int]bool
}

// Kinds of clients of the brokers, each with a listener and proxies of its own.
var listeners = map[string]string{linkIngestKafka: "ingest", linkWorkerKafka: "worker"}

func newRealBrokers(tb testing.TB, links map[string][]*testkit.Proxy) *realBrokers {
	tb.Helper()
	b := &realBrokers{k: testkit.KafkaCluster3Behind(tb, "ingest", "worker"), down: map[int]bool{}}
	for link, kind := range listeners {
		links[link] = b.k.Proxies[kind]
	}
	return b
}

func (b *realBrokers) bootstrap(link string) []string {
	if kind := listeners[link]; kind != "" {
		return b.k.Bootstrap(kind)
	}
	return b.k.Brokers()
}

func (b *realBrokers) size() int { return 3 }

func (b *realBrokers) durability() (string, int) { return "replicated", 3 }

func (b *realBrokers) kill(i int) {
	b.k.Kill(i)
	b.down[i] = true
}

func (b *realBrokers) launch(i int) error {
	if !b.down[i] {
		return nil
	}
	b.down[i] = false
	return b.k.Launch(i)
}

func (b *realBrokers) signal(i int, sig syscall.Signal) {
	if sig == syscall.SIGSTOP {
		b.k.Pause(i)
	} else {
		b.k.Resume(i)
	}
}

func (b *realBrokers) alive(ctx context.Context) error {
	for i := range b.size() {
		b.signal(i, syscall.SIGCONT)
		if err := b.launch(i); err != nil {
			return err
		}
	}
	return b.k.AwaitAlive(ctx)
}

// fakeBroker is the embedded Kafka, as a process. It tells all clients one address, so
// the two links to it are one.
type fakeBroker struct {
	tb    testing.TB
	args  []string
	proxy *testkit.Proxy
	log   string
	proc  *process.Process
	down  bool
}

func newFakeBroker(tb testing.TB, links map[string][]*testkit.Proxy) *fakeBroker {
	tb.Helper()
	dir := tb.TempDir()
	b := &fakeBroker{tb: tb, log: filepath.Join(dir, "broker.log"), down: true}
	port := testkit.FreePort(tb)
	b.proxy = testkit.NewProxy(tb, addr(port))
	links[linkIngestKafka] = []*testkit.Proxy{b.proxy}
	links[linkWorkerKafka] = links[linkIngestKafka]
	b.args = []string{testkit.BuildProgram(tb, "./internal/e2e/kfaked", ""), filepath.Join(dir, "kafka"), strconv.Itoa(port), b.proxy.Addr()}
	if err := b.launch(0); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.proc.Kill() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.alive(ctx); err != nil {
		tb.Fatal(err)
	}
	return b
}

func (b *fakeBroker) bootstrap(string) []string { return []string{b.proxy.Addr()} }

func (b *fakeBroker) size() int { return 1 }

func (b *fakeBroker) durability() (string, int) { return "single", 1 }

func (b *fakeBroker) kill(int) {
	b.proc.Kill()
	b.down = true
}

func (b *fakeBroker) launch(int) error {
	if !b.down {
		return nil
	}
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of the broker: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := exec.Command(b.args[0], b.args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if b.proc, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	b.down = false
	return nil
}

func (b *fakeBroker) signal(_ int, sig syscall.Signal) { _ = b.proc.Signal(sig) }

func (b *fakeBroker) alive(ctx context.Context) error {
	b.signal(0, syscall.SIGCONT)
	if err := b.launch(0); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.bootstrap("")...))
	if err != nil {
		return err
	}
	defer cl.Close()
	return poll(ctx, func() error {
		select {
		case <-b.proc.Done():
			text, _ := os.ReadFile(b.log)
			return fmt.Errorf("the embedded Kafka ended: %w: %s", b.proc.Err(), text)
		default:
		}
		_, err := kadm.NewClient(cl).ListBrokers(ctx)
		return err
	})
}
