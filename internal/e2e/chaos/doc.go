// Package chaos proves the promise under faults: real processes of the product, real
// brokers, a real Postgres, a plan of faults that a seed decides before the run, and the
// outside checker as judge.
//
// # Guarantee
//
// A run without violations means that every webhook answered 2xx is in the topic byte by
// byte and in the balances once, and every payment answered 201 in the books once,
// whatever the plan did to whom. A plan is a pure function of its seed. What happens
// between processes is not: a plan that failed is run again several times when it is
// shrunk.
//
// # Flow
//
//	NewPlan   faults and load from a seed; printed and kept before the run
//	Stage     three real brokers, or the embedded one on disk; Postgres; a proxy on every link
//	Run       two receivers, two workers, the door for payments; clients; the nemesis;
//	          then healing, draining, and the checker
//	Shrink    the smallest plan that still fails
//	Soak      seeds, one after another, and a table of what happened
//
// Faults come when the load has come so far ("at the 120th acknowledgement"), not by the
// clock alone; a load that stands still is no reason to wait.
//
// # Failure modes
//
//   - Postgres is not really out of disk: a trigger raises disk_full (53100), since a
//     small volume needs root. The embedded Kafka tells all clients one address, so there
//     one proxy stands for both links to it.
//   - After a violation the folder of the run stays, with the plan, the histories and what
//     the processes wrote; its database too, until the stage ends.
package chaos
