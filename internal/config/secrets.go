package config

import (
	"fmt"

	"github.com/rs/zerolog"

	"hookledger/ingest/signature"
	"hookledger/schema/provider"
)

// CheckSecrets reads every secret of every source as ingest does when it starts, and
// returns their number, or every reason why ingest would not start, as an *Error. Odd
// but usable secrets are warnings in log.
func (l *Loaded) CheckSecrets(log zerolog.Logger) (int, error) {
	var problems []error
	n := 0
	for i, c := range l.Sources {
		n += len(c.Secrets)
		source, err := provider.New(c)
		if err == nil {
			_, err = signature.NewKeyring(source, log)
		}
		if err != nil {
			problems = append(problems, l.located(fmt.Errorf("sources[%d].secrets: %w", i, err)))
		}
	}
	if len(problems) > 0 {
		return n, &Error{problems}
	}
	return n, nil
}
