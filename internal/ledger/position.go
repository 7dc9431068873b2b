package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrStandby says that the connection leads to a standby, whose progress may be behind.
var ErrStandby = errors.New("connected to a standby, not to the primary: add target_session_attrs=read-write to database.url")

// Progress is a row of consumer_progress.
type Progress struct {
	Position
	// From is the last offset whose Kafka commit was acknowledged when the last
	// transaction began; Next is the next offset as Postgres knows it.
	From, Next  int64
	LeaderEpoch int32
	UpdatedAt   time.Time
}

// ReadProgress returns every row of the topic: by its name in any cluster, and by its
// ID. It fails with ErrStandby unless the primary answers. No rows is no error.
func (l *Ledger) ReadProgress(ctx context.Context, topic string, topicID [16]byte) ([]Progress, error) {
	fail := func(err error) ([]Progress, error) { return nil, fmt.Errorf("read progress of %s: %w", topic, err) }
	rows, err := l.pool.Query(ctx, queryProgress.sql, pgx.QueryExecModeExec, topic, uuidValue(topicID))
	if err != nil {
		return fail(err)
	}
	var list []Progress
	var r progressRow
	_, err = pgx.ForEachRow(rows, r.targets(), func() error {
		if r.cluster != nil {
			list = append(list, r.progress())
		}
		return nil
	})
	switch {
	case err != nil:
		return fail(err)
	case r.standby:
		return fail(ErrStandby)
	}
	return list, nil
}

// progressRow is a row of queryProgress: null but for standby if there is no progress.
type progressRow struct {
	cluster, topic *string
	id             pgtype.UUID
	partition      *int32
	from, next     *int64
	epoch          *int32
	updated        *time.Time
	standby        bool
}

func (r *progressRow) targets() []any {
	return []any{&r.cluster, &r.topic, &r.id, &r.partition, &r.from, &r.next, &r.epoch, &r.updated, &r.standby}
}

func (r *progressRow) progress() Progress {
	return Progress{
		Position: Position{ClusterID: *r.cluster, Topic: *r.topic, TopicID: r.id.Bytes, Partition: *r.partition},
		From:     *r.from, Next: *r.next, LeaderEpoch: *r.epoch, UpdatedAt: *r.updated,
	}
}

// PositionWrite is a decision about where a partition starts.
type PositionWrite struct {
	Position
	// Read is the row the decision rests on, nil if there was none.
	Read *Progress
	// From, Next and LeaderEpoch are the new values; From ≤ Next.
	From, Next  int64
	LeaderEpoch int32
	// Incident, if set, is raised in the same transaction.
	Incident *Incident
}

// WritePosition writes the row, and the incident, in one transaction, and only if the
// locked row still holds what w.Read says. Else it fails with ErrPositionMoved, and
// nothing is written. Any other error of it leaves the outcome unknown: read again.
func (l *Ledger) WritePosition(ctx context.Context, w PositionWrite) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return l.writePosition(ctx, tx, &w)
	})
	if err != nil {
		return fmt.Errorf("write position %s/%d@%d: %w", w.Topic, w.Partition, w.Next, err)
	}
	return nil
}

func (l *Ledger) writePosition(ctx context.Context, tx pgx.Tx, w *PositionWrite) error {
	settings := make([]any, 0, 1+len(l.settings))
	settings = append(settings, pgx.QueryExecModeExec)
	for _, a := range l.settings {
		settings = append(settings, string(a.value))
	}
	if _, err := tx.Exec(ctx, querySettings.sql, settings...); err != nil {
		return err
	}
	id := uuidValue(w.TopicID)
	if w.Read == nil {
		tag, err := tx.Exec(ctx, queryInsertProgress.sql, pgx.QueryExecModeExec,
			w.ClusterID, w.Topic, id, w.Partition, w.From, w.Next, w.LeaderEpoch)
		if err == nil && tag.RowsAffected() != 1 {
			err = ErrPositionMoved
		}
		if err != nil {
			return err
		}
	} else {
		var from, next int64
		err := tx.QueryRow(ctx, queryLockRow.sql, pgx.QueryExecModeExec, w.ClusterID, id, w.Partition).Scan(&from, &next)
		if errors.Is(err, pgx.ErrNoRows) || (err == nil && (from != w.Read.From || next != w.Read.Next)) {
			err = ErrPositionMoved
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, queryWriteProgress.sql, pgx.QueryExecModeExec,
			w.ClusterID, id, w.Partition, w.From, w.Next, w.LeaderEpoch, w.Topic); err != nil {
			return err
		}
	}
	if w.Incident == nil {
		return nil
	}
	_, err := raise(ctx, tx, w.Incident)
	return err
}

// CheckPositions compares the positions next, by partition, with the progress of the
// topic, and returns the partitions whose progress is missing or lower, sorted: somebody
// moved it, or Postgres lost commits. It fails with ErrStandby unless the primary answers.
func (l *Ledger) CheckPositions(ctx context.Context, clusterID string, topicID [16]byte, next map[int32]int64) ([]int32, error) {
	rows, err := l.pool.Query(ctx, queryPositions.sql, pgx.QueryExecModeExec, clusterID, uuidValue(topicID))
	if err != nil {
		return nil, fmt.Errorf("check positions: %w", err)
	}
	have := make(map[int32]int64)
	var partition *int32
	var offset *int64
	var standby bool
	_, err = pgx.ForEachRow(rows, []any{&partition, &offset, &standby}, func() error {
		if partition != nil {
			have[*partition] = *offset
		}
		return nil
	})
	if err == nil && standby {
		err = ErrStandby
	}
	if err != nil {
		return nil, fmt.Errorf("check positions: %w", err)
	}
	var moved []int32
	for p, n := range next {
		if stored, ok := have[p]; !ok || stored < n {
			moved = append(moved, p)
		}
	}
	slices.Sort(moved)
	return moved, nil
}

func uuidValue(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
