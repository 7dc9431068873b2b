// Package process starts child processes that do not outlive us.
//
// # Guarantee
//
// On Linux a child started here receives its death signal when this process ends in any
// way, kill -9 included. Elsewhere there is no such signal; owners find leftovers at
// their next start.
//
// # Flow
//
// Start ──▶ Process ──▶ Signal, Stop or Kill ──▶ Done. Each child leads a process group
// of its own, so Ctrl-C in a terminal reaches us alone and we decide in which order the
// children stop.
//
// # Failure modes
//
// The kernel ties the death signal to the thread that forked, not to the process, and
// the Go runtime ends idle threads. So each child is forked by a goroutine that is
// locked to its thread and keeps that thread until the child has ended.
package process
