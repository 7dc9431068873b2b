package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report puts checks and notes in order.
func (r *run) report() Report {
	rep := Report{
		UnaccountedEvents: r.acc.unaccounted.count, Records: r.acc.records,
		Checks: r.checks(), Notes: []Note{}, Range: r.rangeOf(), Mark: r.next,
	}
	rep.Checks = append(rep.Checks, r.historyChecks()...)
	open := r.open()
	for _, o := range open {
		if r.opts.Strict {
			rep.Checks = append(rep.Checks, o.finding.check(o.name, o.what, "none", r.command(o.next)))
			continue
		}
		rep.Notes = append(rep.Notes, o.finding.note(o.name, o.what, r.command(o.next))...)
	}
	rep.Notes = append(rep.Notes, r.notes()...)
	rep.OK = !slices.ContainsFunc(rep.Checks, func(c Check) bool { return !c.OK })
	return rep
}

// command makes a command that can be pasted where verify was run.
func (r *run) command(words string) string {
	if words == "" {
		return ""
	}
	if r.opts.Command == "" {
		return "hookledger " + words
	}
	return r.opts.Command + " " + words
}

// about makes a command about the first of a finding.
func (r *run) about(f finding, words, otherwise string) string {
	return f.first(r.command(words), r.command(otherwise))
}

// What is counted where nothing is wrong.
var (
	wordAccounts = words{"account", "accounts"}
	wordEntries  = words{"entry", "entries"}
	wordEvents   = words{"event", "events"}
	wordRecords  = words{"record", "records"}
)

func (r *run) checks() []Check {
	t, acc := &r.tables, &r.acc
	compared, records := wordEntries.of(t.entries), wordRecords.of(acc.records)
	moneyless := merged(t.moneyless, acc.moneyless)
	hashes := merged(acc.mismatched, t.conflictHashes)
	unfounded := merged(t.unfounded, r.meanings.events)
	wrongSignatures := acc.signatures.judge()
	return []Check{
		t.balances.check(CheckBalances, words{"account whose balance or entry_count is not that of its entries", "accounts whose balance or entry_count is not that of their entries"},
			wordAccounts.of(t.accounts)+", "+compared, r.about(t.balances, "accounts show", "verify")),
		unfounded.check(CheckEntries, words{"entry without an applied event, a payment or an amendment", "entries without an applied event, a payment or an amendment"},
			compared, r.about(unfounded, "events show", "accounts list")),
		moneyless.check(CheckEvents, words{"applied event, payment or amendment without its entries", "applied events, payments or amendments without their entries"},
			wordEvents.of(max(t.events, acc.records))+" and what else moves money", r.about(moneyless, "events show", "accounts list")),
		t.amounts.check(CheckAmounts, words{"entry with an amount or a currency that no event may have", "entries with an amount or a currency that no event may have"},
			compared, r.about(t.amounts, "events show", "accounts list")),
		r.meanings.wrong.check(CheckMeaning, words{"applied event whose entries are not what it was recorded to mean", "applied events whose entries are not what they were recorded to mean"},
			compared, r.about(r.meanings.wrong, "events show", "events list")),
		r.meanings.keys.check(CheckEffectKeys, words{"entry whose effect key is not that of its movement: what keeps it from being paid again was changed",
			"entries whose effect key is not that of their movement: what keeps them from being paid again was changed"},
			compared, r.about(r.meanings.keys, "events show", "accounts list")),
		acc.unaccounted.check(CheckRecords, words{"record below the committed offset is nowhere on record", "records below the committed offset are nowhere on record"},
			records+" below the committed offsets", r.rewind(acc.rewindTo)),
		hashes.check(CheckHashes, words{"stored hash or body differs from the topic's", "stored hashes or bodies differ from the topic's"}, records, r.about(hashes, "events show", "events list")),
		wrongSignatures.check(CheckSignatures, words{"record whose signature was made by no secret that was in use when it was received", "records whose signature was made by no secret that was in use when they were received"},
			words{"signature", "signatures"}.of(acc.signatures.held), r.about(wrongSignatures, "events show", "events list")),
		r.progress.check(CheckPositions, words{"position disagrees" + r.mendPositions(), "positions disagree" + r.mendPositions()},
			words{"partition", "partitions"}.of(int64(len(r.pos.parts))), r.command(r.positionsNext())),
		t.untraced.check(CheckResolutions, words{"record left the quarantine, and nothing says what became of its event (look at it, and read it again: replay reset)",
			"records left the quarantine, and nothing says what became of their events (look at each, and read it again: replay reset)"},
			"every record that left the quarantine has an outcome", r.about(t.untraced, "events show", "quarantine list --all")),
		t.losses.check(CheckIncidents, words{"loss not acknowledged", "losses not acknowledged"}, "no loss is open", r.command("incidents list --open --severity loss")),
	}
}

