package books

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/broker"
	"hookledger/internal/cli/app"
	"hookledger/internal/cli/console"
	"hookledger/internal/config"
	"hookledger/internal/ops"
	"hookledger/schema"
)

// topicPatience bounds how long a command that can do without waits for Kafka.
const topicPatience = 4 * time.Second

// Found is an event on record, and where its bytes lie.
type Found struct {
	Source, EventID string
	// Topic, Partition and Offset name its record; BodySHA256 is nil if no row tells, since
	// the event was forgotten, or never had one.
	Topic      string
	Partition  int32
	Offset     int64
	BodySHA256 []byte
}

// Find reads which event the ID is, of source, or of any configured source if that is
// empty.
func Find(ctx context.Context, tx pgx.Tx, cfg *config.Loaded, source, id string) (Found, error) {
	l, err := findLife(ctx, tx, sourcesToAsk(cfg, source), id)
	if err != nil {
		return Found{}, err
	}
	return l.found()
}

func (l *life) found() (Found, error) {
	f := Found{Source: l.source, EventID: l.id}
	if e := l.Event; e != nil {
		hash, err := hex.DecodeString(e.BodySHA256)
		if err != nil {
			return f, fmt.Errorf("read hash of event: %w", err)
		}
		f.Topic, f.Partition, f.Offset, f.BodySHA256 = e.Topic, e.Partition, e.Offset, hash
	}
	return f, nil
}

// sourcesToAsk are those that may know an event.
func sourcesToAsk(cfg *config.Loaded, source string) []string {
	if source != "" {
		return []string{source}
	}
	return cfg.SourceKeys()
}

// Read reads the record of f from the topic. It fails with ops.ErrRecordGone if the topic
// holds another one there, too.
func (f *Found) Read(ctx context.Context, a *app.App, cfg *config.Loaded) (*kgo.Record, error) {
	if err := cfg.Kafka.CheckSecurity(); err != nil {
		return nil, app.Usage(err)
	}
	r, err := ops.ReadRecord(ctx, broker.Options(cfg.Kafka, a.Quiet()), f.Topic, f.Partition, f.Offset)
	if err != nil {
		return nil, err
	}
	if hash := sha256.Sum256(r.Value); !bytes.Equal(hash[:], f.BodySHA256) {
		return nil, fmt.Errorf("read record %s/%d@%d: another record lies there: %w", f.Topic, f.Partition, f.Offset, ops.ErrRecordGone)
	}
	return r, nil
}

// HeadersOf returns the headers of a record.
func HeadersOf(r *kgo.Record) []schema.Header {
	list := make([]schema.Header, len(r.Headers))
	for i, h := range r.Headers {
		list[i] = schema.Header{Key: h.Key, Value: h.Value}
	}
	return list
}

// fromTopic adds to the event's record what only the topic knows. Without Kafka the life
// is told without it.
func (l *life) fromTopic(ctx context.Context, a *app.App, cfg *config.Loaded) error {
	if l.Event == nil {
		return nil
	}
	f, err := l.found()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	one := &l.Records[0]
	r, err := f.Read(ctx, a, cfg)
	if err != nil {
		missing := err.Error()
		one.Missing = &missing
		return nil
	}
	one.Time, one.Headers = console.JSONTime(r.Timestamp), console.Headers(HeadersOf(r))
	return nil
}
