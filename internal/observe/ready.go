package observe

import (
	"sync"
	"time"
)

// Readiness tells why a part cannot work at the moment; nil means it can. It is
// called often and answers at once, from what the part already knows. The error
// is shown to operators: it names what fails and holds no secret.
type Readiness func() error

// Checks are the readiness checks of one process. The zero value has none and is
// ready. It is safe for concurrent use.
type Checks struct {
	mu     sync.Mutex
	checks []check
	// draining is why the process stops taking work for good.
	draining string
	now      func() time.Time
}

type check struct {
	name string
	ask  Readiness
	// since is when the check last changed between failing and fine.
	since   time.Time
	failing bool
}

// CheckState is the answer of one check.
type CheckState struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Error says why it fails.
	Error string `json:"error,omitempty"`
	// Since is when it was first seen to be as it is: a check is asked when somebody asks
	// for the state, so that between two questions it may have begun earlier.
	Since time.Time `json:"since"`
}

// State is the answer of all checks.
type State struct {
	Ready  bool         `json:"ready"`
	Checks []CheckState `json:"checks"`
}

// Add adds a check under a name, such as the role's.
func (c *Checks) Add(name string, ask Readiness) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, check{name: name, ask: ask, since: c.clock(), failing: true})
}

// Drain makes the process not ready from now on, whatever its checks say, so that
// load balancers send nothing more.
func (c *Checks) Drain(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = why
}

// State asks every check. A process without checks yet is not ready: it has not
// started its work.
func (c *Checks) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Ready: len(c.checks) > 0 && c.draining == "", Checks: []CheckState{}}
	now := c.clock()
	for i := range c.checks {
		k := &c.checks[i]
		err := k.ask()
		if (err != nil) != k.failing {
			k.failing, k.since = err != nil, now
		}
		state := CheckState{Name: k.name, OK: err == nil, Since: k.since.UTC()}
		if err != nil {
			state.Error = err.Error()
			s.Ready = false
		}
		s.Checks = append(s.Checks, state)
	}
	if c.draining != "" {
		s.Checks = append(s.Checks, CheckState{Name: "draining", Error: c.draining, Since: now.UTC()})
	}
	return s
}

func (c *Checks) clock() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}