// historyChecks are there only if a history is.
func (r *run) historyChecks() []Check {
	if r.acks == nil {
		return nil
	}
	return []Check{r.missing.lost.check(CheckAcknowledged, words{"acknowledged delivery whose event is neither in the topic nor on record; the provider's listing has it: fill it in",
		"acknowledged deliveries whose event is neither in the topic nor on record; the provider's listing has it: fill it in"},
		words{"acknowledged delivery", "acknowledged deliveries"}.of(r.acks.lines)+" of "+wordEvents.of(r.missing.events), r.command("events import FILE --source SOURCE --dry-run"))}
}

// matter is something open that a person can close.
type matter struct {
	finding *finding
	name    string
	what    words
	next    string
}

func (r *run) open() []matter {
	t := &r.tables
	return []matter{
		{&t.quarantined, "quarantine", words{"record waits in quarantine", "records wait in quarantine"}, "quarantine list"},
		{&t.conflicts, "conflicts", words{"conflict waits for a decision", "conflicts wait for a decision"}, "quarantine list --conflicts"},
		{&t.warnings, "warnings", words{"warning not acknowledged", "warnings not acknowledged"}, "incidents list --open"},
	}
}

func (r *run) notes() []Note {
	t, acc := &r.tables, &r.acc
	show := func(f finding) string { return r.about(f, "events show", "events list") }
	notes := slices.Concat(
		acc.changed.note("changed_bodies", words{"record of a known event has other bytes and no conflict: to the worker it meant the same, or a status that was superseded",
			"records of known events have other bytes and no conflict: to the worker they meant the same, or a status that was superseded"}, show(acc.changed)),
		acc.byLedger.note("known_by_entry", words{"record whose event has no row any more, only its entries", "records whose event has no row any more, only its entries"}, show(acc.byLedger)),
		acc.forgotten.note("forgotten", words{"record older than the memory of events and without an entry: ignored then, as far as can be told",
			"records older than the memory of events and without an entry: ignored then, as far as can be told"}, show(acc.forgotten)),
		t.aged.note("entries_by_ledger_alone", words{"entry older than the memory of events", "entries older than the memory of events"}, ""),
		r.meanings.uncompared.note("meanings_not_compared", words{"applied event whose meaning holds more than its entries (a status, or a movement another event told of first), and whose record or mapping of that time is gone",
			"applied events whose meaning holds more than their entries (a status, or a movement another event told of first), and whose record or mapping of that time is gone"}, show(r.meanings.uncompared)),
		acc.signatures.imported.note("imported", words{"record that an operator filled in: no provider signed it", "records that an operator filled in: no provider signed them"}, show(acc.signatures.imported)),
	)
	for _, why := range slices.Sorted(maps.Keys(acc.signatures.unchecked)) {
		notes = append(notes, acc.signatures.unchecked[why].note("signatures_not_checkable", words{"signature not checkable, " + why, "signatures not checkable, " + why}, "")...)
	}
	if r.acks != nil {
		notes = append(notes, r.acks.cut.note("history_cut", words{"last line of a history has no end and was left out: if nobody writes it any more, it was cut",
			"last lines of histories have no end and were left out: if nobody writes them any more, they were cut"}, "")...)
	}
	if n := r.missing.recorded; n > 0 {
		notes = append(notes, Note{"acknowledged_by_record", words{"acknowledged event is on record, and not in what was read of the topic",
			"acknowledged events are on record, and not in what was read of the topic"}.of(n), ""})
	}
	if n := r.missing.forgotten; n > 0 {
		notes = append(notes, Note{"acknowledged_forgotten", words{"acknowledged event is older than the memory of events and has no entry: ignored then, as far as can be told",
			"acknowledged events are older than the memory of events and have no entry: ignored then, as far as can be told"}.of(n), ""})
	}
	return slices.Concat(notes, r.missingTopic(), r.strangeGroup(), r.waiting(), r.deletedMeanwhile(), r.marks())
}

