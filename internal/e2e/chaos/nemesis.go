package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"hookledger/internal/testkit"
)

// idle is how long the load may stand still before the next fault comes all the same.
const idle = 700 * time.Millisecond

// mending is the end of a fault that lasts.
type mending struct {
	at time.Time
	do func()
}

// nemesis carries out the steps of the plan, each when the load has come so far, and
// mends them when their time is over. It returns when the last is mended.
func (r *run) nemesis(ctx context.Context, load *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() { // ends with the load
		load.Wait()
		close(ended)
	}()
	over := (<-chan struct{})(ended)
	var later []mending
	steps := r.plan.Steps
	acks, moved := int64(0), time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(steps) > 0 || len(later) > 0 {
		select {
		case <-over:
			over, moved = nil, time.Time{} // what is left comes now
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("carry out the plan: %w", context.Cause(ctx))
		}
		now := time.Now()
		later = slices.DeleteFunc(later, func(m mending) bool {
			due := !m.at.After(now)
			if due {
				m.do()
			}
			return due
		})
		if n := r.client.acks.Load(); n != acks {
			acks, moved = n, now
		}
		if len(steps) == 0 || acks < int64(steps[0].At) && now.Sub(moved) < idle {
			continue
		}
		s := steps[0]
		steps, moved = steps[1:], now
		r.log("at %d acknowledgements: %s %s for %d ms", acks, s.Kind, s.On, s.For)
		if mend := r.strike(ctx, s); mend != nil {
			later = append(later, mending{now.Add(millis(s.For)), mend})
		}
	}
	return nil
}

// strike begins a fault and returns what ends it, nil if it is over at once.
func (r *run) strike(ctx context.Context, s Step) func() {
	switch s.Kind {
	case Kill, Terminate:
		role := r.roles[s.On]
		role.down(map[Kind]syscall.Signal{Kill: syscall.SIGKILL, Terminate: syscall.SIGTERM}[s.Kind])
		r.fire(s.Kind)
		return role.up
	case Freeze:
		role := r.roles[s.On]
		role.signal(syscall.SIGSTOP)
		r.fire(s.Kind)
		return func() { role.signal(syscall.SIGCONT) }
	case Join:
		role := r.roles[roleExtra]
		role.up()
		r.fire(s.Kind)
		return func() { role.down(syscall.SIGTERM) }
	case Zombie:
		return r.zombie(ctx, s)
	case Mirror:
		return r.mirror(ctx)
	case BrokerKill, BrokerFreeze, LeaderMove, CoordinatorMove:
		return r.strikeBroker(ctx, s)
	case Stall, Reset, Cut:
		return r.strikeLink(s)
	case PostgresTerminate, PostgresRestart, PostgresReadOnly, PostgresFull, Rotate, Forget:
		return r.strikePostgres(ctx, s)
	case Rewind:
		if r.rewind(ctx, func(committed int64) int64 { return int64(s.Arg) % (committed + 1) }) {
			r.fire(s.Kind)
		}
	case Clock:
		late := r.author.clockSteps()
		r.client.open.Add(int64(len(late)))
		for i, d := range late {
			r.client.under.Go(func() { r.client.deliver(ctx, r.plan.Deliveries+i, d) }) // ends with its answer
		}
		r.fire(s.Kind)
	case Replay: // after all
	default:
		r.violate("E1", "the plan has an unknown fault %q", s.Kind)
	}
	return nil
}

func (r *run) strikeBroker(ctx context.Context, s Step) func() {
	b := r.stage.brokers
	i := s.Arg % b.size()
	switch s.Kind {
	case BrokerKill:
		b.kill(i)
		r.fire(s.Kind)
		return func() {
			if err := b.launch(i); err != nil {
				r.log("start broker: %v", err)
			}
		}
	case BrokerFreeze:
		b.signal(i, syscall.SIGSTOP)
		r.fire(s.Kind)
		return func() { b.signal(i, syscall.SIGCONT) }
	}
	topic, partition := r.topic, int32(s.Arg%partitions)
	if s.Kind == CoordinatorMove {
		topic, partition = offsetsTopic, coordinatorOf(r.group)
	}
	if err := r.moveLeader(ctx, topic, partition); err != nil {
		r.log("move leader of %s/%d: %v", topic, partition, err)
		return nil
	}
	r.fire(s.Kind)
	return nil
}

// commitMessage is COMMIT on the wire: a statement, and the zero that ends it.
const commitMessage = "commit\x00"

func (r *run) strikeLink(s Step) func() {
	proxies := r.stage.links[s.On]
	each := func(do func(*testkit.Proxy)) func() {
		return func() {
			for _, p := range proxies {
				do(p)
			}
		}
	}
	switch s.Kind {
	case Stall:
		each((*testkit.Proxy).Stall)()
		r.fire(s.Kind)
		return each((*testkit.Proxy).Pass)
	case Reset:
		each((*testkit.Proxy).Reset)()
		r.fire(s.Kind)
		return each((*testkit.Proxy).Pass)
	}
	pattern := "" // whatever passes next
	switch s.On {
	case linkClientIngest:
		pattern = "POST "
	case linkWorkerPostgres:
		pattern = commitMessage
	}
	cut := proxies[s.Arg%len(proxies)].CutAfterForwardOf(pattern)
	r.client.under.Go(func() { // ends with the cut, or soon after
		select {
		case <-cut:
			r.fire(Cut)
		case <-time.After(2 * time.Second):
		}
	})
	return nil
}

// heal ends every fault that is left.
func (r *run) heal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.stage.pass()
	for _, name := range allRoles {
		r.roles[name].calmDown()
		r.roles[name].signal(syscall.SIGCONT)
		r.roles[name].up()
	}
	r.roles[roleExtra].down(syscall.SIGTERM)
	if err := r.stage.brokers.alive(ctx); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	return nil
}
