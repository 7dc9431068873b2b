package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"hookledger/schema"
)

// ackLine is what verify reads of a line of a history.
type ackLine struct {
	Source  string    `json:"source"`
	EventID string    `json:"event_id"`
	Result  string    `json:"result"`
	HTTP    int       `json:"http"`
	T1      time.Time `json:"t1"`
}

// acknowledged tells whether the delivery was answered 2xx.
func (l *ackLine) acknowledged() bool { return l.HTTP/100 == 2 || l.HTTP == 0 && l.Result == "ok" }

// acks are the events whose deliveries were acknowledged: 16 bytes each and a bit, so
// ten million take 170 MB. Names are read again from the files for those that are missing.
type acks struct {
	files []string
	key   func(name string) string
	limit limits
	// keys are sorted and each there once.
	keys []schema.EventKey
	// found has a bit for each key that the topic holds.
	found []atomic.Uint32
	lines int64
	// cut are the files whose last line has no end, and was left out.
	cut finding
}

// HistoryError says that a file is no history, or cannot be read.
type HistoryError struct {
	Path string
	Err  error
}

// Error names the file.
func (e *HistoryError) Error() string { return fmt.Sprintf("read history %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *HistoryError) Unwrap() error { return e.Err }

// readAcks reads the histories; nil if there are none.
func readAcks(opts Options) (*acks, error) {
	if len(opts.Histories) == 0 {
		return nil, nil
	}
	a := &acks{files: opts.Histories, key: opts.SourceKey, limit: limits{from: opts.From, to: opts.To}}
	if a.key == nil {
		a.key = func(name string) string { return name }
	}
	err := a.each(func(k schema.EventKey, _ *ackLine) {
		a.lines++
		a.keys = append(a.keys, k)
	}, func(path string) { a.cut.add("", label(path)) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(a.keys, func(x, y schema.EventKey) int { return bytes.Compare(x[:], y[:]) })
	a.keys = slices.Clip(slices.Compact(a.keys))
	a.found = make([]atomic.Uint32, len(a.keys)/32+1)
	return a, nil
}

// each calls use with every acknowledged delivery within the range of time. A last line
// without an end may still be being written, so it is left out, and cut hears of it.
func (a *acks) each(use func(schema.EventKey, *ackLine), cut func(path string)) error {
	for _, path := range a.files {
		whole, err := eachLine(path, func(l *ackLine) {
			if l.acknowledged() && (l.T1.IsZero() || a.limit.covers(l.T1)) {
				use(schema.KeyOf(a.key(l.Source), l.EventID), l)
			}
		})
		if err != nil {
			return &HistoryError{path, err}
		}
		if !whole {
			cut(path)
		}
	}
	return nil
}

// maxHistoryLine bounds a line, which takes a few hundred bytes.
const maxHistoryLine = 1 << 20

// eachLine reports whether the last line has its end.
func eachLine(path string, use func(*ackLine)) (whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, maxHistoryLine)
	for n := 1; ; n++ {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return len(bytes.TrimSpace(text)) == 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return false, fmt.Errorf("line %d is longer than any line of a history", n)
		case err != nil:
			return false, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var l ackLine
		if err := json.Unmarshal(text, &l); err != nil {
			return false, fmt.Errorf("line %d is not a line of a history: %w", n, err)
		}
		if l.Source == "" || l.EventID == "" {
			return false, fmt.Errorf("line %d names no source and event_id: it is not a line of a history", n)
		}
		use(&l)
	}
}

// see notes that the topic holds an event. It is safe for concurrent use.
func (a *acks) see(k schema.EventKey) {
	if a == nil {
		return
	}
	i, ok := slices.BinarySearchFunc(a.keys, k, func(x, y schema.EventKey) int { return bytes.Compare(x[:], y[:]) })
	if ok {
		a.found[i/32].Or(1 << (i % 32))
	}
}

// missing is what came of the acknowledged deliveries.
type missing struct {
	events int64
	// lost: neither in the topic nor on record.
	lost finding
	// recorded: on record, and not in what was read of the topic.
	recorded int64
	// forgotten: acknowledged before the memory of events begins, and without an entry.
	forgotten int64
}

// settle looks for what the topic does not hold in the tables. Keys are asked for
// batchRecords at a time.
func (a *acks) settle(ctx context.Context, opts Options) (missing, error) {
	var m missing
	if a == nil {
		return m, nil
	}
	m.events = int64(len(a.keys))
	var absent []schema.EventKey
	for i, k := range a.keys {
		if a.found[i/32].Load()&(1<<(i%32)) == 0 {
			absent = append(absent, k)
		}
	}
	nowhere := make(map[schema.EventKey]bool)
	for part := range slices.Chunk(absent, batchRecords) {
		lost, err := unrecorded(ctx, opts, part)
		if err != nil {
			return m, err
		}
		for _, k := range lost {
			nowhere[k] = true
		}
	}
	if err := forgive(ctx, opts, nowhere); err != nil {
		return m, err
	}
	m.recorded = int64(len(absent) - len(nowhere))
	if len(nowhere) == 0 {
		return m, nil
	}
	mem, err := readMemory(ctx, opts.Pool)
	if err != nil {
		return m, err
	}
	err = a.each(func(k schema.EventKey, l *ackLine) {
		if !nowhere[k] {
			return
		}
		delete(nowhere, k)
		if mem.mayHaveForgotten(&seen{receivedAt: l.T1}) {
			m.forgotten++
			return
		}
		m.lost.add(l.EventID, label(l.Source+"/"+l.EventID)+" acknowledged at "+l.T1.UTC().Format(time.RFC3339))
	}, func(string) {})
	return m, err
}

// forgive takes out the events of which a record is, or was, in quarantine. That table
// has no index for it and is small where things go well, so all of it is read.
func forgive(ctx context.Context, opts Options, nowhere map[schema.EventKey]bool) error {
	if len(nowhere) == 0 {
		return nil
	}
	rows, err := opts.Pool.Query(ctx, sqlQuarantinedEvents)
	if err != nil {
		return readError("the events in quarantine", err)
	}
	var source, id string
	_, err = pgx.ForEachRow(rows, []any{&source, &id}, func() error {
		delete(nowhere, schema.KeyOf(source, id))
		return nil
	})
	if err != nil {
		return readError("the events in quarantine", err)
	}
	return nil
}

// unrecorded returns those keys of which no table knows.
func unrecorded(ctx context.Context, opts Options, keys []schema.EventKey) ([]schema.EventKey, error) {
	ask := make([][16]byte, len(keys))
	for i, k := range keys {
		ask[i] = k
	}
	var out []schema.EventKey
	err := readOnly(ctx, opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlUnrecorded, ask)
		if err != nil {
			return err
		}
		var i int64
		_, err = pgx.ForEachRow(rows, []any{&i}, func() error {
			out = append(out, keys[i-1])
			return nil
		})
		return err
	})
	if err != nil {
		return nil, readError("acknowledged events by key", err)
	}
	return out, nil
}
