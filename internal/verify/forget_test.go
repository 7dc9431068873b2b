package verify_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"hookledger/internal/ledger"
	"hookledger/internal/ledger/memory"
	"hookledger/internal/verify"
	"hookledger/schema"
)

// Hour after hour, more than once around the ring, events come, generations are opened
// and forgotten, and the topic is replayed: verify agrees at every step, and while it
// happens. And where one row too many is gone, it says so.
func TestRun_AgreesWhileGenerationsAreForgotten(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := setup(t, 1)
	core := ledger.New(w.pool, tell, ledger.Options{})
	pos := ledger.Position{ClusterID: w.cluster, Topic: w.topic, TopicID: w.topicID}
	must(t, core.WritePosition(t.Context(), ledger.PositionWrite{Position: pos}))
	const hours = 22
	begin := w.now.Add(-(hours + 1) * time.Hour)
	w.exec(`update event_ring set opened_at[1] = $1`, begin)
	var all []schema.Event
	ring := func() memory.Ring {
		r, err := memory.Read(t.Context(), w.pool)
		must(t, err)
		return r
	}
	position := int64(0)
	apply := func() {
		records := w.read(0)
		for position < int64(len(records)) {
			n := min(position+40, int64(len(records)))
			done, err := core.Apply(t.Context(), ledger.Batch{Position: pos, Start: position, Records: records[position:n]})
			must(t, err)
			position = done.Next()
		}
		w.commitOffset(0, position)
	}
	agrees := func(when string, hour int) verify.Report {
		t.Helper()
		rep := w.with(told)
		if !rep.OK {
			t.Fatalf("%s, hour %d: got %s", when, hour, show(rep))
		}
		return rep
	}
	forgotten := 0
	for hour := range hours {
		from := begin.Add(time.Duration(hour) * time.Hour)
		var events []schema.Event
		for i := range 25 {
			id := fmt.Sprintf("evt_%d_%d", hour, i)
			text := []string{
				fmt.Sprintf("credit user_%d %d m%d_%d", rnd.IntN(3), 1+rnd.IntN(9), hour, i), fmt.Sprintf("credit user_1 5 m%d_0", hour),
				fmt.Sprintf("status o%d paid %d", rnd.IntN(3), hour), fmt.Sprintf("nothing %d", i), "broken",
			}[rnd.IntN(5)]
			e := w.event(id, text)
			if len(all) > 0 && rnd.IntN(5) == 0 {
				e = all[rnd.IntN(len(all))] // resent, however old
			}
			e.ReceivedAt = from.Add(10 * time.Minute)
			if e.OccurredAt.IsZero() {
				e.OccurredAt = e.ReceivedAt
			}
			events = append(events, e)
		}
		all = append(all, events...)
		w.produce(0, events...)
		apply()
		// What was written just now was written then.
		w.exec(`update ledger_entries set applied_at = $1 where applied_at > $1`, from.Add(10*time.Minute))
		w.exec(`update processed_events set processed_at = $1 where processed_at > $1`, from.Add(10*time.Minute))
		agrees("applied", hour)

		done, err := memory.Rotate(t.Context(), w.pool, ring(), 0)
		if err != nil || !done {
			t.Fatalf("rotate: got %v, %v", done, err)
		}
		w.exec(`update event_ring set opened_at[open_generation + 1] = $1`, from.Add(time.Hour))
		agrees("rotated", hour)
		// Verify reads again and again while the oldest generation is forgotten.
		stop := make(chan struct{})
		var verifying sync.WaitGroup
		verifying.Go(func() { // ends with stop
			for {
				rep, err := verify.Run(t.Context(), verify.Options{Pool: w.pool, KafkaOpts: w.opts, Topic: w.topic, Group: group, Meaning: func(e *schema.Event) (schema.Meaning, error) { return tell(e) }})
				if err != nil || !rep.OK {
					t.Errorf("while generations are forgotten, hour %d: got %v %s", hour, err, show(rep))
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		for r := ring(); r.Used() > 1+hour%6; r = ring() {
			done, err := memory.Forget(t.Context(), w.pool, r, 0)
			var busy *memory.BusyError
			if err != nil && !errors.As(err, &busy) {
				t.Fatal(err)
			}
			if done {
				forgotten++
			}
		}
		close(stop)
		verifying.Wait()
		agrees("forgotten", hour)
		if hour%7 == 6 { // the whole topic once more
			w.exec(`update consumer_progress set next_offset = 0, from_offset = 0`)
			position = 0
			apply()
			w.exec(`update processed_events set processed_at = $1 where processed_at > $1`, from.Add(50*time.Minute))
			agrees("replayed", hour)
		}
	}
	t.Logf("%d generations forgotten, of %d records", forgotten, len(all))
	if forgotten < memory.Generations {
		t.Errorf("%d generations were forgotten, want %d", forgotten, memory.Generations)
	}
	// A row within memory that is gone is not taken for forgotten.
	w.exec(`delete from processed_events where event_key = (
		select p.event_key from processed_events p, event_ring r
		 where p.outcome = 'applied' and p.generation <> r.open_generation and p.generation <> r.oldest_generation limit 1)`)
	if rep := w.with(told); rep.OK || !strings.Contains(strings.Join(broken(rep), " "), verify.CheckEntries) {
		t.Errorf("a row within memory is gone, and verify says %s", show(rep))
	}
}
