package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"hookledger/schema"
)

// maxUnexplained bounds the applied events that are looked at one by one: 200 bytes each.
// More are counted as not compared.
const maxUnexplained = 100_000

// meanings is what came of comparing entries with the meanings that were recorded.
type meanings struct {
	// wrong: the entries are not what the event was recorded to mean.
	wrong finding
	// uncompared: what the event meant has parts that no table keeps, and its record or
	// today's mapping does not tell either.
	uncompared finding
	// keys are entries whose effect key is not that of their movement, events those whose
	// event key is not that of their source and event ID.
	keys, events finding
}

// unexplained is an applied event whose entries do not have the hash of its meaning.
// That alone says nothing: a meaning may hold a status beside its postings, and of two
// events with one movement only the first has the entry.
type unexplained struct {
	key        schema.EventKey
	meaning    schema.MeaningHash
	source, id string
	partition  int32
	offset     int64
	inTopic    bool
	// amendment is the last one of the event, if it was amended, and postings those that
	// it wrote; the rest is of its record then.
	amendment string
	postings  []line
}

// look puts u among those of open, unless they are too many.
func look(open map[schema.EventKey]*unexplained, m *meanings, u *unexplained) {
	if len(open) < maxUnexplained {
		open[u.key] = u
		return
	}
	m.uncompared.add(u.id, label(u.source+"/"+u.id))
}

func (u *unexplained) name(topic string) string {
	return label(u.source+"/"+u.id) + " at " + place(topic, u.partition, u.offset)
}

// line is one entry of an applied event. Its hash is made here, not by the code that
// made it first: texts, each behind its length, of which the first is how many postings
// there are, and six more are of each, by line; 128 bits of their SHA-256.
type line struct {
	event                     schema.EventKey
	meaning                   schema.MeaningHash
	line                      int32
	amount                    int64
	account, contra, currency string
	rule, movement            string
}

func (l *line) scan() []any {
	return []any{(*[16]byte)(&l.event), (*[16]byte)(&l.meaning), &l.line, &l.account, &l.contra, &l.amount, &l.currency, &l.rule, &l.movement}
}

