package consumer

import (
	"encoding/json"
	"fmt"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

// Kinds of incidents that the position rules raise.
const (
	incidentTopicRecreated = "topic_recreated"
	incidentTruncated      = "truncated"
	incidentExpired        = "expired"
	incidentDatabaseNew    = "database_new"
	incidentCommitMissing  = "commit_missing"
	incidentBehind         = "progress_behind"
	incidentRewind         = "rewind"
)

// rule is the number of a position rule; see doc.go.
type rule int

const (
	ruleOtherCluster rule = 1 + iota
	ruleTopicRecreated
	ruleTruncated
	ruleExpired
	ruleDatabaseNew
	ruleCommitMissing
	ruleBehind
	ruleRewind
	ruleOrdinary
)

var ruleNames = map[rule]string{
	ruleOtherCluster: "other_cluster", ruleTopicRecreated: incidentTopicRecreated, ruleTruncated: incidentTruncated,
	ruleExpired: incidentExpired, ruleDatabaseNew: incidentDatabaseNew, ruleCommitMissing: incidentCommitMissing,
	ruleBehind: incidentBehind, ruleRewind: incidentRewind, ruleOrdinary: "ordinary",
}

func (r rule) String() string { return ruleNames[r] }

// mustBeSeenTwice says that one look is not enough: stale metadata must not report lost
// records, nor a coordinator that just took over, and answers an older offset for a
// moment, a reset that nobody made.
func (r rule) mustBeSeenTwice() bool {
	return r == ruleTruncated || r == ruleExpired || r == ruleRewind
}

// OtherClusterError says that the database holds positions of another Kafka cluster:
// one of the two is not the one meant, and applying would mix their money.
type OtherClusterError struct {
	Database, Kafka string
}

// Error names both clusters and what to do.
func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("the database holds positions of Kafka cluster %s, but kafka.brokers is cluster %s: correct database.url or kafka.brokers, or run `hookledger topics adopt --reason` after a migration",
		e.Database, e.Kafka)
}

// sight is what the rules see of one partition. It was read in this order: commit,
// progress, log start, log end, since a position that moves meanwhile then looks older
// than it is, never newer.
type sight struct {
	position ledger.Position
	// committed is C; hasCommit says whether there is one.
	committed broker.Offset
	hasCommit bool
	// progress is what Postgres holds for the topic, by its name or its ID.
	progress []ledger.Progress
	// unacknowledged says that the partition waits since its topic was created again.
	unacknowledged   bool
	logStart, logEnd int64
	// assignment is a random text of the assignment.
	assignment string
	// loss is what the client reported twice as lost, or nil.
	loss *lossReport
}

// lossReport is the range [from, to) that the client found to be lost or replaced.
type lossReport struct{ from, to int64 }

// verdict is what a rule says about a partition.
type verdict struct {
	rule rule
	// refused is set by ruleOtherCluster alone.
	refused error
	// start is the position, epoch the leader epoch of the record before it or -1.
	start int64
	epoch int32
	// from is the last commit known to be acknowledged.
	from int64
	// write is what to write if the row still is as seen, incident included; nil writes
	// nothing.
	write *ledger.PositionWrite
	// waits says that the partition is not read until an operator acknowledged.
	waits bool
	// end is the log end, so that a partition without new records is known to be settled.
	end int64
	// commit says that Kafka holds another position, or none, and is to be told.
	commit bool
}

// decide applies the position rules: the first that matches wins.
func decide(s sight) verdict {
	v := s.match()
	v.commit = !s.hasCommit || s.committed.At != v.start
	v.end = s.logEnd
	return v
}

