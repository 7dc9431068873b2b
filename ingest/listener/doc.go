// Package listener makes the servers of addresses that strangers reach: deliveries and
// payments.
//
// # Guarantee
//
// A connection costs bounded memory and bounded time, whatever is sent on it, and what is
// hidden behind a request is never read as another one.
//
// # Flow
//
//	New, the handler and how long its answers take ──▶ Serve, at most so many connections
//
// # Failure modes
//
//   - Slow senders: cut off after 5 s within the headers, and after the time to read
//     within the body.
//   - Too many connections: those beyond the limit wait in the kernel.
//   - Two parsers that see two ends of a request: the connection ends with the first.
package listener