func (l *line) appendTo(b []byte) []byte {
	for _, text := range [...]string{l.account, l.contra, strconv.FormatInt(l.amount, 10), l.currency, l.rule, l.movement} {
		b = appendText(b, text)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

func hashOf(parts []byte) schema.MeaningHash {
	sum := sha256.Sum256(parts)
	return schema.MeaningHash(sum[:16])
}

// maxSuspected bounds the events of which more than one entry is looked at in one pass over
// the ledger: 16 bytes each.
const maxSuspected = 4_000_000

// suspects are events that need a closer look: those with the least keys above after. What
// does not fit is left to the next pass.
type suspects struct {
	max   int
	after schema.EventKey
	keys  [][16]byte
	// upTo is the largest key that fits, if more is set.
	upTo schema.EventKey
	more bool
}

func (s *suspects) add(k schema.EventKey) {
	if bytes.Compare(k[:], s.after[:]) <= 0 || s.more && bytes.Compare(k[:], s.upTo[:]) > 0 {
		return
	}
	if s.keys = append(s.keys, k); len(s.keys) < s.max {
		return
	}
	s.compact()
	if half := max(s.max/2, 1); len(s.keys) > half {
		s.keys, s.more, s.upTo = s.keys[:half], true, s.keys[half-1]
	}
}

func (s *suspects) compact() {
	slices.SortFunc(s.keys, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	s.keys = slices.Compact(s.keys)
}

// readUnexplained compares the entries of applied events with their recorded meaning, by
// their hashes, and returns those that need a closer look: first as if each entry were
// the only one of its event, then, for those few where that fails, all entries of it.
//
// The same pass compares the effect key of every entry with what it is made of.
func readUnexplained(ctx context.Context, opts Options, since *Mark) (open map[schema.EventKey]*unexplained, m meanings, err error) {
	open = make(map[schema.EventKey]*unexplained)
	s := suspects{max: maxSuspected, more: true}
	if opts.suspects > 0 {
		s.max = opts.suspects
	}
	for s.more {
		s = suspects{max: s.max, after: s.upTo}
		if err := s.read(ctx, opts, since, &m); err != nil {
			return nil, m, readError("what applied events mean", err)
		}
		for events := range slices.Chunk(s.keys, batchRecords/2) {
			if err := compareWhole(ctx, opts, events, open, &m); err != nil {
				return nil, m, readError("what applied events mean", err)
			}
		}
	}
	return open, m, readAmended(ctx, opts, since, open, &m)
}

// read passes over the ledger once. Only the first pass judges the entries' keys.
func (s *suspects) read(ctx context.Context, opts Options, since *Mark, m *meanings) error {
	var through int64
	if since != nil {
		through = since.Entries.Through
	}
	err := readOnly(ctx, opts.Pool, plannerFor(since), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlEntries, through)
		if err != nil {
			return err
		}
		var (
			l       line
			applied bool
			e       effect
			buf     []byte
		)
		_, err = pgx.ForEachRow(rows, append(append(l.scan(), &applied), e.scan()...), func() error {
			if s.after == (schema.EventKey{}) {
				e.judge(&l, m)
			}
			if !applied {
				return nil
			}
			buf = l.appendTo(appendText(buf[:0], "1"))
			if l.line != 0 || hashOf(buf) != l.meaning {
				s.add(l.event)
			}
			return nil
		})
		return err
	})
	s.compact()
	return err
}

// compareWhole hashes all entries of each event, and adds those to open whose hash is
// still another.
func compareWhole(ctx context.Context, opts Options, keys [][16]byte, open map[schema.EventKey]*unexplained, m *meanings) error {
	return readOnly(ctx, opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlWhole, keys, opts.Topic)
		if err != nil {
			return err
		}
		var (
			l     line
			u     unexplained
			buf   []byte
			lines int
			last  unexplained
		)
		settle := func() {
			if lines > 0 && hashOf(append(appendText(nil, strconv.Itoa(lines)), buf...)) != last.meaning {
				one := last
				look(open, m, &one)
			}
			buf, lines = buf[:0], 0
		}
		_, err = pgx.ForEachRow(rows, append(l.scan(), &u.source, &u.id, &u.partition, &u.offset, &u.inTopic), func() error {
			if l.event != last.key {
				settle()
			}
			last = u
			last.key, last.meaning = l.event, l.meaning
			buf, lines = l.appendTo(buf), lines+1
			return nil
		})
		settle()
		return err
	})
}

// judgeMeanings has the closer look: at the records of the topic.
func (r *run) judgeMeanings(ctx context.Context, open map[schema.EventKey]*unexplained) error {
	if err := r.explain(ctx, open, &r.meanings); err != nil {
		return err
	}
	for _, u := range open {
		r.meanings.uncompared.add(u.id, u.name(r.opts.Topic))
	}
	return nil
}

