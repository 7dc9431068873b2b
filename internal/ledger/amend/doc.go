// Package amend mends money that an event moved wrongly: nothing is changed or deleted,
// entries are added that take back what stands and say what the event means today.
//
// # Guarantee
//
//   - An amendment is one transaction: its row, which says who and why, its entries, and
//     what they add to the balances. A balance stays the sum of its entries.
//   - It rests on what stands at that moment: amendments of one event wait for each other,
//     and a second one that has nothing to mend writes nothing.
//   - Afterwards the event's entries and those of its amendments add up to what it means
//     today, or to nothing if it was reversed.
//   - No other event pays the amended movement a second time, before or after.
//
// # Flow
//
//	lock the event ─▶ what stands ─▶ opposites + postings of today ─▶ row, entries, balances ─▶ commit
//
// Opposites have effect keys of the amendment's own. So has a posting whose movement is on
// record by the event itself, because that entry is taken back here. A movement that is
// new takes its natural effect key, so that an event that tells of it later comes out as
// same_effect, as it would have if the mapping had been right from the start. A movement
// that another event told of with equal money is left to that one; with other money
// nobody knows which is right, and the amendment is refused.
//
// # Failure modes
//
//   - An event whose money never moved is refused, with what to do instead: replaying is
//     how an ignored event gets its money, and both together would pay twice.
//   - An entry that another transaction wrote meanwhile: everything again, a few times.
//   - COMMIT without an answer: the outcome is unknown. Asking again is safe: if it held,
//     there is nothing to mend.
//   - The topic does not know of amendments: Postgres alone keeps them.
package amend
