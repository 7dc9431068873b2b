// Package transfer moves money between two accounts of ours: two entries with one
// movement and the sum 0, and what they do to the two balances.
//
// # Guarantee
//
// A payment ID moves money once: the effect keys of its legs are made of it, and the
// ledger's first wall holds them. No transfer takes the account below zero that it spends
// from, whatever runs beside it. Locks are taken in the order of package ledger: entries,
// then accounts by the bytes of their IDs, so transfers and batches of events never wait
// for each other in a circle.
//
// # Flow
//
//	Transfer.Check ──▶ Transfer.Queue, one statement of the caller's transaction ──▶ COMMIT
//
// The caller decides in the same transaction, before it, that the transfer may happen.
//
// # Failure modes
//
//   - The account does not hold enough: the statement fails, IsInsufficientFunds says so,
//     and the transaction can only be rolled back.
//   - A balance would not fit 64 bits: the same, with IsBalanceRange.
//   - The accounts are locked: the statement waits as long as lock_timeout allows.
package transfer
