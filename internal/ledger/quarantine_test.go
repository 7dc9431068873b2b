package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"hookledger/schema"
)

func TestApply_UnmappableEventIsQuarantinedAndAppliedAfterTheFix(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := paid(t, "evt_1", "alice", 5)
	broken := true
	b.ledger.mapper = func(e *schema.Event) (schema.Meaning, error) {
		if broken && e.ID == "evt_1" {
			return schema.Meaning{}, &schema.MappingError{Reason: schema.ReasonMissingAccount, Detail: "user_id"}
		}
		return mapBody(e)
	}
	// A repeat of a quarantined event is in quarantine too: it has no row to be a duplicate of.
	b.outcomes(b.apply(good, paid(t, "evt_2", "bob", 1), good), map[Outcome]int64{Quarantined: 2, Applied: 1})
	b.rewind()
	b.outcomes(b.apply(good, paid(t, "evt_2", "bob", 1), good), map[Outcome]int64{Quarantined: 2, Duplicate: 1})
	if got := query1[int64](t, b.pool, `select count(*) from quarantined_events where resolved_at is null`); got != 2 || b.count("quarantined_events") != 2 {
		t.Errorf("quarantined: got %d rows, %d open, want 2 open", b.count("quarantined_events"), got)
	}
	if got := query1[string](t, b.pool, `select distinct reason || ' ' || detail || ' ' || source || ' ' || event_id from quarantined_events`); got != "missing_account user_id acme evt_1" {
		t.Errorf("got %s", got)
	}
	broken = false
	b.rewind()
	b.outcomes(b.apply(good, paid(t, "evt_2", "bob", 1), good), map[Outcome]int64{Applied: 1, Duplicate: 2})
	if got := query1[int64](t, b.pool, `select count(*) from quarantined_events where resolution = 'replayed' and resolved_at is not null`); got != 2 {
		t.Errorf("resolved: got %d, want 2", got)
	}
	b.lawful()
}

