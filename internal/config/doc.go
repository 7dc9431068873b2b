// Package config reads the configuration of hookledger: one YAML file, overridden by
// environment variables.
//
// # Guarantee
//
// What was written is what is used, or the program does not start: a key or a
// HOOKLEDGER_ variable that does not exist is an error that names the nearest one, and
// every problem is reported at once with file and line. Values are never repeated in
// errors, since they may be secrets, and secrets are masked wherever they are shown.
//
// # Flow
//
//	defaults of each package ──▶ file ──▶ environment ──▶ each package validates its part
//
// The file is that of --config, else of HOOKLEDGER_CONFIG, else hookledger.yaml, else
// .hookledger/hookledger.yaml, which a running `dev` keeps. Types and defaults are those
// of the packages' own Config structs; what a key means is in one table, meanings.
//
//	file.yaml                      environment
//	kafka: { brokers: [a, b] }     HOOKLEDGER_KAFKA_BROKERS=a,b
//	sources: [ … ]                 HOOKLEDGER_SOURCES='[ … ]'      (YAML or JSON)
//
// # Failure modes
//
//   - A file that was named does not exist, or is not YAML: an error with its line,
//     without its text.
//   - A setting that would skip money (a reset to the end of the log): refused with the
//     reason, although no such key exists.
//   - A secret in the file itself: refused unless kafka.durability is single.
//   - In Kubernetes a Service called hookledger-… sets variables with our prefix in every
//     container; those are told apart and ignored.
package config
