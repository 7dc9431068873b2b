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

// groupMember speaks the protocol of groups itself, so that it can fall silent anywhere.
type groupMember struct {
	broker string
	id     string
}

// newMember lets the group give out a member ID, which is not a membership yet.
func newMember(ctx context.Context, t *testing.T, k *Kafka) groupMember {
	t.Helper()
	m := groupMember{broker: k.Brokers()[0]}
	resp, err := m.join(ctx, t)
	if err != nil || resp.ErrorCode != kerr.MemberIDRequired.Code {
		t.Fatalf("first JoinGroup: got %+v %v, want a member ID", resp, err)
	}
	m.id = resp.MemberID
	return m
}

// join asks on a connection of its own, which ends with the answer or with ctx.
func (m groupMember) join(ctx context.Context, t *testing.T) (*kmsg.JoinGroupResponse, error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group = "group"
	req.MemberID = m.id
	req.SessionTimeoutMillis = 120_000
	req.RebalanceTimeoutMillis = 1_000
	req.ProtocolType = "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "any"}}
	resp, err := m.request(ctx, t, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.JoinGroupResponse), nil
}

// request sends once: what is refused is not tried again.
func (m groupMember) request(ctx context.Context, t *testing.T, req kmsg.Request) (kmsg.Response, error) {
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

	silent := newMember(ctx, t, k)
	alone, err := silent.join(ctx, t)
	if err != nil || alone.ErrorCode != 0 {
		t.Fatalf("join alone: %+v %v", alone, err)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = "group", silent.id, alone.Generation
	if _, err := silent.request(ctx, t, sync); err != nil {
		t.Fatal(err)
	}

	waiting := newMember(ctx, t, k)
	answered := make(chan *kmsg.JoinGroupResponse, 1)
	go func() {
		defer close(answered)
		if resp, err := waiting.join(ctx, t); err == nil {
			answered <- resp
		}
	}()
	if _, err := k.cluster.WaitGroupInfo(ctx, "group", func(g *kfake.GroupInfo) bool { return g.State == preparing }); err != nil {
		t.Fatal(err)
	}
	insistent := newMember(ctx, t, k)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		attempt, giveUp := context.WithTimeout(ctx, 100*time.Millisecond)
		_, _ = insistent.join(attempt, t) // no answer, or refused
		giveUp()
		select {
		case resp, ok := <-answered:
			if !ok || resp.ErrorCode != 0 {
				t.Fatalf("JoinGroup of the member that waits: got %+v, want an answer", resp)
			}
			isSilent := func(m kfake.GroupMember) bool { return m.MemberID == silent.id }
			if g := k.cluster.GroupInfo("group"); slices.ContainsFunc(g.Members, isSilent) {
				t.Errorf("members: got %+v, want none that is silent", g.Members)
			}
			return
		default:
		}
	}
}
