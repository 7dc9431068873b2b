// Package ops does what operators do by hand: move positions, look, repair.
//
// # Guarantee
//
// Nothing here applies an event or touches a balance, and nothing happens that was not
// shown before. What is done leaves a trace with a reason in the tables that everybody
// can read.
//
// # Flow
//
// PlanReset reads the positions of the group and says, for each partition, where it
// would move and how many records will be read again. Reset refuses while the group
// has members, since their next commit would undo it, and Kafka refuses the same once
// more for a member that joins in between. Then it writes down who asked and why, as
// an incident, and moves the offsets. The workers do the rest: their position rules
// see the rewind, and the ledger lets each event in once, so a replay moves no money.
//
// Package replay plans, runs and records replays on top of it; package backfill puts
// what a provider lists into the topic.
//
// A LagReader reads commits, then progress, then the ends of the log, so that nothing
// looks behind that is not; then the oldest record of each partition that is behind, for
// its age. The rate comes from two looks.
//
// # Failure modes
//
// A reset forward cannot skip: the workers start where Postgres stands and say so
// (progress_behind). A target below the log's start means its start. If Kafka cannot
// be asked about one partition, nothing is planned. A lag whose oldest records did not
// come in time has no age, and one whose positions went back has no rate. If the offsets could not be moved
// after the reason was written, the incident stands alone, which is harmless; the
// command says that it failed.
package ops
