package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report puts checks and notes in order.
func report(opts Options, pos positions, r *reader, acc accounting, t tables, progress finding) Report {
	rep := Report{
		UnaccountedEvents: acc.unaccounted.count,
		Records:           acc.records,
		Checks: []Check{
			t.balances.check(CheckBalances, "accounts whose balance or entry_count is not that of their entries",
				fmt.Sprintf("%d accounts, %d entries", t.accounts, t.entries), t.balances.first("hookledger accounts show")),
			t.unfounded.check(CheckEntries, "entries without an applied event, a payment or an amendment",
				fmt.Sprintf("%d entries", t.entries), t.unfounded.first("hookledger events show")),
			t.moneyless.check(CheckEvents, "applied events, payments or amendments without their entries",
				fmt.Sprintf("%d events and what else moves money", t.events), t.moneyless.first("hookledger events show")),
			t.amounts.check(CheckAmounts, "entries with an amount or a currency that no event may have",
				fmt.Sprintf("%d entries", t.entries), t.amounts.first("hookledger events show")),
			acc.unaccounted.check(CheckRecords, "records below the committed offset are nowhere on record",
				fmt.Sprintf("%d records below the committed offsets", acc.records), rewind(acc.rewindTo)),
			merged(acc.mismatched, t.conflictHashes).check(CheckHashes, "stored hashes or bytes differ from the topic's",
				fmt.Sprintf("%d records", acc.records), merged(acc.mismatched, t.conflictHashes).first("hookledger events show")),
			progress.check(CheckPositions, "positions disagree",
				fmt.Sprintf("%d partitions", len(pos.parts)), mendPositions(pos, progress)),
			t.losses.check(CheckIncidents, "losses not acknowledged",
				"no loss is open", acknowledge(t.losses)),
		},
		Notes: slices.Concat(
			t.quarantined.note("quarantine", "records wait in quarantine", "hookledger quarantine list"),
			t.conflicts.note("conflicts", "conflicts wait for a decision", "hookledger quarantine list --conflicts"),
			t.warnings.note("warnings", "warnings not acknowledged", "hookledger incidents list --open"),
			acc.changed.note("changed_bodies", "records of known events have other bytes and no conflict: to the worker they meant the same, or a status that was superseded", acc.changed.first("hookledger events show")),
			acc.byLedger.note("known_by_entry", "records whose event has no row any more, only its entries", acc.byLedger.first("hookledger events show")),
			acc.forgotten.note("forgotten", "records older than the memory of events and without an entry: ignored then, as far as can be told", acc.forgotten.first("hookledger events show")),
			t.aged.note("entries_by_ledger_alone", "entries older than the memory of events", ""),
			missingTopic(opts, pos),
			waiting(pos),
			deletedMeanwhile(r),
		),
	}
	rep.OK = !slices.ContainsFunc(rep.Checks, func(c Check) bool { return !c.OK })
	if rep.Notes == nil {
		rep.Notes = []Note{}
	}
	return rep
}

// rewind words the repair of records that are nowhere on record: going back is
// always safe, what was applied stays applied once.
func rewind(to map[int32]int64) string {
	if len(to) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("stop the workers, go back, start them again; what was applied stays applied once:")
	for i, p := range slices.Sorted(maps.Keys(to)) {
		if i == sampleSize {
			fmt.Fprintf(&s, " && … %d more partitions", len(to)-i)
			break
		}
		if i > 0 {
			s.WriteString(" &&")
		}
		fmt.Fprintf(&s, " hookledger replay reset --partition %d --to-offset %d --reason %s", p, to[p], "'verify found records that are nowhere on record'")
	}
	return s.String()
}

// acknowledge words how a person says that a loss was seen and dealt with.
func acknowledge(losses finding) string {
	if len(losses.sample) == 0 {
		return ""
	}
	return "`hookledger incidents list --open --severity loss`; when it is dealt with: " +
		losses.first("hookledger incidents ack --reason TEXT")
}

// mendPositions words what makes positions agree.
func mendPositions(pos positions, f finding) string {
	switch {
	case len(pos.parts) == 0:
		return "find out who deleted the topic; `hookledger topics apply` creates it again, and providers resend what they were not answered for"
	case slices.ContainsFunc(f.sample, func(s sample) bool { return strings.Contains(s.text, "progress belongs to cluster") }):
		return "correct database.url or kafka.brokers: these two do not belong together"
	}
	return "restart the workers (`hookledger consume`): they heal positions when they start, then run `hookledger verify`"
}

// waiting tells of records that no worker has settled yet, which nothing here judges.
func waiting(pos positions) []Note {
	var n int64
	for _, at := range pos.parts {
		n += max(at.end-max(at.committed, at.start), 0)
	}
	if n == 0 {
		return nil
	}
	return []Note{{"waiting", fmt.Sprintf("%d records are above the committed offsets: the workers have yet to settle them", n), "hookledger lag"}}
}

func missingTopic(opts Options, pos positions) []Note {
	if len(pos.parts) > 0 {
		return nil
	}
	return []Note{{"topic", "topic " + opts.Topic + " does not exist: there is nothing to read", "hookledger topics apply"}}
}

func deletedMeanwhile(r *reader) []Note {
	if r.deleted == 0 {
		return nil
	}
	return []Note{{"deleted_meanwhile", fmt.Sprintf("%d offsets were deleted by retention before they were read", r.deleted), ""}}
}
