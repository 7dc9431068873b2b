package gameday

import (
	"fmt"
	"slices"
	"strings"
)

// awaitAlerts waits until all of the alerts fire, while go on happens what happens.
func (s *stack) awaitAlerts(meanwhile func(), want ...string) {
	s.t.Helper()
	s.prom.Await(meanwhile, func(firing map[string]string) error {
		for _, name := range want {
			if firing[name] == "" {
				return fmt.Errorf("got %v firing, want %v", firing, want)
			}
		}
		var words []string
		for name, severity := range firing {
			words = append(words, name+" ("+severity+")")
		}
		slices.Sort(words)
		say("   alerts: %s", strings.Join(words, ", "))
		return nil
	})
}

// awaitCalm waits until none of the alerts fires.
func (s *stack) awaitCalm(gone ...string) {
	s.t.Helper()
	s.prom.Await(func() {}, func(firing map[string]string) error {
		for _, name := range gone {
			if firing[name] != "" {
				return fmt.Errorf("%s still fires", name)
			}
		}
		say("   alerts: %s ended", strings.Join(gone, ", "))
		return nil
	})
}
