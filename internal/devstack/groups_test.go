//go:build unix

package devstack

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// long is a timeout that no test sees the end of.
const long = 2 * time.Minute

// speaker speaks the protocol of groups itself, so that it can fall silent anywhere.
type speaker struct {
	broker    string
	id        string
	session   time.Duration
	rebalance time.Duration
}

// newMember lets the group give out a member ID, which is not a membership yet.
func newMember(ctx context.Context, t *testing.T, k *Kafka, session, rebalance time.Duration) speaker {
	t.Helper()
	m := speaker{broker: k.Brokers()[0], session: session, rebalance: rebalance}
	resp, err := m.join(ctx, t)
	if err != nil || resp.ErrorCode != kerr.MemberIDRequired.Code {
		t.Fatalf("first JoinGroup: got %+v %v, want a member ID", resp, err)
	}
	m.id = resp.MemberID
	return m
}

// join asks on a connection of its own, which ends with the answer or with ctx.
func (m speaker) join(ctx context.Context, t *testing.T) (*kmsg.JoinGroupResponse, error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group = "group"
	req.MemberID = m.id
	req.SessionTimeoutMillis = int32(m.session.Milliseconds())
	req.RebalanceTimeoutMillis = int32(m.rebalance.Milliseconds())
	req.ProtocolType = "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "any"}}
	resp, err := m.request(ctx, t, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.JoinGroupResponse), nil
}

// among reports whether m is a member.
func (m speaker) among(g *kfake.GroupInfo) bool {
	return g != nil && slices.ContainsFunc(g.Members, func(other kfake.GroupMember) bool { return other.MemberID == m.id })
}

// request sends once: what is refused is not tried again.
func (m speaker) request(ctx context.Context, t *testing.T, req kmsg.Request) (kmsg.Response, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(m.broker), kgo.RequestTimeoutOverhead(time.Minute))
	if err != nil {
		t.Error(err)
		return nil, err
	}
	defer cl.Close()
	return cl.Broker(0).Request(ctx, req)
}

// A member falls silent, another waits, a third gives up and asks again before the
// rebalance timeout is over, and so on. The embedded broker then waits for ever; Kafka goes
// on without the silent one.
func TestStartKafka_RebalanceEndsThoughMembersAskAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := startKafka(ctx, t, KafkaOptions{Dir: t.TempDir()})

	silent := newMember(ctx, t, k, long, time.Second)
	alone, err := silent.join(ctx, t)
	if err != nil || alone.ErrorCode != 0 {
		t.Fatalf("join alone: %+v %v", alone, err)
	}

	waiting := newMember(ctx, t, k, long, time.Second)
	answered := make(chan *kmsg.JoinGroupResponse, 1)
	go func() {
		defer close(answered)
		if resp, err := waiting.join(ctx, t); err == nil {
			answered <- resp
		}
	}()
	if _, err := k.cluster.WaitGroupInfo(ctx, "group", func(g *kfake.GroupInfo) bool { return g.State == preparing || g.Epoch > alone.Generation }); err != nil {
		t.Fatal(err)
	}
	insistent := newMember(ctx, t, k, long, time.Second)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		attempt, giveUp := context.WithTimeout(ctx, 100*time.Millisecond)
		_, _ = insistent.join(attempt, t) // no answer, or refused
		giveUp()
		select {
		case resp, ok := <-answered:
			if !ok || resp.ErrorCode != 0 {
				t.Fatalf("JoinGroup of the member that waits: got %+v, want an answer", resp)
			}
			if g := k.cluster.GroupInfo("group"); silent.among(g) {
				t.Errorf("members: got %+v, want none that is silent", g.Members)
			}
			return
		default:
		}
	}
}

// A member is killed while it waits for the answer to its JoinGroup. The embedded broker
// then keeps it without a session timeout, one time in two; Kafka takes its partitions from
// it after that timeout.
func TestStartKafka_KilledWhileItJoins(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	k := startKafka(ctx, t, KafkaOptions{Dir: t.TempDir(), BrokerConfigs: map[string]string{"group.min.session.timeout.ms": "100"}})
	stays := newMember(ctx, t, k, long, long)
	if resp, err := stays.join(ctx, t); err != nil || resp.ErrorCode != 0 {
		t.Fatalf("join alone: %+v %v", resp, err)
	}
	for range 8 {
		killed := newMember(ctx, t, k, long, long) // time enough to become a member
		killed.session = 100 * time.Millisecond
		attempt, kill := context.WithCancel(ctx)
		dead := make(chan struct{})
		go func() {
			defer close(dead)
			_, _ = killed.join(attempt, t)
		}()
		if _, err := k.cluster.WaitGroupInfo(ctx, "group", killed.among); err != nil {
			t.Fatal(err)
		}
		kill()
		<-dead
		resp, err := stays.join(ctx, t)
		if err != nil || resp.ErrorCode != 0 {
			t.Fatalf("join beside one that was killed: %+v %v", resp, err)
		}
		if _, err := k.cluster.WaitGroupInfo(ctx, "group", func(g *kfake.GroupInfo) bool { return !killed.among(g) }); err != nil {
			t.Fatalf("the killed member is in the group for ever: %v", err)
		}
		if !stays.among(k.cluster.GroupInfo("group")) {
			t.Fatal("the member that lives was removed with the dead one")
		}
	}
}
