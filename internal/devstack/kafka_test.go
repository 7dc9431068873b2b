//go:build unix

package devstack

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ownerEnv makes this test binary own the Kafka and the Postgres of a folder
// until it is killed.
const ownerEnv = "HOOKLEDGER_TEST_DEVSTACK_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		fmt.Println(own(dir))
		select {}
	}
	os.Exit(m.Run())
}

// own starts both parts in dir and returns their addresses in one line.
func own(dir string) string {
	ctx := context.Background()
	k, err := StartKafka(ctx, KafkaOptions{Dir: filepath.Join(dir, "kafka")})
	if err != nil {
		return err.Error()
	}
	p, err := StartPostgres(ctx, PostgresOptions{Dir: filepath.Join(dir, "postgres")})
	if err != nil {
		return err.Error()
	}
	return k.Brokers()[0] + " " + p.URL("postgres")
}

// identity is what the rules for positions rest on.
type identity struct {
	cluster string
	topic   kadm.TopicID
	end     int64 // of partition 0
	epoch   int32
	group   int64 // committed offset of partition 0
}

func identify(ctx context.Context, t *testing.T, broker string) identity {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	meta, err := adm.Metadata(ctx, "topic")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := adm.ListEndOffsets(ctx, "topic")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := adm.FetchOffsets(ctx, "group")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup("topic", 0)
	at, _ := committed.Lookup("topic", 0)
	return identity{
		cluster: meta.Cluster,
		topic:   meta.Topics["topic"].ID,
		end:     end.Offset,
		epoch:   end.LeaderEpoch,
		group:   at.At,
	}
}

// fill creates the topic, writes three records to partition 0 and commits 2.
func fill(ctx context.Context, t *testing.T, broker string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 2, 1, nil, "topic"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "topic", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var next kadm.Offsets
	next.Add(kadm.Offset{Topic: "topic", Partition: 0, At: 2, LeaderEpoch: -1})
	if err := adm.CommitAllOffsets(ctx, "group", next); err != nil {
		t.Fatal(err)
	}
}

func startKafka(ctx context.Context, t *testing.T, opts KafkaOptions) *Kafka {
	t.Helper()
	opts.Log = func(m string) { t.Log(m) }
	k, err := StartKafka(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop(context.Background()) })
	return k
}

func TestStartKafka_RestartKeepsRecordsOffsetsAndIDs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	k := startKafka(ctx, t, KafkaOptions{Dir: dir, Port: port})
	fill(ctx, t, k.Brokers()[0])
	before := identify(ctx, t, k.Brokers()[0])
	if before.end != 3 || before.group != 2 || before.cluster == "" || before.cluster == "kfake" {
		t.Fatalf("before: got %+v, want end 3, committed 2 and a cluster ID of its own", before)
	}
	if _, err := StartKafka(ctx, KafkaOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("second start on one folder: got %v, want that it is in use", err)
	}
	if err := k.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	k = startKafka(ctx, t, KafkaOptions{Dir: dir, Port: port})
	if after := identify(ctx, t, k.Brokers()[0]); after != before {
		t.Fatalf("after a restart: got %+v, want %+v", after, before)
	}
	if err := k.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ResetKafka(dir); err != nil {
		t.Fatal(err)
	}
	k = startKafka(ctx, t, KafkaOptions{Dir: dir, Port: port})
	fill(ctx, t, k.Brokers()[0])
	if fresh := identify(ctx, t, k.Brokers()[0]); fresh.cluster == before.cluster || fresh.topic == before.topic {
		t.Fatalf("after a reset: got %+v, want other IDs than %+v", fresh, before)
	}
}

// The owner of both parts is killed with -9: everything acknowledged is there
// for the next owner, who starts at once.
func TestStart_AfterTheOwnerWasKilled(t *testing.T) {
	t.Parallel()
	ctx, dir := setup(t)
	owner := osexec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	broker, url, ok := strings.Cut(strings.TrimSpace(line), " postgres://")
	if !ok {
		t.Fatalf("owner: %s", line)
	}
	fill(ctx, t, broker)
	execute(ctx, t, "postgres://"+url, `create table kept (n int)`)
	before := identify(ctx, t, broker)
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()

	k := startKafka(ctx, t, KafkaOptions{Dir: filepath.Join(dir, "kafka")})
	if after := identify(ctx, t, k.Brokers()[0]); after != before {
		t.Errorf("Kafka after kill -9: got %+v, want %+v", after, before)
	}
	p := start(ctx, t, PostgresOptions{Dir: filepath.Join(dir, "postgres")})
	t.Cleanup(func() { _ = os.RemoveAll(p.Dir()) }) // may live elsewhere
	execute(ctx, t, p.URL("postgres"), `select * from kept`)
}

// Each call is as one of another process: what keeps them apart is of the machine.
func TestFreePort_NeverTwice(t *testing.T) {
	t.Parallel()
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if err := portFree(port); err != nil {
			t.Errorf("port %d cannot be used: %v", port, err)
		}
		if err := reserve(port); err == nil {
			t.Fatalf("port %d was handed out twice", port)
		}
	}
}
