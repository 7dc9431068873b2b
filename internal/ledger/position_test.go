package ledger

import (
	"errors"
	"testing"
)

func TestApply_RefusesAPositionThatPostgresDoesNotHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", 5)
	batch := b.batch(0, e)

	missing := batch
	missing.TopicID = [16]byte{9}
	if _, err := b.ledger.Apply(t.Context(), missing); !errors.Is(err, ErrPositionMoved) {
		t.Errorf("no row: got %v, want ErrPositionMoved", err)
	}
	ahead := batch
	ahead.Start = 1
	ahead.Records = []Record{record(1, e)}
	if _, err := b.ledger.Apply(t.Context(), ahead); !errors.Is(err, ErrPositionMoved) {
		t.Errorf("progress behind: got %v, want ErrPositionMoved", err)
	}
	if b.count("processed_events") != 0 {
		t.Error("a failed check wrote something")
	}
	// A zombie's batch lies behind: it finds duplicates, and moves nothing back.
	b.apply(e, paid(t, "evt_2", "alice", 5))
	c, err := b.ledger.Apply(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	b.outcomes(c, map[Outcome]int64{Duplicate: 1})
	if got := query1[int64](t, b.pool, `select next_offset from consumer_progress`); got != 2 {
		t.Errorf("progress: got %d, want 2", got)
	}
}

func TestApply_RefusesRecordsOutOfOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := b.batch(0, paid(t, "evt_1", "alice", 5), paid(t, "evt_2", "alice", 5))
	batch.Records[1].Offset = 0
	if _, err := b.ledger.Apply(t.Context(), batch); err == nil {
		t.Error("descending offsets: got no error")
	}
	batch.Records = batch.Records[:1]
	batch.Records[0].Partition = 3
	if _, err := b.ledger.Apply(t.Context(), batch); err == nil {
		t.Error("another partition: got no error")
	}
}

func TestApply_KeepsFromAndEpoch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(paid(t, "evt_1", "alice", 5))
	batch := b.batch(0, paid(t, "evt_2", "alice", 5))
	batch.From, batch.Records[0].LeaderEpoch = 1, 4
	b.applyBatch(batch)
	list, err := b.ledger.ReadProgress(t.Context(), testPosition.Topic, testPosition.TopicID)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want one row", list, err)
	}
	if p := list[0]; p.Position != testPosition || p.From != 1 || p.Next != 2 || p.LeaderEpoch != 4 || p.UpdatedAt.IsZero() {
		t.Errorf("got %+v", p)
	}
}

func TestWritePosition_OnlyOnWhatWasRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	if list, err := b.ledger.ReadProgress(ctx, testPosition.Topic, testPosition.TopicID); err != nil || len(list) != 0 {
		t.Fatalf("got %v %v, want nothing", list, err)
	}
	partition, from, to := int32(0), int64(3), int64(9)
	incident := &Incident{Severity: Loss, Kind: "expired", Topic: testPosition.Topic, Partition: &partition, From: &from, To: &to}
	first := PositionWrite{Position: testPosition, Next: 9, LeaderEpoch: 2, Incident: incident}
	if err := b.ledger.WritePosition(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.WritePosition(ctx, first); !errors.Is(err, ErrPositionMoved) {
		t.Errorf("second insert: got %v, want ErrPositionMoved", err)
	}
	read, err := b.ledger.ReadProgress(ctx, testPosition.Topic, testPosition.TopicID)
	if err != nil {
		t.Fatal(err)
	}
	back := PositionWrite{Position: testPosition, Read: &read[0], From: 4, Next: 4, Incident: incident}
	if err := b.ledger.WritePosition(ctx, back); err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.WritePosition(ctx, back); !errors.Is(err, ErrPositionMoved) {
		t.Errorf("on an old read: got %v, want ErrPositionMoved", err)
	}
	if got := b.count("incidents"); got != 2 {
		t.Errorf("incidents: got %d, want 2: one per write that happened", got)
	}
	other := testPosition
	other.ClusterID, other.TopicID = "cluster-2", [16]byte{8}
	if err := b.ledger.WritePosition(ctx, PositionWrite{Position: other}); err != nil {
		t.Fatal(err)
	}
	if list, err := b.ledger.ReadProgress(ctx, testPosition.Topic, testPosition.TopicID); err != nil || len(list) != 2 {
		t.Errorf("got %v %v, want the rows of both clusters", list, err)
	}
	moved, err := b.ledger.CheckPositions(ctx, testPosition.ClusterID, testPosition.TopicID, map[int32]int64{0: 4, 1: 0})
	if err != nil || len(moved) != 1 || moved[0] != 1 {
		t.Errorf("check: got %v %v, want partition 1", moved, err)
	}
	moved, err = b.ledger.CheckPositions(ctx, testPosition.ClusterID, testPosition.TopicID, map[int32]int64{0: 5})
	if err != nil || len(moved) != 1 {
		t.Errorf("check: got %v %v, want partition 0", moved, err)
	}
}

func TestIncident_RaisedOnceFoundAndAcknowledged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	i := Incident{Severity: Warning, Kind: "topic_recreated", Topic: "t", Once: "topic_recreated/1", Detail: []byte(`{"a":1}`)}
	if _, err := b.ledger.FindIncident(ctx, i.Once); !errors.Is(err, ErrNoIncident) {
		t.Errorf("got %v, want ErrNoIncident", err)
	}
	for n, want := range []bool{true, false} {
		if raised, err := b.ledger.RaiseIncident(ctx, i); err != nil || raised != want {
			t.Fatalf("raise %d: got %v %v, want %v", n, raised, err, want)
		}
	}
	found, err := b.ledger.FindIncident(ctx, i.Once)
	if err != nil || found.Kind != i.Kind || found.Topic != "t" || !found.AcknowledgedAt.IsZero() || string(found.Detail) != `{"a": 1}` {
		t.Fatalf("got %+v %v", found, err)
	}
	for n, want := range []bool{true, false} {
		if first, err := AcknowledgeIncident(ctx, b.pool, found.ID, "ops", "seen"); err != nil || first != want {
			t.Fatalf("acknowledge %d: got %v %v, want %v", n, first, err, want)
		}
	}
	if _, err := AcknowledgeIncident(ctx, b.pool, 999, "ops", "seen"); !errors.Is(err, ErrNoIncident) {
		t.Errorf("got %v, want ErrNoIncident", err)
	}
	found, err = b.ledger.FindIncident(ctx, i.Once)
	if err != nil || found.AcknowledgedAt.IsZero() || found.AcknowledgedBy != "ops" {
		t.Errorf("got %+v %v, want it acknowledged", found, err)
	}
	if open, err := ListIncidents(ctx, b.pool, true); err != nil || len(open) != 0 {
		t.Errorf("got %v %v, want none open", open, err)
	}
	// Without a key, each raise is an incident.
	for range 2 {
		if raised, err := b.ledger.RaiseIncident(ctx, Incident{Severity: Info, Kind: "rewind"}); err != nil || !raised {
			t.Errorf("got %v %v, want it raised", raised, err)
		}
	}
}
