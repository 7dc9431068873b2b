package roles

import (
	"os"
	"runtime/debug"
)

// restBytes is what a role takes beside its buffers, with the runtime's own: 45 MiB were
// seen in a receiver of 256 senders (`make bench ONLY=accept`).
const restBytes = 64 << 20

// boundMemory has the garbage collector work less often while memory is plenty, and as
// often as it must when the configured buffers are full. What lives in a busy role is a
// few MiB, so that by default each further 4 MiB, some hundred deliveries, would be
// searched for garbage; that was a seventh of a receiver's processor time, and reading a
// webhook of 1 KiB as JSON costs 7.9 µs at 400 % where it costs 10.4 at 100 %. GOGC and
// GOMEMLIMIT of the environment win.
func boundMemory(buffers int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(restBytes + int64(buffers))
	}
}

// relaxWorker is the same for workers, whose memory lives with a backlog: a limit of 128 MiB
// below what lives cost 55 µs a record where 22 were enough. At 150 %, with buffers of
// 12 MiB, a worker takes as much memory as at 100 % with 16 MiB (128 to 138 MiB), and 16 µs
// of its own for a new record where it took 18; 200 % takes 40 MiB more and wins 1 µs
// (`make bench ONLY=apply`).
func relaxWorker() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(150)
	}
}
