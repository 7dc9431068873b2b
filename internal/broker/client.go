package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	dialTimeout = 5 * time.Second
	keepAlive   = 15 * time.Second
	// metadataMaxAge bounds how long a new partition stays unseen. Metadata is asked
	// for at once whenever a broker says that ours is stale.
	metadataMaxAge = time.Minute
	// metadataMinAge bounds how long a moved leader is looked for in the old place.
	// kgo waits 5 s by default: a whole ack timeout of the receiver.
	metadataMinAge = 250 * time.Millisecond
	// requestTimeoutOverhead is how long a broker may be silent beyond what the
	// request itself allows. A frozen broker is noticed after it.
	requestTimeoutOverhead = 5 * time.Second
	// retryTimeout bounds the retries of one admin or group request. Callers have
	// their own loops, which report; a hidden retry does not.
	retryTimeout = 15 * time.Second
)

// Options returns what the clients of all roles have in common. Roles append their
// own to the result.
func Options(cfg Config, log zerolog.Logger) []kgo.Opt {
	return append(securityOptions(cfg),
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ClientID(cfg.ClientID),
		kgo.WithLogger(logger{log}),
		kgo.MetadataMaxAge(metadataMaxAge),
		kgo.MetadataMinAge(metadataMinAge),
		kgo.RequestTimeoutOverhead(requestTimeoutOverhead),
		kgo.RetryTimeout(retryTimeout),
		kgo.DisableClientMetrics(),
	)
}

// Open returns a client for reading and changing the topic and the group, not for
// records. The caller closes it.
func Open(cfg Config, log zerolog.Logger) (*kgo.Client, error) {
	if err := cfg.CheckSecurity(); err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(Options(cfg, log)...)
	if err != nil {
		return nil, fmt.Errorf("open Kafka client: %w: check kafka.brokers", err)
	}
	return cl, nil
}

// logger gives kgo's log lines to zerolog: kgo's info is our debug, since a client
// tells of each connection. Values are written as text, so that no foreign data can
// forge a line.
type logger struct{ log zerolog.Logger }

func (l logger) Level() kgo.LogLevel {
	switch l.log.GetLevel() {
	case zerolog.TraceLevel:
		return kgo.LogLevelDebug
	case zerolog.DebugLevel:
		return kgo.LogLevelInfo
	case zerolog.InfoLevel, zerolog.WarnLevel:
		return kgo.LogLevelWarn
	case zerolog.ErrorLevel, zerolog.FatalLevel, zerolog.PanicLevel:
		return kgo.LogLevelError
	default:
		return kgo.LogLevelNone
	}
}

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	var e *zerolog.Event
	switch level {
	case kgo.LogLevelError:
		e = l.log.Error()
	case kgo.LogLevelWarn:
		e = l.log.Warn()
	case kgo.LogLevelInfo:
		e = l.log.Debug()
	default:
		e = l.log.Trace()
	}
	for i := 0; i+1 < len(keyvals); i += 2 {
		if err, ok := keyvals[i+1].(error); ok && errors.Is(err, context.Canceled) {
			return // a client being closed, which its owner tells of
		}
		e = e.Str(fmt.Sprint(keyvals[i]), fmt.Sprint(keyvals[i+1]))
	}
	e.Str("component", "kafka").Msg(msg)
}
