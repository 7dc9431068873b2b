package app

import (
	"fmt"
	"strings"
	"time"

	"hookledger/internal/config"
	"hookledger/schema/provider"
	"hookledger/schema/source"
)

// Time reads the time of a flag, in UTC; nil if it is empty.
func Time(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, Usage(fmt.Errorf("%s is an RFC 3339 time, such as 2026-11-29T03:00:00Z", flag))
	}
	t = t.UTC()
	return &t, nil
}

// Source returns the configured sources, and the one that --source names; without a name
// the only one that is configured.
func Source(cfg *config.Loaded, name string) (*source.Set, *source.Source, error) {
	if err := cfg.RequireSources(); err != nil {
		return nil, nil, err
	}
	set, err := provider.NewSet(cfg.Sources)
	if err != nil {
		return nil, nil, Usage(err)
	}
	if src, ok := set.ByName(name); ok {
		return set, src, nil
	}
	var names []string
	for _, s := range set.All() {
		names = append(names, s.Name())
	}
	switch {
	case name == "" && len(names) == 1:
		return set, set.All()[0], nil
	case name == "":
		return nil, nil, Usage(fmt.Errorf("--source is needed: one of %s", strings.Join(names, ", ")))
	}
	return nil, nil, Usage(fmt.Errorf("--source %q is not configured: use one of %s", name, strings.Join(names, ", ")))
}