func (s sight) match() verdict {
	var row *ledger.Progress
	for i := range s.progress {
		r := &s.progress[i]
		switch {
		case r.ClusterID != s.position.ClusterID:
			return verdict{rule: ruleOtherCluster, refused: &OtherClusterError{Database: r.ClusterID, Kafka: s.position.ClusterID}}
		case r.TopicID == s.position.TopicID && r.Partition == s.position.Partition:
			row = r
		}
	}
	switch {
	case row == nil && s.recreated():
		v := s.move(ruleTopicRecreated, nil, s.logStart)
		v.waits = true
		return s.raise(v, ledger.Warning, s.logStart, s.logStart)
	case row == nil:
		v := s.move(ruleDatabaseNew, nil, s.logStart)
		if s.hasCommit && s.committed.At > s.logStart {
			v = s.raise(v, ledger.Warning, s.logStart, s.committed.At)
		}
		return v
	case s.unacknowledged:
		return verdict{rule: ruleTopicRecreated, waits: true, start: row.Next, epoch: row.LeaderEpoch, from: row.From}
	}
	c, n := s.committed.At, row.Next
	switch {
	case n > s.logEnd:
		return s.raise(s.move(ruleTruncated, row, s.logStart), ledger.Loss, s.logEnd, n)
	case s.loss != nil:
		return s.raise(s.move(ruleTruncated, row, s.logStart), ledger.Loss, s.loss.from, s.loss.to)
	case n < s.logStart:
		return s.raise(s.move(ruleExpired, row, s.logStart), ledger.Loss, n, s.logStart)
	case !s.hasCommit && row.From == n:
		// The rules wrote the row and nothing was applied since: a crash, or a COMMIT
		// without an answer, before Kafka was first told.
		return verdict{rule: ruleOrdinary, start: n, epoch: row.LeaderEpoch, from: n}
	case !s.hasCommit:
		return s.raise(s.keep(ruleCommitMissing, row), ledger.Info, n, n)
	case c > n:
		return s.raise(s.keep(ruleBehind, row), ledger.Warning, n, c)
	case c < row.From:
		start := max(c, s.logStart)
		return s.raise(s.move(ruleRewind, row, start), ledger.Info, start, n)
	}
	// An ordinary crash between the two commits repeats the last batch.
	v := verdict{rule: ruleOrdinary, start: c, epoch: s.committed.LeaderEpoch, from: c}
	if c < s.logStart {
		v.start, v.epoch, v.from = s.logStart, -1, row.From
	}
	return v
}

// recreated tells whether Postgres knows the partition of another topic of this name.
func (s sight) recreated() bool {
	for _, r := range s.progress {
		if r.Topic == s.position.Topic && r.TopicID != s.position.TopicID && r.Partition == s.position.Partition {
			return true
		}
	}
	return false
}

// move writes the position start. Without an epoch the client does not ask whether the
// log was cut below it, which is right: nothing below start is ours any more.
func (s sight) move(r rule, read *ledger.Progress, start int64) verdict {
	return verdict{rule: r, start: start, epoch: -1, from: start, write: &ledger.PositionWrite{
		Position: s.position, Read: read, From: start, Next: start, LeaderEpoch: -1,
	}}
}

// keep leaves the position of the row as it is.
func (s sight) keep(r rule, row *ledger.Progress) verdict {
	return verdict{rule: r, start: row.Next, epoch: row.LeaderEpoch, from: row.From, write: &ledger.PositionWrite{
		Position: s.position, Read: row, From: row.From, Next: row.Next, LeaderEpoch: row.LeaderEpoch,
	}}
}

// raise adds an incident about the offsets [from, to) to what v writes.
func (s sight) raise(v verdict, severity ledger.Severity, from, to int64) verdict {
	saw := struct {
		Rule      rule   `json:"rule"`
		ClusterID string `json:"cluster_id"`
		TopicID   string `json:"topic_id"`
		LogStart  int64  `json:"log_start"`
		LogEnd    int64  `json:"log_end"`
		Committed *int64 `json:"committed_offset"`
		From      *int64 `json:"from_offset"`
		Next      *int64 `json:"next_offset"`
		Start     int64  `json:"start"`
	}{
		Rule: v.rule, ClusterID: s.position.ClusterID, TopicID: fmt.Sprintf("%x", s.position.TopicID),
		LogStart: s.logStart, LogEnd: s.logEnd, Start: v.start,
	}
	if s.hasCommit {
		saw.Committed = &s.committed.At
	}
	if read := v.write.Read; read != nil {
		saw.From, saw.Next = &read.From, &read.Next
	}
	detail, err := json.Marshal(saw)
	if err != nil {
		panic(err) // numbers and hex cannot fail
	}
	v.write.Incident = &ledger.Incident{
		Severity: severity, Kind: v.rule.String(), Topic: s.position.Topic, Partition: &s.position.Partition,
		From: &from, To: &to, Detail: detail, Once: s.once(v.rule),
	}
	return v
}

// once is the key under which an incident is raised once. A topic's new life is told
// once for ever; the others once in an assignment, so that an answer of Postgres that
// was lost does not tell twice.
func (s sight) once(r rule) string {
	if r == ruleTopicRecreated {
		return recreatedKey(s.position)
	}
	return fmt.Sprintf("%s/%x/%d/%s", r, s.position.TopicID, s.position.Partition, s.assignment)
}

func recreatedKey(p ledger.Position) string {
	return fmt.Sprintf("%s/%x/%d", incidentTopicRecreated, p.TopicID, p.Partition)
}
