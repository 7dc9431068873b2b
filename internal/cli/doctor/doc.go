// Package doctor is the command that examines what the promise rests on.
//
// # Guarantee
//
// Nothing is changed. Exit code 0 if all is well, 3 with findings.
//
// # Flow
//
//	configuration ──▶ clients ──▶ ops/doctor.Examine ──▶ what was found, why it matters, what mends it
//
// # Failure modes
//
// What is away is a finding like others. A configuration that cannot be read is exit
// code 2, as everywhere.
package doctor
