package ops_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ops"
	"hookledger/schema"
)

func TestSecretMatches_CountsBySecretSinceThen(t *testing.T) {
	t.Parallel()
	cl, brokers, begin := newLog(t) // twenty records without headers, up to an hour old
	now := time.Now().Truncate(time.Millisecond)
	for i, r := range []struct {
		source, key string
		age         time.Duration
	}{
		{"stripe", "old", 3 * time.Hour}, {"stripe", "old", 50 * time.Minute}, {"stripe", "new", 40 * time.Minute},
		{"acme", "old", 30 * time.Minute}, {"stripe", "new", 20 * time.Minute},
	} {
		record := &kgo.Record{Topic: topic, Partition: int32(i % 2), Timestamp: now.Add(-r.age), Value: []byte("{}"), Headers: []kgo.RecordHeader{
			{Key: schema.HeaderHLSource, Value: []byte(r.source)}, {Key: schema.HeaderHLKeyID, Value: []byte(r.key)},
		}}
		if err := cl.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	options := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	got, err := ops.SecretMatches(t.Context(), options, topic, "stripe", begin)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]ops.Match{"new": {Events: 2, Last: now.Add(-20 * time.Minute)}}
	if m := got["new"]; m.Events != 2 || !m.Last.Equal(want["new"].Last) {
		t.Errorf("new: got %+v, want %+v", m, want["new"])
	}
	if m := got["old"]; !m.Last.Equal(now.Add(-50 * time.Minute)) {
		t.Errorf("old: got %+v, want the last 50 minutes ago", m)
	}
	if got, err := ops.SecretMatches(t.Context(), options, topic, "stripe", time.Now().Add(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("later than all: got %v, %v", got, err)
	}
	if _, err := ops.SecretMatches(t.Context(), options, "other", "stripe", begin); err == nil {
		t.Error("a topic that is not there: no error")
	}
}
