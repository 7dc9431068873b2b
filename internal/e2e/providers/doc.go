// Package providers takes a delivery of every provider from the wire to a balance: the
// built binary, its roles as separate processes, real Apache Kafka, real Postgres.
//
// # Guarantee
//
// Every provider that exists is in the table; for one that is not yet, a delivery is
// composed as `send` does. Each source is what `hookledger sources new` writes for it; each payload of the
// table is a full one.
//
// # Flow
//
//	sources new ──▶ one configuration ──▶ migrate up, topics apply, ingest, consume
//	payload of schema/provider/testdata, signed ──▶ /webhooks/{source} ──▶ entry or outcome
//
// Certificates and keys that a provider hosts are fetched through a proxy that stands in for
// the internet, from a server with a certificate of our own root: the product is told so by
// its environment alone.
//
// # Failure modes
//
// A provider whose answer, entries or outcome is another one is named with what was found.
package providers
