package testkit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hookledger/internal/devstack"
	"hookledger/internal/devstack/process"
)

// testClusterID is fixed: no cluster here meets another.
const testClusterID = "aG9va2xlZGdlci10ZXN0cw"

// kafkaBroker is one node, broker and controller at once.
type kafkaBroker struct {
	parts kafkaInstallation
	id    int32
	port  int
	dir   string
	extra kafkaExtra
	proc  *process.Process
}

// kafkaExtra is what a broker has beyond the plain listener of every test.
type kafkaExtra struct {
	listeners []kafkaListener
	// each has further listeners of each broker, by its place.
	each [][]kafkaListener
	// config are further lines of the configuration.
	config string
}

// kafkaListener has a name, a security protocol and an address.
type kafkaListener struct {
	name, protocol, addr string
	// advertised is what clients are told. Empty: addr.
	advertised string
}

// of is what the broker at this place has.
func (e kafkaExtra) of(place int) kafkaExtra {
	if place < len(e.each) {
		e.listeners = append(slices.Clone(e.listeners), e.each[place]...)
	}
	return e
}

// planBrokers chooses ports and writes each broker's configuration.
func planBrokers(parts kafkaInstallation, dir string, size int, extra kafkaExtra) ([]*kafkaBroker, error) {
	var brokers []*kafkaBroker
	var controllers []int
	var voters []string
	for i := range size {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		controller, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		id := int32(i + 1)
		brokers = append(brokers, &kafkaBroker{parts: parts, id: id, port: port, dir: filepath.Join(dir, fmt.Sprintf("kafka-%d", id)), extra: extra.of(i)})
		controllers = append(controllers, controller)
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", id, controller))
	}
	for i, b := range brokers {
		if err := os.Mkdir(b.dir, 0o755); err != nil {
			return nil, fmt.Errorf("create folder of broker %d: %w", b.id, err)
		}
		if err := os.WriteFile(b.configPath(), b.config(controllers[i], voters), 0o600); err != nil {
			return nil, fmt.Errorf("write configuration of broker %d: %w", b.id, err)
		}
	}
	return brokers, nil
}

func (b *kafkaBroker) addr() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

func (b *kafkaBroker) configPath() string { return filepath.Join(b.dir, "server.properties") }

func (b *kafkaBroker) logPath() string { return filepath.Join(b.dir, "broker.log") }

// config is Kafka's own where durability is concerned, and impatient where
// only waiting is.
func (b *kafkaBroker) config(controllerPort int, voters []string) []byte {
	replication, insync := 1, 1
	if len(voters) > 1 {
		replication, insync = 3, 2
	}
	var listeners, advertised, protocols strings.Builder
	for _, l := range b.extra.listeners {
		fmt.Fprintf(&listeners, ",%s://%s", l.name, l.addr)
		fmt.Fprintf(&advertised, ",%s://%s", l.name, cmp.Or(l.advertised, l.addr))
		fmt.Fprintf(&protocols, ",%s:%s", l.name, l.protocol)
	}
	var c bytes.Buffer
	fmt.Fprintf(&c, `
process.roles=broker,controller
node.id=%d
controller.quorum.voters=%s
listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d%[6]s
advertised.listeners=PLAINTEXT://127.0.0.1:%[3]d%[8]s
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT%[7]s
log.dirs=%[5]s
`, b.id, strings.Join(voters, ","), b.port, controllerPort, filepath.Join(b.dir, "data"), listeners.String(), protocols.String(), advertised.String())
	fmt.Fprintf(&c, `
default.replication.factor=%d
min.insync.replicas=%d
offsets.topic.replication.factor=%[1]d
transaction.state.log.replication.factor=%[1]d
transaction.state.log.min.isr=%[2]d
share.coordinator.state.topic.replication.factor=%[1]d
share.coordinator.state.topic.min.isr=%[2]d
unclean.leader.election.enable=false
auto.create.topics.enable=false
`, replication, insync)
	c.WriteString(`
# Waiting less: a dead broker is noticed after 3 s, not 9; groups form at once.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
replica.lag.time.max.ms=5000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# Small, for three of them beside everything else on two cores.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=2
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=4194304
`)
	c.WriteString(b.extra.config)
	return c.Bytes()
}

// format writes the node's identity into its data folder.
func (b *kafkaBroker) format(ctx context.Context) error {
	_, err := b.parts.run(ctx, "kafka.tools.StorageTool", "format", "-t", testClusterID, "-c", b.configPath())
	return err
}

// start starts the process and does not wait for it to listen. The kernel
// kills it when this test process ends.
func (b *kafkaBroker) start() error {
	log, err := os.OpenFile(b.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of broker %d: %w", b.id, err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	// Not bound to a context: it ends in kill or Stop.
	cmd := b.parts.command(context.Background(), "WARN", "kafka.Kafka", b.configPath())
	cmd.Dir = b.dir
	cmd.Stdout, cmd.Stderr = log, log
	if b.proc, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	return notePID(filepath.Dir(b.dir), b.proc)
}

// notePID leaves the process's number for the janitor until the process ends.
func notePID(dir string, proc *process.Process) error {
	pid := strconv.Itoa(proc.PID())
	path := filepath.Join(dir, pid+".pid")
	if err := os.WriteFile(path, []byte(pid+"\n"), 0o600); err != nil {
		return err
	}
	go func() { // ends with the process
		<-proc.Done()
		_ = os.Remove(path)
	}()
	return nil
}

func (b *kafkaBroker) kill() {
	if b.proc != nil {
		b.proc.Kill()
	}
}

func (b *kafkaBroker) runs() bool {
	select {
	case <-b.proc.Done():
		return false
	default:
		return true
	}
}

// tail returns the last lines of a file, or why it can't.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
