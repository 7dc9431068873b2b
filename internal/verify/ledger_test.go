package verify_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/internal/ledger"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// tell maps bodies such as "credit user_1 100 m1" and "status o1 paid 3"; "later …"
// marks the status as one of which the latest wins.
func tell(e *schema.Event) (schema.Meaning, error) {
	f := strings.Fields(string(e.Body))
	switch {
	case len(f) >= 4 && f[0] == "credit":
		amount, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBadAmount}
		}
		return schema.Meaning{Postings: []schema.Posting{{
			Account: f[1], Contra: "external:stripe", Amount: amount, Currency: "EUR", Rule: "paid", Movement: f[3],
		}}}, nil
	case len(f) >= 4 && f[0] == "status":
		rank, err := strconv.Atoi(f[3])
		if err != nil {
			return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBadStatus}
		}
		s := schema.Status{Object: f[1], Status: f[2], Rank: rank, OccurredAt: time.Unix(int64(rank), 0).UTC()}
		return schema.Meaning{Status: &s, LatestWins: true}, nil
	case len(f) > 0 && f[0] == "broken":
		return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonBodyUnreadable}
	}
	return schema.Meaning{}, nil
}

// Whatever the worker's core makes of a wild mix of records, the second path agrees.
func TestRun_AgreesWithTheLedger(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := setup(t, 2)
	bodies := []func() string{
		func() string { return fmt.Sprintf("credit user_%d %d m%d", rnd.IntN(3), 1+rnd.IntN(3), rnd.IntN(40)) },
		func() string { return fmt.Sprintf("credit user_1 100 m%d attempt%d", 100+rnd.IntN(20), rnd.IntN(3)) },
		func() string { return fmt.Sprintf("status o%d paid %d", rnd.IntN(3), rnd.IntN(5)) },
		func() string { return fmt.Sprintf("nothing %d", rnd.IntN(3)) },
		func() string { return "broken" },
		func() string { return fmt.Sprintf("credit user_1 %d m", 2*int64(schema.MaxAmount)) },
	}
	for p := range int32(2) {
		var events []schema.Event
		for range 400 {
			e := w.event(fmt.Sprintf("evt_%d", rnd.IntN(150)), bodies[rnd.IntN(len(bodies))]())
			if rnd.IntN(50) == 0 {
				e.BodySHA256[0]++
			}
			events = append(events, e)
		}
		w.produce(p, events...)
	}

	core := ledger.New(w.pool, tell, ledger.Options{})
	counts := map[string]int64{}
	for p := range int32(2) {
		pos := ledger.Position{ClusterID: w.cluster, Topic: w.topic, TopicID: w.topicID, Partition: p}
		must(t, core.WritePosition(t.Context(), ledger.PositionWrite{Position: pos}))
		records := w.read(p)
		for start := int64(0); start < w.next[p]; {
			n := min(int64(1+rnd.IntN(60)), w.next[p]-start)
			done, err := core.Apply(t.Context(), ledger.Batch{Position: pos, Start: start, Records: records[start : start+n]})
			must(t, err)
			start = done.Next()
			w.commitOffset(p, start)
			for _, o := range ledger.Outcomes() {
				counts[o.String()] += done.Count(o)
			}
			if rnd.IntN(8) == 0 {
				if rep := w.with(told); !rep.OK {
					t.Fatalf("partition %d at %d: got %s", p, start, show(rep))
				}
			}
		}
	}
	t.Logf("outcomes %v", counts)
	rep := w.with(told)
	if !rep.OK || rep.Records != 800 {
		t.Fatalf("got %s", show(rep))
	}

	// It can say no: one event less in the memory, and exactly that is missing.
	var id, outcome string
	must(t, w.pool.QueryRow(t.Context(), `
		delete from processed_events where event_key = (
			select p.event_key from processed_events p where p.outcome in ('ignored', 'same_effect', 'stale')
			and not exists (select from event_conflicts c where c.event_key = p.event_key) limit 1)
		returning event_id, outcome`).Scan(&id, &outcome))
	if rep := w.with(told); rep.UnaccountedEvents == 0 || !strings.Contains(check(rep, verify.CheckRecords).Found, "stripe/"+id+" at ") {
		t.Fatalf("event %s (%s): got %s", id, outcome, show(rep))
	}
}

// read returns the records of a partition as a worker would get them.
func (w *world) read(partition int32) []ledger.Record {
	w.tb.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {partition: kgo.NewOffset().AtStart()}}))
	must(w.tb, err)
	defer cl.Close()
	var out []ledger.Record
	for int64(len(out)) < w.next[partition] {
		fetches := cl.PollFetches(w.tb.Context())
		must(w.tb, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			headers := make([]schema.Header, len(r.Headers))
			for i, h := range r.Headers {
				headers[i] = schema.Header(h)
			}
			out = append(out, ledger.Record{Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Timestamp: r.Timestamp,
				Key: r.Key, Value: r.Value, Headers: headers})
		})
	}
	return out
}