// explain asks today's mapping about the records of open events, and takes those that
// are settled out of open.
func (r *run) explain(ctx context.Context, open map[schema.EventKey]*unexplained, m *meanings) error {
	if r.opts.Meaning == nil || len(open) == 0 {
		return nil
	}
	spans := r.spansOf(open)
	if len(spans) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(readerOpts(r.opts.KafkaOpts)...)
	if err != nil {
		return fmt.Errorf("make Kafka client to read topic %s again: %w", r.opts.Topic, err)
	}
	defer cl.Close()
	var told []toldEvent
	settle := func() error {
		err := r.compare(ctx, told, open, m)
		told = told[:0]
		return err
	}
	var headers []schema.Header
	err = newReader(cl, r.opts.Topic, spans).run(ctx, func(records []*kgo.Record) error {
		for _, rec := range records {
			if rec.Attrs.IsControl() {
				continue
			}
			headers = headers[:0]
			for _, h := range rec.Headers {
				headers = append(headers, schema.Header(h))
			}
			e, err := schema.DecodeRecord(rec.Key, rec.Value, headers)
			u := open[e.Key()]
			if err != nil || u == nil || u.partition != rec.Partition || u.offset != rec.Offset {
				continue
			}
			if meaning, err := r.opts.Meaning(&e); err == nil && meaning.Hash() == u.meaning && len(meaning.Postings) > 0 {
				told = append(told, toldEvent{u, meaning})
			}
			if len(told) == batchRecords/10 {
				if err := settle(); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(int64) {})
	if err != nil {
		return err
	}
	return settle()
}

// spansOf are the smallest ranges of the log that hold the records of open events.
func (r *run) spansOf(open map[schema.EventKey]*unexplained) []span {
	at := make(map[int32]*span)
	for _, u := range open {
		i := slices.IndexFunc(r.pos.parts, func(p position) bool { return p.partition == u.partition })
		if i < 0 || !u.inTopic || u.offset < r.pos.parts[i].start || u.offset >= r.pos.parts[i].end {
			continue
		}
		if s := at[u.partition]; s == nil {
			at[u.partition] = &span{u.partition, u.offset, u.offset + 1}
		} else {
			s.from, s.to = min(s.from, u.offset), max(s.to, u.offset+1)
		}
	}
	out := make([]span, 0, len(at))
	for _, s := range at {
		out = append(out, *s)
	}
	return out
}

// toldEvent is an event with what it was applied as: the mapping's answer has the hash.
type toldEvent struct {
	*unexplained
	meaning schema.Meaning
}

// standing is an entry as the table has it.
type standing struct {
	event             schema.EventKey
	line              int32
	effect            schema.EffectKey
	account, currency string
	amount            int64
	contra, rule, by  string
}

// compare reads the entries of told events and of their movements: each posting has an
// entry of the same money, and no entry of the event is anything else.
func (r *run) compare(ctx context.Context, told []toldEvent, open map[schema.EventKey]*unexplained, m *meanings) error {
	if len(told) == 0 {
		return nil
	}
	var events, effects [][16]byte
	for i := range told {
		events = append(events, told[i].key)
		for _, e := range told[i].meaning.EffectKeys(told[i].source) {
			effects = append(effects, e)
		}
	}
	byEffect, byEvent := make(map[schema.EffectKey]standing), make(map[schema.EventKey][]standing)
	err := readOnly(ctx, r.opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlStanding, events, effects)
		if err != nil {
			return err
		}
		var s standing
		_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&s.event), &s.line, (*[16]byte)(&s.effect), &s.account, &s.currency, &s.amount, &s.contra, &s.rule, &s.by}, func() error {
			byEffect[s.effect] = s
			byEvent[s.event] = append(byEvent[s.event], s)
			return nil
		})
		return err
	})
	if err != nil {
		return readError("entries of events and movements", err)
	}
	for i := range told {
		t := &told[i]
		if wrong := t.differs(byEffect, byEvent[t.key]); wrong != "" {
			m.wrong.add(t.id, t.name(r.opts.Topic)+": "+wrong)
		}
		delete(open, t.key)
	}
	return nil
}

// differs says in what the entries differ from what the event was applied as.
func (t *toldEvent) differs(byEffect map[schema.EffectKey]standing, own []standing) string {
	if t.amendment != "" {
		return t.differsAmended(byEffect)
	}
	expected := make(map[schema.EffectKey]int)
	for line, effect := range t.meaning.EffectKeys(t.source) {
		expected[effect] = line
		p := t.meaning.Postings[line]
		s, ok := byEffect[effect]
		switch {
		case !ok:
			return fmt.Sprintf("line %d has no entry", line)
		case s.account != p.Account || s.currency != p.Currency || s.amount != p.Amount:
			return fmt.Sprintf("line %d is %s to %s, the event says %s to %s", line,
				schema.FormatAmount(s.amount, s.currency), label(s.account), schema.FormatAmount(p.Amount, p.Currency), label(p.Account))
		case s.event == t.key && (s.line != int32(line) || s.contra != p.Contra || s.rule != p.Rule || s.by != p.Movement):
			return fmt.Sprintf("line %d names another contra, rule or movement than the event", line)
		}
	}
	for _, s := range own {
		if _, ok := expected[s.effect]; !ok {
			return fmt.Sprintf("line %d is no posting of the event", s.line)
		}
	}
	return ""
}
