package mutants

// Mutant is one way to break the program.
type Mutant struct {
	Name string
	// Breaks says which mistake this is, in the words of who would make it.
	Breaks string
	Edits  []Edit
}

// Edit replaces one text of a file, which holds it exactly once.
type Edit struct {
	// File is relative to the module.
	File     string
	Old, New string
}

const (
	fileProduce  = "ingest/produce.go"
	fileApply    = "consumer/apply.go"
	fileBatch    = "consumer/batch.go"
	fileRules    = "consumer/rules.go"
	fileSession  = "consumer/session.go"
	fileLedger   = "internal/ledger/apply.go"
	filePlan     = "internal/ledger/plan.go"
	fileQueries  = "internal/ledger/queries.go"
	fileWrite    = "internal/ledger/write.go"
	sortedEvents = "slices.SortFunc(list, func(a, b *candidate) int { return compareKeys(a.item.key, b.item.key) })"
)

// Table lists the mutants.
var Table = []Mutant{
	{
		Name: "answer before the ack", Breaks: "2xx is written when the record is handed to the client, not when the brokers have it",
		Edits: []Edit{{
			File: fileProduce,
			Old:  "	select {\n	case <-w.settled:\n	case <-timer.C:\n		w.settle(errAckTimeout)\n	}",
			New:  "	w.settle(nil)",
		}},
	},
	{
		Name: "offsets before the transaction", Breaks: "the offset of a batch is committed before its transaction began",
		Edits: []Edit{{
			File: fileApply,
			Old:  "	done, err := s.w.ledger.Apply(ctx, b.records)\n",
			New: "	s.commits.commit(committed{b.of, kgo.EpochOffset{Epoch: -1, Offset: b.records.Records[len(b.records.Records)-1].Offset + 1}})\n" +
				"	s.commits.flush(time.Second)\n" +
				"	done, err := s.w.ledger.Apply(ctx, b.records)\n",
		}, {
			File: fileApply,
			Old:  "	\"github.com/jackc/pgx/v5/pgconn\"\n",
			New:  "	\"github.com/jackc/pgx/v5/pgconn\"\n	\"github.com/twmb/franz-go/pkg/kgo\"\n",
		}},
	},
	{
		Name: "check, then insert", Breaks: "what the SELECT did not find is new, whatever the constraints say",
		Edits: []Edit{{
			File: fileQueries,
			Old:  "    on conflict do nothing\nreturning event_key`}",
			New:  "    on conflict on constraint processed_events_pkey do update set processed_at = excluded.processed_at\nreturning event_key`}",
		}, {
			File: fileWrite,
			Old:  "		case own:\n			alive[e.cand] = true\n",
			New:  "		case own:\n			alive[e.cand], e.written = true, true\n",
		}, {
			File: fileWrite,
			Old:  "{query: queryAddEvents, args: ",
			New:  "{query: queryInsertEvents, args: ",
		}, {
			File: fileWrite,
			Old:  "call{query: queryAddEntries, args: ",
			New:  "call{query: queryInsertEntries, args: ",
		}},
	},
	{
		Name: "error of a batch dropped", Breaks: "a batch that failed counts as done",
		Edits: []Edit{{
			File: fileLedger,
			Old:  "		return done, fmt.Errorf(\"apply batch %s/%d@%d: %w\", b.Topic, b.Partition, done.next, err)\n",
			New:  "		done.next = b.Records[len(b.Records)-1].Offset + 1\n		return done, nil\n",
		}},
	},
	{
		Name: "balance without an entry", Breaks: "an amount is added whether or not its entry was written",
		Edits: []Edit{{
			File: fileWrite,
			Old:  "		if !e.written {\n			continue\n		}\n		p := e.posting()\n",
			New:  "		p := e.posting()\n",
		}, {
			File: fileQueries,
			Old:  "var queryAddEntries = query{\"add entries\", insertEntries}",
			New:  "var queryAddEntries = query{\"add entries\", insertEntries + ` on conflict do nothing`}",
		}},
	},
	{
		Name: "entry without an event", Breaks: "money of a single event is entered, and the row that remembers it is not",
		Edits: []Edit{{
			File: fileWrite,
			Old:  "	if len(inserts) > 0 {\n		calls = append(calls, call{query: queryInsertEvents,",
			New:  "	if len(inserts) == 1 {\n		events++\n	} else if len(inserts) > 0 {\n		calls = append(calls, call{query: queryInsertEvents,",
		}, {
			File: fileWrite,
			Old:  "	for i := range w.entries {\n		w.entries[i].written = true\n",
			New:  "	if len(w.plan.order) == 1 {\n		calls = calls[1:]\n	}\n	for i := range w.entries {\n		w.entries[i].written = true\n",
		}},
	},
	{
		Name: "auto-commit", Breaks: "the client commits what was polled, on a timer",
		Edits: []Edit{{
			File: fileSession,
			Old:  "		kgo.DisableAutoCommit(),\n",
			New:  "		kgo.AutoCommitInterval(100 * time.Millisecond),\n",
		}},
	},
	{
		Name: "reset to latest", Breaks: "without a position, reading starts at the end of the log",
		Edits: []Edit{{
			File: fileRules,
			Old:  "s.move(ruleDatabaseNew, nil, s.logStart)",
			New:  "s.move(ruleDatabaseNew, nil, s.logEnd)",
		}},
	},
	{
		Name: "poison record skipped", Breaks: "a record that cannot be applied is passed over",
		Edits: []Edit{{
			File: filePlan,
			Old:  "	p.plan.quarantined = append(p.plan.quarantined, it)\n",
			New:  "",
		}},
	},
	{
		Name: "next is off by one", Breaks: "the offset that is committed is one beyond the next",
		Edits: []Edit{{
			File: fileBatch,
			Old:  "kgo.EpochOffset{Epoch: o.epoch, Offset: o.done.Next()}",
			New:  "kgo.EpochOffset{Epoch: o.epoch, Offset: o.done.Next() + 1}",
		}},
	},
	{
		Name: "effect key off", Breaks: "money is once per event, not once per movement",
		Edits: []Edit{{
			File: fileWrite,
			Old:  "		for line, effect := range m.EffectKeys(c.item.event.Source) {\n",
			New:  "		for line, effect := range m.EffectKeys(c.item.event.Source) {\n			effect = schema.EffectKey(c.item.key)\n			effect[0] ^= byte(line)\n",
		}},
	},
	{
		Name: "progress written backwards", Breaks: "the last to write decides the progress, also if it was frozen for long",
		Edits: []Edit{{
			File: fileQueries,
			Old:  "   set next_offset = greatest(next_offset, $4), from_offset = greatest(from_offset, $5),\n",
			New:  "   set next_offset = $4, from_offset = least($4, greatest(from_offset, $5)),\n",
		}},
	},
	{
		Name: "batch not deduped", Breaks: "an event that is twice in a batch is two events",
		Edits: []Edit{{
			File: filePlan,
			Old:  "	c, stored := p.plan.candidates[it.key], p.known[it.key]\n",
			New:  "	c, stored := (*candidate)(nil), p.known[it.key]\n",
		}},
	},
	{
		Name: "locks unsorted", Breaks: "rows are locked in the order in which records came",
		Edits: []Edit{{
			File: fileWrite,
			Old:  "	" + sortedEvents + "\n",
			New:  "",
		}, {
			File: fileWrite,
			Old:  "		return cmp.Or(compareKeys(a.effect, b.effect), cmp.Compare(a.cand.money.record.Offset, b.cand.money.record.Offset))\n",
			New:  "		return cmp.Compare(a.cand.money.record.Offset, b.cand.money.record.Offset)\n",
		}, {
			File: fileWrite,
			Old: "	slices.SortFunc(list, func(a, b sum) int {\n" +
				"		return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.currency, b.currency))\n	})\n	return list, nil\n",
			New: "	_ = strings.Compare\n	return list, nil\n",
		}},
	},
}
