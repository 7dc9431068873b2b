package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hookledger/schema"
)

// amendedLine is an entry of an event that was amended, or of one of its amendments, which
// is "" in those of the event itself.
type amendedLine struct {
	line
	amendment, kind, source, id string
	partition                   int32
	offset                      int64
	inTopic                     bool
}

func (l *amendedLine) scan() []any {
	return append(l.line.scan(), &l.amendment, &l.kind, &l.source, &l.id, &l.partition, &l.offset, &l.inTopic)
}

// movement is what of an entry tells movements apart.
func (l *amendedLine) movementOf() line {
	return line{account: l.account, contra: l.contra, currency: l.currency, rule: l.rule, movement: l.line.movement}
}

// readAmended judges amendments: the first lines of each take back what the entries of
// its event added up to before, and no more; the others are the postings that it was
// recorded to mean. Where their hash is another, the last amendment of an event goes to
// open for a closer look: those before are judged by what the next took back.
func readAmended(ctx context.Context, opts Options, since *Mark, open map[schema.EventKey]*unexplained, m *meanings) error {
	var through int64
	if since != nil {
		through = since.Entries.Through
	}
	err := readOnly(ctx, opts.Pool, sqlByIndex, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlAmended, through, opts.Topic)
		if err != nil {
			return err
		}
		var (
			l     amendedLine
			group []amendedLine
			b     = amending{open: open, m: m}
		)
		_, err = pgx.ForEachRow(rows, l.scan(), func() error {
			if len(group) > 0 && (l.event != group[0].event || l.amendment != group[0].amendment) {
				b.settle(group)
				group = group[:0]
			}
			group = append(group, l)
			return nil
		})
		b.settle(group)
		return err
	})
	if err != nil {
		return readError("amendments", err)
	}
	return nil
}

// amending follows one event after the other through its amendments.
type amending struct {
	open map[schema.EventKey]*unexplained
	m    *meanings

	event  schema.EventKey
	stands map[line]int64 // without sums of zero
	wrong  bool           // one finding of each event
}

// settle judges the entries of one amendment, or takes those of the event itself.
func (b *amending) settle(group []amendedLine) {
	if len(group) == 0 {
		return
	}
	first := &group[0]
	if first.event != b.event {
		b.event, b.stands, b.wrong = first.event, make(map[line]int64), false
	}
	if first.amendment != "" && !b.wrong {
		b.judge(group)
	}
	for i := range group {
		of := group[i].movementOf()
		if b.stands[of] += group[i].amount; b.stands[of] == 0 {
			delete(b.stands, of)
		}
	}
}

func (b *amending) judge(group []amendedLine) {
	a, back := &group[0], len(b.stands)
	delete(b.open, a.event)
	taken := make(map[line]bool, back)
	for i := range group[:min(back, len(group))] {
		of := group[i].movementOf()
		if b.stands[of] != -group[i].amount || taken[of] {
			b.find(a, fmt.Sprintf("line %d is not the opposite of what stood before", group[i].line.line))
			return
		}
		taken[of] = true
	}
	if len(group) < back {
		b.find(a, "it does not take back all that stood before")
		return
	}
	postings := group[back:]
	if a.kind == "reverse" {
		if len(postings) > 0 {
			b.find(a, fmt.Sprintf("line %d is more than to take back what stood before", postings[0].line.line))
		}
		return
	}
	var buf []byte
	lines := make([]line, len(postings))
	for i := range postings {
		lines[i] = postings[i].line
		buf = lines[i].appendTo(buf)
	}
	if hashOf(append(appendText(nil, fmt.Sprint(len(lines))), buf...)) != a.meaning {
		look(b.open, b.m, &unexplained{key: a.event, meaning: a.meaning, source: a.source, id: a.id, partition: a.partition, offset: a.offset,
			inTopic: a.inTopic, amendment: a.amendment, postings: lines})
	}
}

func (b *amending) find(a *amendedLine, what string) {
	b.wrong = true
	b.m.wrong.add(a.id, label(a.source+"/"+a.id)+", amendment "+a.amendment+": "+what)
}

// differsAmended says in what the postings of the last amendment differ from what it was
// recorded to mean: each is one of its own, in order, or another event told of it.
func (t *toldEvent) differsAmended(byEffect map[schema.EffectKey]standing) string {
	own := t.postings
	for i, effect := range t.meaning.EffectKeys(t.source) {
		p := t.meaning.Postings[i]
		if len(own) > 0 && own[0].is(p) {
			own = own[1:]
			continue
		}
		if s, ok := byEffect[effect]; !ok || s.account != p.Account || s.currency != p.Currency || s.amount != p.Amount {
			return fmt.Sprintf("amendment %s has no entry of %s to %s", t.amendment, schema.FormatAmount(p.Amount, p.Currency), label(p.Account))
		}
	}
	if len(own) > 0 {
		return fmt.Sprintf("line %d of amendment %s is no posting of the event", own[0].line, t.amendment)
	}
	return ""
}

func (l *line) is(p schema.Posting) bool {
	return l.account == p.Account && l.contra == p.Contra && l.amount == p.Amount && l.currency == p.Currency && l.rule == p.Rule && l.movement == p.Movement
}
