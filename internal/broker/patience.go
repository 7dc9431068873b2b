package broker

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience is how long Patiently tries; a broker that is restarted is back by then, or
// another one leads.
const patience = 10 * time.Second

// Patiently calls f until it fails no more, or with what does not pass by itself, or for
// ten seconds, and returns what f said last. It is for commands that look once. kgo
// repeats requests, but not the search for a group's coordinator before them, which fails
// while a broker starts and before any group was ever there. Roles have loops of their
// own, which report.
func Patiently(ctx context.Context, f func() error) error {
	until := time.Now().Add(patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f()
		if err == nil || !passes(err) || time.Now().Add(wait).After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// passes tells whether an error of Kafka may end by itself. A topic that does not exist
// counts as such among Kafka's errors, and is the answer here.
func passes(err error) bool {
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, ErrNoTopic) {
		return false
	}
	var code *kerr.Error
	return errors.As(err, &code) && code.Retriable || kgo.IsRetryableBrokerErr(err)
}
