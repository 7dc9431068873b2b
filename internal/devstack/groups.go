//go:build unix

package devstack

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// preparing is the state of a group that waits for its members' JoinGroup.
	preparing = "PreparingRebalance"
	// groupInterval is how often groups are looked at.
	groupInterval = 250 * time.Millisecond
)

// groups gives groups of the embedded broker two rules of Apache Kafka that it lacks:
//
//   - A member whose connection is gone when its JoinGroup is answered has no session timeout
//     there, and would keep its partitions for ever. It is made to leave after that timeout.
//   - The deadline of a rebalance is set anew with each JoinGroup there. Who gets no answer
//     asks again, so that members who ask in turns would wait for ever. A rebalance that is
//     overdue admits nobody, so that the deadline passes and it goes on with those who wait.
type groups struct {
	cluster *kfake.Cluster
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	groups map[string]*group
}

// group is what is known of a group whose members spoke to this process.
type group struct {
	epoch   int32
	since   time.Time // when the epoch was first seen
	waits   time.Time // when it was first seen to wait for members, in this epoch
	limit   time.Duration
	members map[string]*member
}

// member is what a member said last.
type member struct {
	at      time.Time
	session time.Duration // its session timeout
	joining int32         // the epoch it wants to leave behind
}

// watchGroups watches until close. addr is where the broker listens.
func watchGroups(cluster *kfake.Cluster, addr string) *groups {
	ctx, stop := context.WithCancel(context.Background())
	g := &groups{cluster: cluster, stop: stop, stopped: make(chan struct{}), groups: map[string]*group{}}
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat} {
		cluster.ControlKey(int16(key), g.control)
	}
	go g.watch(ctx, addr)
	return g
}

func (g *groups) close() {
	g.stop()
	<-g.stopped
}

// control sees each request of a member before the broker does.
func (g *groups) control(request kmsg.Request) (kmsg.Response, error, bool) {
	g.cluster.KeepControl()
	switch req := request.(type) {
	case *kmsg.HeartbeatRequest:
		g.heard(req.Group, req.MemberID)
	case *kmsg.SyncGroupRequest:
		g.heard(req.Group, req.MemberID)
	case *kmsg.JoinGroupRequest:
		if g.join(req) {
			return nil, nil, false
		}
		refusal := kmsg.NewPtrJoinGroupResponse()
		refusal.SetVersion(req.Version)
		refusal.MemberID = req.MemberID
		refusal.ErrorCode = kerr.CoordinatorLoadInProgress.Code // means: again, soon
		return refusal, nil, true
	}
	return nil, nil, false
}

func (g *groups) heard(name, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.groups[name]; known != nil && known.members[id] != nil {
		known.members[id].at = time.Now()
	}
}

// join notes who asks, and reports whether the group may be asked.
func (g *groups) join(req *kmsg.JoinGroupRequest) bool {
	info := g.cluster.GroupInfo(req.Group)
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.see(req.Group, info)
	if req.MemberID != "" {
		known.members[req.MemberID] = &member{at: time.Now(), session: milliseconds(req.SessionTimeoutMillis), joining: known.epoch}
	}
	known.limit = max(known.limit, milliseconds(req.RebalanceTimeoutMillis))
	return known.waits.IsZero() || time.Since(known.waits) <= known.limit
}

// see brings what is known of a group up to date.
func (g *groups) see(name string, info *kfake.GroupInfo) *group {
	if info == nil {
		info = &kfake.GroupInfo{}
	}
	known := g.groups[name]
	if known == nil {
		known = &group{epoch: info.Epoch, since: time.Now(), members: map[string]*member{}}
		g.groups[name] = known
	}
	if known.epoch != info.Epoch {
		known.epoch, known.since, known.waits, known.limit = info.Epoch, time.Now(), time.Time{}, 0
	}
	if info.State != preparing {
		known.waits = time.Time{}
	} else if known.waits.IsZero() {
		known.waits = time.Now()
	}
	return known
}

// watch makes silent members leave.
func (g *groups) watch(ctx context.Context, addr string) {
	defer close(g.stopped)
	tick := time.NewTicker(groupInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range g.names() {
			now := time.Now() // before the look: what is said after it counts for the next one
			info := g.cluster.GroupInfo(name)
			for _, id := range g.silent(name, info, now) {
				leave(ctx, addr, name, id)
			}
		}
	}
}

func (g *groups) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.groups))
	for name := range g.groups {
		names = append(names, name)
	}
	return names
}

// silent returns the members whose session was over at now, and forgets who is no member.
func (g *groups) silent(name string, info *kfake.GroupInfo, now time.Time) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.see(name, info)
	belongs := map[string]bool{}
	if info != nil {
		for _, m := range info.Members {
			belongs[m.MemberID] = true
		}
	}
	var ids []string
	for id, m := range known.members {
		// An answer to JoinGroup, which makes an epoch, begins a session too.
		over := now.Sub(m.at) > m.session && now.Sub(known.since) > m.session
		waiting := !known.waits.IsZero() && m.joining == known.epoch
		switch {
		case !over || waiting:
		case belongs[id]:
			ids = append(ids, id)
		default:
			delete(known.members, id)
		}
	}
	if len(known.members) == 0 {
		delete(g.groups, name)
	}
	return ids
}

// leave does for a member what a session timeout does. What fails is tried again at the
// next look.
func leave(ctx context.Context, addr, group, id string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	req.MemberID = id // before version 3
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: id}}
	_, _ = cl.SeedBrokers()[0].Request(ctx, req)
}

func milliseconds(n int32) time.Duration { return time.Duration(n) * time.Millisecond }
