package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"hookledger/internal/broker"
	"hookledger/internal/ledger/memory"
	"hookledger/schema/provider"
)

// validate asks every package about its part and tells where each refused value
// came from.
func (l *Loaded) validate() []error {
	var problems []error
	collect := func(err error) {
		for _, e := range flatten(err) {
			problems = append(problems, l.located(e))
		}
	}
	collect(l.Kafka.Validate())
	collect(l.Database.validate())
	collect(l.Ingest.Validate())
	collect(l.Consume.Validate())
	collect(l.Payments.Validate())
	collect(l.Dedupe.validate())
	collect(l.Log.validate())
	collect(l.validateSources())
	return problems
}

func (d *Dedupe) validate() error {
	most := memory.MaxKept * d.Rotate
	switch {
	case d.Rotate <= 0 || most/memory.MaxKept != d.Rotate:
		return fmt.Errorf("dedupe.rotate is %s: set a positive duration such as 168h", durationText(d.Rotate))
	case d.Keep < d.Rotate:
		return fmt.Errorf("dedupe.keep is %s, less than dedupe.rotate (%s): events are forgotten a whole generation at a time, and one holds those of dedupe.rotate; set dedupe.keep from %s to %s",
			durationText(d.Keep), durationText(d.Rotate), durationText(d.Rotate), durationText(most))
	case d.Keep > most:
		return fmt.Errorf("dedupe.keep is %s, more than %d times dedupe.rotate (%s): of the %d generations one is open, one is being emptied, "+
			"and the others would have to hold more; set dedupe.keep to at most %s, or dedupe.rotate to at least %s",
			durationText(d.Keep), memory.MaxKept, durationText(d.Rotate), memory.Generations, durationText(most),
			durationText((d.Keep+memory.MaxKept-1)/memory.MaxKept))
	}
	return nil
}

// segmentAge is how much longer than kafka.retention a record can stay in the topic:
// retention removes whole segments, and the topic is created with segments of at most
// this age.
const segmentAge = 24 * time.Hour

// MemoryWarning says that events are forgotten while the topic may still hold them, so
// that a replay meets the ledger's walls alone; empty if they are not.
func (c *Config) MemoryWarning() string {
	if c.Dedupe.Keep >= c.Kafka.Retention+segmentAge {
		return ""
	}
	return fmt.Sprintf("dedupe.keep (%s) is less than kafka.retention + 24h (%s): a replay reaches events that are forgotten. "+
		"No money moves twice, but such events cost more, and those that were ignored are mapped by today's configuration; raise dedupe.keep, and dedupe.rotate with it",
		durationText(c.Dedupe.Keep), durationText(c.Kafka.Retention+segmentAge))
}

func (l *Log) validate() error {
	var errs []error
	switch l.Level {
	case "debug", "info", "warn", "error":
	default:
		errs = append(errs, errors.New("log.level must be debug, info, warn or error"))
	}
	switch l.Format {
	case "auto", "json", "console":
	default:
		errs = append(errs, errors.New("log.format must be auto, json or console"))
	}
	return errors.Join(errs...)
}

// validateSources asks package provider, and adds what depends on the rest of the
// configuration.
func (l *Loaded) validateSources() error {
	var errs []error
	for i, s := range l.Sources {
		path := fmt.Sprintf("sources[%d].secrets", i)
		d, err := provider.Definition(s.Provider)
		if secretless := err == nil && d.Signature.Secretless(); len(s.Secrets) == 0 && !secretless {
			errs = append(errs, fmt.Errorf("%s: source %.63q has no secret, so anybody could post money: add { env: NAME } or { file: PATH }", path, s.Name))
		}
		for j, secret := range s.Secrets {
			if secret.Value != "" && l.Kafka.Durability != broker.Single {
				errs = append(errs, fmt.Errorf("%s[%d].value: a secret in the configuration itself is for development, with kafka.durability: single; name it by env or file", path, j))
			}
		}
	}
	_, err := provider.NewSet(l.Sources)
	return errors.Join(append(errs, err)...)
}

// SourceKeys lists the keys under which the sources' events are recorded.
func (l *Loaded) SourceKeys() []string {
	var keys []string
	for _, s := range l.Sources {
		keys = append(keys, or(s.Key, s.Name))
	}
	return keys
}

// RequireDatabase returns an error that says how to name the database, if none is.
func (l *Loaded) RequireDatabase() error {
	if l.Database.URL != "" {
		return nil
	}
	return &Error{[]error{fmt.Errorf("database.url is not set%s: set it there or in %s, or start `hookledger dev`, which brings a database",
		l.fileHint(), envOf("database.url"))}}
}

// RequireSources returns an error that says how to add a source, if there is none.
func (l *Loaded) RequireSources() error {
	if len(l.Sources) > 0 {
		return nil
	}
	return &Error{[]error{fmt.Errorf("no sources are configured%s: add at least one to the list sources", l.fileHint())}}
}

func (l *Loaded) fileHint() string {
	if l.File == "" {
		return " (no configuration file was found: name one with --config)"
	}
	return " in " + l.File
}

var leadingPath = regexp.MustCompile(`^[a-z_]+(\[\d+\])?(\.[a-z_]+(\[\d+\])?)*`)

// located puts the place where a value was set before an error that begins with
// the path of its key.
func (l *Loaded) located(err error) error {
	path := leadingPath.FindString(err.Error())
	for path != "" {
		if origin, ok := l.origins[path]; ok {
			return fmt.Errorf("%s: %w", origin, err)
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return err
}

// flatten takes joined errors apart; an error that merely wraps several stays whole.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
