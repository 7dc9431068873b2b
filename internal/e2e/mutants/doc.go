// Package mutants breaks the program on purpose, one law at a time, to prove that the
// chaos harness and its checker notice: a judge that never found anything proves nothing.
//
// # Guarantee
//
// The program that users run has no trace of this: a mutant is a change to a copy of a
// source file, which the compiler takes in place of the file (`go build -overlay`). Each
// change fits its file exactly once and compiles, which an ordinary test checks, so that
// the table follows the code.
//
// # Flow
//
//	Table    what each mutant breaks, and the texts that make it
//	Build    a program with one mutant, and with crash points
//	make mutants
//	         runs the ordinary seeds of the chaos harness against the program as it is,
//	         which must survive them, and against each mutant until a violation is found
//
// # Failure modes
//
//   - A mutant that no seed catches fails the run: either the checker is blind or the plans
//     lack the fault that would show it.
//   - A mutant may be caught by another invariant than the one it was made for, since laws
//     lean on each other; the table that the run prints says which.
package mutants
