//go:build unix

package devstack

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// preparing is the state of a group that waits for its members' JoinGroup.
const preparing = "PreparingRebalance"

// rebalances sees to it that the rebalance of a group ends. Apache Kafka sets its deadline
// once; the embedded broker sets it anew with each JoinGroup. Who gets no answer asks again,
// so that members who wait for one that was killed would wait for ever, as long as they ask
// in turns.
type rebalances struct {
	cluster *kfake.Cluster
	open    map[string]rebalance // by group
}

// rebalance is one that waits for members.
type rebalance struct {
	epoch int32
	since time.Time     // when it was first seen
	limit time.Duration // the most that a member grants
}

// limitRebalances refuses JoinGroups to rebalances that are overdue, so that the broker's
// deadline passes and it goes on with those who wait. Clients come back by themselves.
func limitRebalances(cluster *kfake.Cluster) {
	r := rebalances{cluster: cluster, open: map[string]rebalance{}}
	// The broker runs one of these at a time.
	cluster.ControlKey(int16(kmsg.JoinGroup), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req, ok := request.(*kmsg.JoinGroupRequest)
		if !ok || !r.overdue(req) {
			return nil, nil, false
		}
		refusal := kmsg.NewPtrJoinGroupResponse()
		refusal.SetVersion(req.Version)
		refusal.MemberID = req.MemberID
		refusal.ErrorCode = kerr.CoordinatorLoadInProgress.Code // the error that means: again, soon
		return refusal, nil, true
	})
}

// overdue reports whether the group waits for members longer than they wanted.
func (r *rebalances) overdue(req *kmsg.JoinGroupRequest) bool {
	group := r.cluster.GroupInfo(req.Group)
	if group == nil || group.State != preparing {
		delete(r.open, req.Group)
		return false
	}
	open := r.open[req.Group]
	if open.since.IsZero() || open.epoch != group.Epoch {
		open = rebalance{epoch: group.Epoch, since: time.Now()}
	}
	open.limit = max(open.limit, time.Duration(req.RebalanceTimeoutMillis)*time.Millisecond)
	r.open[req.Group] = open
	return time.Since(open.since) > open.limit
}
