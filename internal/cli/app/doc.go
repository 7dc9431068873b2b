// Package app is what all commands share: the process they run in, the global flags,
// how they answer, and what their exit codes mean.
//
// # Guarantee
//
// 0 is done, 1 failed, 2 wrong usage, configuration or setup (trying again changes
// nothing), 3 a check that found something. With --json standard output holds one
// object and nothing else.
//
// # Flow
//
//	App.Config ──▶ App.OpenDatabase (checks the schema) ──▶ work ──▶ App.Print
//
// # Failure modes
//
// Errors come back to cli.Run, which prints each once and turns it into the exit
// code. A database that is away is 1; a schema or a topic that does not fit is 2 and
// ends with the command that mends it.
package app