func TestApply_KeepsEveryByteOfARecordThatIsNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := paid(t, "evt_1", "alice", 5)
	hostile := []schema.Header{
		{Key: "hl_version", Value: []byte("1")}, {Key: "hl_source", Value: []byte("a\x00b")}, {Key: "ce_id", Value: []byte{0xff, 0xfe}},
		{Key: "k\x00ey", Value: []byte{0, 1, 2, 0xff}}, {Key: "empty", Value: nil}, {Key: "text", Value: []byte(`"\u0000 \ud800 ü`)},
	}
	badType := good
	badType.ID, badType.Type = "evt_2", "a\x00b"
	batch := b.batch(0)
	batch.Records = []Record{
		{Offset: 3, Key: nil, Value: []byte{0, 0xff}, Headers: hostile},
		{Offset: 5, Key: []byte("k"), Value: nil, Headers: good.Headers()},
		{Offset: 6, Key: []byte("other"), Value: good.Body, Headers: good.Headers()},
		{Offset: 7, Key: good.RecordKey(), Value: []byte("{}"), Headers: good.Headers()},
		{Offset: 8},
		record(9, badType),
		record(20, good),
	}
	b.outcomes(b.applyBatch(batch), map[Outcome]int64{Quarantined: 6, Applied: 1})
	rows, err := b.pool.Query(t.Context(), `select "offset", reason, headers::text, record_key, body from quarantined_events order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]string{3: "bad_header", 5: "null_value", 6: "key_mismatch", 7: "body_hash_mismatch", 8: "not_an_event", 9: "bad_text"}
	n := 0
	for rows.Next() {
		var offset int64
		var reason, headers string
		var key, value []byte
		if err := rows.Scan(&offset, &reason, &headers, &key, &value); err != nil {
			t.Fatal(err)
		}
		r := batch.Records[n]
		n++
		if offset != r.Offset || reason != want[offset] || string(key) != string(r.Key) || string(value) != string(r.Value) || (value == nil) != (r.Value == nil) {
			t.Errorf("got %d %s %q %q, want %d %s %q %q", offset, reason, key, value, r.Offset, want[offset], r.Key, r.Value)
		}
		if got := decodeHeaders(t, headers); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", r.Headers) {
			t.Errorf("headers of %d: got %q, want %q", offset, got, r.Headers)
		}
	}
	if err := rows.Err(); err != nil || n != 6 {
		t.Fatalf("got %d rows and %v, want 6", n, err)
	}
	if b.next[0] != 21 {
		t.Errorf("next: got %d, want 21", b.next[0])
	}
}

// decodeHeaders reads the documented format of the headers column.
func decodeHeaders(t *testing.T, text string) []schema.Header {
	t.Helper()
	var list []map[string]string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var headers []schema.Header
	for _, m := range list {
		get := func(name string) []byte {
			if s, ok := m[name]; ok {
				return []byte(s)
			}
			raw, err := base64.StdEncoding.DecodeString(m[name+"_base64"])
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		headers = append(headers, schema.Header{Key: string(get("key")), Value: get("value")})
	}
	return headers
}

func TestApply_OverflowIsQuarantinedAndItsNeighboursAreApplied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(paid(t, "evt_0", "alice", 1))
	if _, err := b.pool.Exec(t.Context(), `update accounts set balance = $1`, int64(math.MaxInt64-1)); err != nil {
		t.Fatal(err)
	}
	c := b.apply(paid(t, "evt_1", "bob", 1), paid(t, "evt_2", "bob", 2), paid(t, "evt_3", "alice", 2), paid(t, "evt_4", "alice", 1),
		paid(t, "evt_5", "carol", 5), paid(t, "evt_6", "bob", 3))
	// evt_3 alone does not fit; what came with it does, wherever it stood.
	b.outcomes(c, map[Outcome]int64{Applied: 5, Quarantined: 1})
	if got := query1[string](t, b.pool, `select event_id || ' ' || reason from quarantined_events`); got != "evt_3 balance_overflow" {
		t.Errorf("got %s, want evt_3 balance_overflow", got)
	}
	if got := b.balance("bob"); got != 6 {
		t.Errorf("balance of bob: got %d, want 6", got)
	}
	if got := b.balance("alice"); got != math.MaxInt64 {
		t.Errorf("balance of alice: got %d, want %d", got, int64(math.MaxInt64))
	}
	if c.Next() != 7 {
		t.Errorf("next: got %d, want 7", c.Next())
	}
}

func TestApply_SumThatOverflowsInTheBatchIsBisected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var events []schema.Event
	for i := range 10 {
		var lines []schema.Posting
		for j := range 1000 {
			lines = append(lines, pays("alice", schema.MaxAmount, fmt.Sprintf("%d/%d", i, j)))
		}
		events = append(events, event(t, fmt.Sprintf("evt_%d", i), body{Postings: lines}))
	}
	b.outcomes(b.apply(events...), map[Outcome]int64{Applied: 9, Quarantined: 1})
	if got := b.balance("alice"); got != 9000*schema.MaxAmount {
		t.Errorf("balance: got %d, want %d", got, int64(9000*schema.MaxAmount))
	}
	b.lawful()
}

func TestApply_AmountsThatNoConstraintAllows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// A mapper that does not check: the constraints do.
	c := b.apply(paid(t, "evt_1", "alice", schema.MaxAmount+1), paid(t, "evt_2", "alice", 5), paid(t, "evt_3", "alice", 0),
		paid(t, "evt_4", "a\x00b", 1), paid(t, "evt_5", "bob", 1), event(t, "evt_6", body{Status: status("o\x00", "s", testNow, 0)}))
	b.outcomes(c, map[Outcome]int64{Applied: 2, Quarantined: 4})
	if got := query1[int64](t, b.pool, `select count(*) from quarantined_events where reason = 'refused_by_database'`); got != 4 {
		t.Errorf("got %d, want 4", got)
	}
	b.lawful()
}

// An event that is ignored and today means money that does not fit stays ignored, and
// its record is in quarantine: never silence.
func TestApply_RefusedMoneyOfAnIgnoredEventIsQuarantined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := paid(t, "evt_1", "alice", schema.MaxAmount+1)
	b.ledger.mapper = func(*schema.Event) (schema.Meaning, error) { return schema.Meaning{}, nil }
	b.apply(e)
	b.ledger.mapper = mapBody
	b.rewind()
	b.outcomes(b.apply(e), map[Outcome]int64{Quarantined: 1})
	if got := b.outcome("evt_1"); got != "ignored" {
		t.Errorf("got %s, want ignored", got)
	}
}

// A missing partition of a table raises 23514, which is no fault of the records.
func TestApply_MissingPartitionIsRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.pool.Exec(t.Context(), `alter table processed_events detach partition processed_events_0`); err != nil {
		t.Fatal(err)
	}
	e := paid(t, "evt_1", "alice", 5)
	c, err := b.ledger.Apply(t.Context(), b.batch(0, e))
	if err == nil || c.Next() != 0 || b.count("quarantined_events") != 0 {
		t.Fatalf("got next %d, error %v, %d in quarantine; want 0, an error, none", c.Next(), err, b.count("quarantined_events"))
	}
	if _, err := b.pool.Exec(t.Context(), `alter table processed_events attach partition processed_events_0 for values in (0)`); err != nil {
		t.Fatal(err)
	}
	b.outcomes(b.apply(e), map[Outcome]int64{Applied: 1})
}

func TestApply_UnknownSourceAndVersionWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	foreign := paid(t, "evt_2", "alice", 5)
	foreign.Source = "elsewhere"
	for _, kind := range []string{KindUnknownSource, KindUnknownVersion} {
		batch := b.batch(0, paid(t, "one"+kind, "alice", 1), paid(t, "two"+kind, "alice", 1), foreign, paid(t, "three"+kind, "alice", 1))
		if kind == KindUnknownVersion {
			batch.Records[2] = record(batch.Start+2, paid(t, "v2", "alice", 1))
			for i, h := range batch.Records[2].Headers {
				if h.Key == schema.HeaderHLVersion {
					batch.Records[2].Headers[i].Value = []byte("2")
				}
			}
		}
		c, err := b.ledger.Apply(t.Context(), batch)
		var wait *WaitError
		if !errors.As(err, &wait) || wait.Kind != kind || wait.Offset != batch.Start+2 {
			t.Fatalf("%s: got %v, want a WaitError at %d", kind, err, batch.Start+2)
		}
		b.outcomes(c, map[Outcome]int64{Applied: 2})
		if c.Next() != batch.Start+2 {
			t.Fatalf("%s: next: got %d, want %d", kind, c.Next(), batch.Start+2)
		}
		batch.Start, batch.Records = c.Next(), batch.Records[2:]
		for range 3 {
			c, err := b.ledger.Apply(t.Context(), batch)
			if !errors.As(err, &wait) || c.Next() != batch.Start || c.Records() != 0 {
				t.Fatalf("%s: got next %d, %d records, %v; want to wait", kind, c.Next(), c.Records(), err)
			}
		}
		b.next[0] = batch.Start
		if n := query1[int64](t, b.pool, `select count(*) from incidents where kind = $1 and severity = 'warning' and from_offset = $2`, kind, batch.Start); n != 1 {
			t.Errorf("%s: got %d incidents, want 1", kind, n)
		}
	}
	if b.count("quarantined_events") != 0 {
		t.Error("what another configuration can read went to quarantine")
	}
	// Another configuration goes on.
	b.ledger.mapper = func(e *schema.Event) (schema.Meaning, error) { e.Source = "acme"; return mapBody(e) }
	b.outcomes(b.apply(paid(t, "evt_9", "alice", 1)), map[Outcome]int64{Applied: 1})
}

func TestApply_SurgeOfQuarantineIsRaisedOnceUntilAcknowledged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := 0
	bad := func(count int) {
		for range count {
			n++
			b.apply(event(t, fmt.Sprintf("bad_%d", n), body{Bad: schema.ReasonBadAmount}), paid(t, fmt.Sprintf("good_%d", n), "alice", 1))
		}
	}
	surges := func() int64 {
		return query1[int64](t, b.pool, `select count(*) from incidents where kind = 'quarantine_surge'`)
	}
	bad(20)
	if got := surges(); got != 0 {
		t.Fatalf("after 20: got %d incidents, want none", got)
	}
	bad(5)
	if got := surges(); got != 1 {
		t.Fatalf("after 25: got %d incidents, want 1", got)
	}
	// A replay of what is in quarantine is no news.
	list, err := ListIncidents(t.Context(), b.pool, true)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want one open incident", list, err)
	}
	if first, err := AcknowledgeIncident(t.Context(), b.pool, list[0].ID, "ops", "seen"); err != nil || !first {
		t.Fatalf("acknowledge: got %v %v", first, err)
	}
	b.rewind()
	for i := 1; i <= 25; i++ {
		b.apply(event(t, fmt.Sprintf("bad_%d", i), body{Bad: schema.ReasonBadAmount}), paid(t, fmt.Sprintf("good_%d", i), "alice", 1))
	}
	if got := surges(); got != 1 {
		t.Fatalf("after a replay: got %d incidents, want 1", got)
	}
	bad(1)
	if got := surges(); got != 2 {
		t.Fatalf("after the acknowledgement: got %d incidents, want 2", got)
	}
}

func TestStorable(t *testing.T) {
	t.Parallel()
	if got := storable("a\x00b\xffc"); got != "a\uFFFDb\uFFFDc" {
		t.Errorf("got %q", got)
	}
	e := schema.Event{Source: "acme", ID: "x", Body: []byte("{}"), BodySHA256: sha256.Sum256([]byte("{}")), ReceivedAt: time.Now()}
	if err := checkTexts(&e); err != nil {
		t.Errorf("got %v, want none", err)
	}
}
