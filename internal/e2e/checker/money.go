package checker

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// purse is an account in one currency.
type purse struct{ account, currency string }

func (p purse) String() string { return p.account + " " + p.currency }

// appliedOnce is I3.
func (j *judge) appliedOnce() {
	var events, movements, rows, unpaired []string
	for ref, entries := range j.entries {
		if ref.ID != "" && len(entries) > 1 {
			events = append(events, fmt.Sprintf("%s (%d entries)", ref, len(entries)))
		}
	}
	moved := map[Ref][]string{}
	for _, ref := range j.refs() {
		if len(j.entries[ref]) > 0 {
			m := j.sent[ref].first.movement()
			moved[m] = append(moved[m], ref.String())
		}
	}
	for _, by := range moved {
		if len(by) > 1 {
			movements = append(movements, by...)
		}
	}
	seen := map[Ref]bool{}
	for i := range j.Tables.Events {
		ref := j.Tables.Events[i].Ref()
		if seen[ref] {
			rows = append(rows, ref.String())
		}
		seen[ref] = true
	}
	for _, ref := range j.Tables.Unpaired {
		if j.Forgot && j.events[ref] == nil && len(j.entries[ref]) > 0 {
			continue // the row is forgotten, the entry never
		}
		unpaired = append(unpaired, ref.String())
	}
	j.violated("I3", "an event has several entries", events)
	j.violated("I3", "several events moved the money of one movement", movements)
	j.violated("I3", "an event has several rows in processed_events", rows)
	j.violated("I3", "applied without an entry, or an entry without an applied event", unpaired)
}

// balances is I4, two ways: SQL compared accounts with entries; here entries and
// accounts are compared with what was sent.
func (j *judge) balances() {
	for _, a := range j.Tables.Unbalanced {
		j.violatedf("I4", "account %s %s: balance %d of %d entries is not the sum of its entries", a.AccountID, a.Currency, a.Balance, a.EntryCount)
	}
	j.entriesAsSent()

	want := j.expected()
	got := map[purse]*big.Int{}
	for _, a := range j.Tables.Accounts {
		got[purse{a.AccountID, a.Currency}] = big.NewInt(a.Balance)
	}
	purses := slices.Collect(maps.Keys(want))
	for p := range got {
		if want[p] == nil {
			purses = append(purses, p)
		}
	}
	slices.SortFunc(purses, func(a, b purse) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.currency, b.currency))
	})
	zero := new(big.Int)
	for _, p := range purses {
		w, g := cmp.Or(want[p], zero), cmp.Or(got[p], zero)
		if w.Cmp(g) != 0 {
			j.violatedf("I4", "account %s: got balance %s, want %s by what was sent", p, g, w)
		}
	}
}

// entriesAsSent compares each entry with its event.
func (j *judge) entriesAsSent() {
	var wrong []string
	for i := range j.Tables.Entries {
		e := &j.Tables.Entries[i]
		s := j.sent[e.Ref()]
		if s == nil || s.contradictions {
			continue
		}
		if d := s.first; e.AccountID != d.Account || e.Currency != d.Currency || e.Amount != d.Amount {
			wrong = append(wrong, fmt.Sprintf("%s (got %d %s on %s, want %d %s on %s)",
				e.Ref(), e.Amount, e.Currency, e.AccountID, d.Amount, d.Currency, d.Account))
		}
	}
	j.violated("I4", "an entry is not what its event said", wrong)
}

// expected sums what was sent and taken, each movement once. An event that was sent
// with several meanings counts as its entry says: which of them won is decided by
// order, and I3 and I5 judge the rest.
func (j *judge) expected() map[purse]*big.Int {
	total := map[purse]*big.Int{}
	add := func(p purse, amount int64) {
		if total[p] == nil {
			total[p] = new(big.Int)
		}
		total[p].Add(total[p], big.NewInt(amount))
	}
	counted := map[Ref]bool{}
	for _, ref := range j.refs() {
		d := j.sent[ref].first
		if !j.taken(ref) || d.expect() != ExpectMoney {
			continue
		}
		if j.sent[ref].contradictions {
			for _, e := range j.entries[ref] {
				add(purse{e.AccountID, e.Currency}, e.Amount)
			}
			continue
		}
		if counted[d.movement()] {
			continue
		}
		counted[d.movement()] = true
		add(purse{d.Account, d.Currency}, d.Amount)
	}
	// Payments and amendments have no delivery; what they wrote is taken as it is.
	for i := range j.Tables.Entries {
		if e := &j.Tables.Entries[i]; e.EventID == "" {
			add(purse{e.AccountID, e.Currency}, e.Amount)
		}
	}
	return total
}

// replay is I8: accounts and entries are as they were before.
func (j *judge) replay() {
	if j.Before == nil {
		return
	}
	was := map[purse]Account{}
	for _, a := range j.Before.Accounts {
		was[purse{a.AccountID, a.Currency}] = a
	}
	for _, a := range j.Tables.Accounts {
		p := purse{a.AccountID, a.Currency}
		if was[p] != a {
			j.violatedf("I8", "a replay changed account %s: was %d of %d entries, is %d of %d", p, was[p].Balance, was[p].EntryCount, a.Balance, a.EntryCount)
		}
		delete(was, p)
	}
	for p := range was {
		j.violatedf("I8", "a replay removed account %s", p)
	}
	entries := map[int64]Entry{}
	for _, e := range j.Before.Entries {
		entries[e.EntryID] = e
	}
	var changed []string
	for _, e := range j.Tables.Entries {
		if before, ok := entries[e.EntryID]; !ok || before.Ref() != e.Ref() || before.Amount != e.Amount {
			changed = append(changed, e.Ref().String())
		}
		delete(entries, e.EntryID)
	}
	for _, e := range entries {
		changed = append(changed, e.Ref().String())
	}
	j.violated("I8", "a replay added, changed or removed entries", changed)
}
