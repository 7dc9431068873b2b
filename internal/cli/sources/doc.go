// Package sources holds the commands about sources and providers: what is configured,
// what their events mean in money, and how to add one.
//
// # Guarantee
//
// They change nothing and never show a secret: secrets are named, not read. All but
// `sources events --seen` work without Kafka and Postgres. What `sources new` writes is a
// configuration that `config check` accepts.
//
// # Flow
//
//	configuration ──▶ provider.Effects, provider.Summaries ──▶ table or JSON
//	database ──▶ types seen, with outcomes ──▶ beside the rules for them
//
// # Failure modes
//
//   - A source or a provider that does not exist: exit code 2, with those that do.
//   - The database is away or its schema does not fit: as with every command that reads it.
package sources
