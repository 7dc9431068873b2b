// Package lag holds `hookledger lag`: how far the workers are behind the topic.
//
// # Guarantee
//
// It changes nothing, joins no group, and may run beside the workers at any time. Records
// behind are what Kafka's own tool counts; seconds behind are the age of the oldest record
// that is not applied. The answer comes within a second, however many records are behind.
//
// # Flow
//
//	commits ─▶ progress ─▶ ends of the log ─▶ pause ─▶ the same again ─▶ oldest records ─▶ table or JSON
//
// # Failure modes
//
//   - Postgres is away, or a standby: the answer is Kafka's alone, progress is null, and
//     standard error says why.
//   - Kafka is away, or the topic missing: an error.
//   - With --watch a failed look is told and the next one tried.
package lag
