package consumer

import (
	"errors"
	"strings"
	"testing"

	"hookledger/internal/broker"
	"hookledger/internal/ledger"
)

// TestDecide_FirstMatchWins walks the table of doc.go, its borders included.
func TestDecide_FirstMatchWins(t *testing.T) {
	t.Parallel()
	here := ledger.Position{ClusterID: "here", Topic: "events", TopicID: [16]byte{1}, Partition: 3}
	row := func(from, next int64) []ledger.Progress {
		return []ledger.Progress{{Position: here, From: from, Next: next, LeaderEpoch: 4}}
	}
	otherTopic, otherCluster, otherPartition := here, here, here
	otherTopic.TopicID, otherCluster.ClusterID, otherPartition.Partition = [16]byte{2}, "there", 4
	const none = -1
	for name, tc := range map[string]struct {
		progress       []ledger.Progress
		unacknowledged bool
		commit         int64
		start, end     int64
		loss           *lossReport

		rule     rule
		at       int64
		incident string
		writes   bool
		waits    bool
		commits  bool
	}{
		"1 another cluster":                   {progress: []ledger.Progress{{Position: otherCluster}}, commit: 5, end: 9, rule: 1},
		"1 another cluster beside ours":       {progress: append(row(5, 5), ledger.Progress{Position: otherCluster}), commit: 5, end: 9, rule: 1},
		"2 another topic":                     {progress: []ledger.Progress{{Position: otherTopic, Next: 7}}, commit: none, start: 2, end: 9, rule: 2, at: 2, incident: "topic_recreated/warning/2/2", writes: true, waits: true, commits: true},
		"2 told, not acknowledged":            {progress: append(row(2, 2), ledger.Progress{Position: otherTopic, Next: 7}), unacknowledged: true, commit: 2, start: 2, end: 9, rule: 2, at: 2, waits: true},
		"2 acknowledged":                      {progress: append(row(2, 2), ledger.Progress{Position: otherTopic, Next: 7}), commit: 2, start: 2, end: 9, rule: 9, at: 2},
		"3 beyond the end":                    {progress: row(5, 10), commit: 10, start: 1, end: 9, rule: 3, at: 1, incident: "truncated/loss/9/10", writes: true, commits: true},
		"3 at the end is fine":                {progress: row(5, 9), commit: 9, start: 1, end: 9, rule: 9, at: 9},
		"3 lost below the end":                {progress: row(5, 8), commit: 8, start: 1, end: 9, loss: &lossReport{6, 8}, rule: 3, at: 1, incident: "truncated/loss/6/8", writes: true, commits: true},
		"3 before 6":                          {progress: row(5, 10), commit: none, start: 1, end: 9, rule: 3, at: 1, incident: "truncated/loss/9/10", writes: true, commits: true},
		"4 below the start":                   {progress: row(2, 3), commit: 3, start: 7, end: 9, rule: 4, at: 7, incident: "expired/loss/3/7", writes: true, commits: true},
		"4 at the start is fine":              {progress: row(2, 7), commit: 7, start: 7, end: 9, rule: 9, at: 7},
		"5 nothing at all":                    {commit: none, start: 4, end: 9, rule: 5, at: 4, writes: true, commits: true},
		"5 nothing here":                      {progress: []ledger.Progress{{Position: otherPartition, Next: 5}}, commit: none, end: 9, rule: 5, at: 0, writes: true, commits: true},
		"5 commit at the start":               {commit: 4, start: 4, end: 9, rule: 5, at: 4, writes: true},
		"5 commit further on":                 {commit: 6, start: 4, end: 9, rule: 5, at: 4, incident: "database_new/warning/4/6", writes: true, commits: true},
		"6 no commit":                         {progress: row(2, 5), commit: none, end: 9, rule: 6, at: 5, incident: "commit_missing/info/5/5", writes: true, commits: true},
		"6 crash before the first commit":     {progress: row(5, 5), commit: none, end: 9, rule: 9, at: 5, commits: true},
		"7 commit beyond":                     {progress: row(2, 5), commit: 8, end: 9, rule: 7, at: 5, incident: "progress_behind/warning/5/8", writes: true, commits: true},
		"8 rewound":                           {progress: row(4, 6), commit: 3, end: 9, rule: 8, at: 3, incident: "rewind/info/3/6", writes: true},
		"8 rewound below the start":           {progress: row(4, 6), commit: 0, start: 2, end: 9, rule: 8, at: 2, incident: "rewind/info/2/6", writes: true, commits: true},
		"9 between":                           {progress: row(4, 6), commit: 5, end: 9, rule: 9, at: 5},
		"9 at the lower border":               {progress: row(4, 6), commit: 4, end: 9, rule: 9, at: 4},
		"9 at the upper border":               {progress: row(4, 6), commit: 6, end: 9, rule: 9, at: 6},
		"9 commit below the start of the log": {progress: row(1, 6), commit: 3, start: 5, end: 9, rule: 9, at: 5, commits: true},
	} {
		v := decide(sight{
			position: here, committed: broker.Offset{At: tc.commit, LeaderEpoch: 4}, hasCommit: tc.commit != none,
			progress: tc.progress, unacknowledged: tc.unacknowledged, logStart: tc.start, logEnd: tc.end, loss: tc.loss, assignment: "a",
		})
		if tc.rule == 1 {
			var other *OtherClusterError
			if v.rule != 1 || !errors.As(v.refused, &other) || !strings.Contains(other.Error(), "topics adopt") {
				t.Errorf("%s: got rule %d, %v, want a refusal", name, v.rule, v.refused)
			}
			continue
		}
		incident := ""
		if v.write != nil && v.write.Incident != nil {
			i := v.write.Incident
			incident = strings.Join([]string{i.Kind, string(i.Severity), itoa(*i.From), itoa(*i.To)}, "/")
		}
		if v.rule != tc.rule || v.start != tc.at || incident != tc.incident || (v.write != nil) != tc.writes || v.waits != tc.waits || v.commit != tc.commits {
			t.Errorf("%s:\n got rule %d start %d incident %q writes %t waits %t commits %t\nwant rule %d start %d incident %q writes %t waits %t commits %t",
				name, v.rule, v.start, incident, v.write != nil, v.waits, v.commit, tc.rule, tc.at, tc.incident, tc.writes, tc.waits, tc.commits)
		}
		if v.start < tc.start {
			t.Errorf("%s: start %d is below the log's start %d", name, v.start, tc.start)
		}
		if w := v.write; w != nil && (w.From > w.Next || w.Next != v.start || w.Position != here) {
			t.Errorf("%s: writes %+v for start %d", name, w, v.start)
		}
	}
}
