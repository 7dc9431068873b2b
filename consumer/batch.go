package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
	"hookledger/schema"
)

// batch is a run of records of one partition, taken to be applied. Only queues.take
// makes one, and never two for one partition at a time.
type batch struct {
	of      *partition
	records ledger.Batch
}

// outcome is what came of a batch. Only applier.apply makes one.
type outcome struct {
	of *partition
	// done is what is durable, also when err is not nil: a batch may end half way.
	done ledger.Committed
	// settled says that done has something in it.
	settled bool
	// epoch is the leader epoch of the last durable record.
	epoch int32
	err   error
}

// committed is a position that Postgres holds durably, and so one that Kafka may be
// told. It is made from an outcome, or from the progress that an assignment read or
// wrote; commit takes nothing else.
type committed struct {
	of *partition
	at kgo.EpochOffset
}

// committed returns the position to commit after o. ok is false if nothing of the
// batch is durable.
func (o outcome) committed() (c committed, ok bool) {
	return committed{o.of, kgo.EpochOffset{Epoch: o.epoch, Offset: o.done.Next()}}, o.settled
}

// recordOverheadBytes is roughly what a record costs in memory beside its bytes.
const recordOverheadBytes = 256

func sizeOf(r *kgo.Record) int {
	n := recordOverheadBytes + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// ledgerRecord returns r as the ledger takes it. Bytes are shared.
func ledgerRecord(r *kgo.Record) ledger.Record {
	headers := make([]schema.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = schema.Header{Key: h.Key, Value: h.Value}
	}
	return ledger.Record{
		Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Timestamp: r.Timestamp,
		Key: r.Key, Value: r.Value, Headers: headers,
	}
}
