package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// strange returns those open records whose event has no row with their hash, and
// those that contradict themselves.
func (b *batch) strange(ctx context.Context) ([]*seen, error) {
	keys := make([][16]byte, len(b.open))
	hashes := make([][]byte, len(b.open))
	for i := range b.open {
		keys[i], hashes[i] = b.open[i].key, b.open[i].hash[:]
	}
	picked := make(map[int64]bool)
	for i := range b.open {
		if b.open[i].lies {
			picked[int64(i)] = true
		}
	}
	err := readOnly(ctx, b.pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlStrange, keys, hashes)
		if err != nil {
			return err
		}
		var i int64
		_, err = pgx.ForEachRow(rows, []any{&i}, func() error {
			picked[i-1] = true
			return nil
		})
		return err
	})
	if err != nil {
		return nil, readError("records by key", err)
	}
	out := make([]*seen, 0, len(picked))
	for i := range b.open {
		if picked[int64(i)] {
			out = append(out, &b.open[i])
		}
	}
	return out, nil
}

// traces returns what the tables hold of each strange record, in order.
func (b *batch) traces(ctx context.Context, strange []*seen) ([]trace, error) {
	n := len(strange)
	keys, hashes := make([][16]byte, n), make([][]byte, n)
	partitions, offsets := make([]int32, n), make([]int64, n)
	for i, s := range strange {
		keys[i], hashes[i], partitions[i], offsets[i] = s.key, s.hash[:], s.partition, s.offset
	}
	out := make([]trace, 0, n)
	err := readOnly(ctx, b.pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlTraces, keys, hashes, partitions, offsets, b.topic, b.topicID)
		if err != nil {
			return err
		}
		var t trace
		_, err = pgx.ForEachRow(rows, []any{&t.row, &t.own, &t.conflict, &t.quarantined, &t.altered, &t.entry}, func() error {
			out = append(out, t)
			return nil
		})
		return err
	})
	if err == nil && len(out) != n {
		err = fmt.Errorf("%d records, %d answers", n, len(out))
	}
	if err != nil {
		return nil, readError("what is on record of strange records", err)
	}
	return out, nil
}

// lookForMoney finds events of the open records that are applied and have no entry.
func (b *batch) lookForMoney(ctx context.Context) error {
	keys := make([][16]byte, len(b.open))
	for i := range b.open {
		keys[i] = b.open[i].key
	}
	err := readOnly(ctx, b.pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlMoneylessKeys, keys)
		if err != nil {
			return err
		}
		var i int64
		_, err = pgx.ForEachRow(rows, []any{&i}, func() error {
			s := &b.open[i-1]
			b.moneyless.add(s.id, s.name(b.topic))
			return nil
		})
		return err
	})
	if err != nil {
		return readError("entries of applied events", err)
	}
	return nil
}
