package ops_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ops"
)

func TestReadRecord(t *testing.T) {
	t.Parallel()
	cl, brokers, _ := newLog(t)
	options := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	r, err := ops.ReadRecord(t.Context(), options, topic, 1, 3)
	if err != nil || string(r.Value) != "7" || r.Offset != 3 {
		t.Errorf("got %v %v, want the value 7", r, err)
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, 1, 5, -1)
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int64{"deleted": 3, "beyond the end": 99} {
		if _, err := ops.ReadRecord(t.Context(), options, topic, 1, at); !errors.Is(err, ops.ErrRecordGone) {
			t.Errorf("%s: got %v, want ErrRecordGone", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ops.ReadRecord(ctx, options, topic, 1, 5); err == nil {
		t.Error("cancelled: got no error")
	}
}
