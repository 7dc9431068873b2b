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
//
// Not for workers: with a backlog most of their memory lives, so that 400 % doubled it and
// won nothing, and a limit of 128 MiB below what lives cost 55 µs a record where 22 were
// enough.
func boundMemory(buffers int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(restBytes + int64(buffers))
	}
}
