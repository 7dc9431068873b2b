// Package doctor is the command that examines what the promise rests on, and the one
// that shows and tends the generations of the memory of events.
//
// # Guarantee
//
// The examination changes nothing: exit code 0 if all is well, 3 with findings. What is
// asked of the generations by hand is what workers do on schedule: one of many does it,
// money does not move, and --dry-run only shows it.
//
// # Flow
//
//	configuration ──▶ clients ──▶ ops/doctor.Examine ──▶ what was found, why it matters, what mends it
//
// # Failure modes
//
// What is away is a finding like others. A configuration that cannot be read is exit
// code 2, as everywhere. A generation that is being read cannot be forgotten: exit code 1
// with who reads it, and nothing is changed.
package doctor