// rewind words the repair of records that are nowhere on record: going back is
// always safe, what was applied stays applied once.
func (r *run) rewind(to map[int32]int64) string {
	var commands []string
	for _, p := range slices.Sorted(maps.Keys(to)) {
		if len(commands) == sampleSize {
			break // the next run names the others
		}
		commands = append(commands, r.command(fmt.Sprintf("replay reset --partition %d --to-offset %d --reason %s", p, to[p], "'verify found records that are nowhere on record'")))
	}
	return strings.Join(commands, " && ")
}

// otherTopic tells whether workers applied another topic than the configured one.
func (r *run) otherTopic() bool {
	return slices.ContainsFunc(r.progress.sample, func(s sample) bool { return strings.HasPrefix(s.text, "workers applied records of topic") })
}

func (r *run) otherCluster() bool {
	return slices.ContainsFunc(r.progress.sample, func(s sample) bool { return strings.Contains(s.text, "progress belongs to cluster") })
}

// mendPositions words what makes positions agree.
func (r *run) mendPositions() string {
	switch {
	case r.otherTopic():
		return " (correct kafka.topic, and see that kafka.group is that of the workers; a topic that is to follow the other one becomes known when workers start)"
	case len(r.pos.parts) == 0:
		return " (find out who deleted the topic; providers resend what they were not answered for)"
	case r.otherCluster():
		return " (correct database.url or kafka.brokers: these two do not belong together)"
	}
	return " (restart the workers: they heal positions when they start)"
}

func (r *run) positionsNext() string {
	switch {
	case r.otherTopic():
		return "config show"
	case len(r.pos.parts) == 0:
		return "topics apply"
	case r.otherCluster():
		return "doctor"
	}
	return "lag"
}

// waiting tells of records that no worker has settled yet, which nothing here judges.
func (r *run) waiting() []Note {
	var n int64
	for _, at := range r.pos.parts {
		n += max(at.end-max(at.settled, at.start), 0)
	}
	if n == 0 {
		return nil
	}
	return []Note{{"waiting", words{"record is above the committed offsets: the workers have yet to settle it",
		"records are above the committed offsets: the workers have yet to settle them"}.of(n), r.command("lag")}}
}

func (r *run) strangeGroup() []Note {
	if !r.strange {
		return nil
	}
	return []Note{{"group", "group " + r.opts.Group + " committed nothing of what workers applied, so records were judged up to where Postgres says that workers came: is kafka.group that of the workers, or did its offsets expire?", r.command("lag")}}
}

func (r *run) missingTopic() []Note {
	if len(r.pos.parts) > 0 || r.otherTopic() {
		return nil
	}
	return []Note{{"topic", "topic " + r.opts.Topic + " does not exist: there is nothing to read", r.command("topics apply")}}
}

func (r *run) deletedMeanwhile() []Note {
	if r.reader.deleted == 0 {
		return nil
	}
	return []Note{{"deleted_meanwhile", words{"offset was deleted by retention before it was read",
		"offsets were deleted by retention before they were read"}.of(r.reader.deleted), ""}}
}

// marks tells what an increment did not prove again.
func (r *run) marks() []Note {
	switch {
	case !r.opts.Incremental:
		return nil
	case r.aside != "":
		return []Note{{"mark_set_aside", "everything was proved: the mark of the last run does not fit, " + r.aside, ""}}
	case r.since == nil:
		return []Note{{"mark", "everything was proved: this is the first run with this mark", ""}}
	}
	return []Note{{"mark", fmt.Sprintf("what was proved before %s was not read again; everything was proved last at %s",
		r.since.ProvedAt.Format(timeFormat), r.since.FullAt.Format(timeFormat)), r.command("verify")}}
}

const timeFormat = "2006-01-02T15:04:05Z"
