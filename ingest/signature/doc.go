// Package signature decides whether a delivery comes from who it claims to come from.
//
// # Guarantee
//
// A Verified exists only if a key that is valid now made one of the delivery's signatures
// over exactly these bytes, at a time that is near enough; or, for schemes that prove less,
// if the token or the sender's address is right: then BodyAuthenticated says no. MACs are
// compared as decoded bytes in constant time. An unknown version or algorithm is never
// tried as a known one.
//
// # Flow
//
//	secrets (env, file, value) ──NewKeyring──▶ Keyring ──New──▶ Verifier
//	Request (method, query, headers, raw body, sender, time) ──Verify──▶ Verified or *Rejection
//	                                                        └──Explain──▶ the step that failed
//
// Each scheme is one file. It reads a delivery into claims, all of which must hold: most
// have one, a delivery whose items are signed one by one has one for each. A claim has
// signatures, any of which may match, and the signed text in pieces. Trying every signature
// against every valid key, comparing and judging the time are common to all (verify.go,
// lock.go). Ten providers are hmac.go with other knobs.
//
// What is not a scheme: verify.go, lock.go, scheme.go and rejection.go are the way above;
// keyring.go and watch.go the secrets; fetch.go keys of providers; form.go and pairs.go read
// headers and forms for several schemes; sign.go and snippet.go make signatures; explain.go
// and changes.go serve `sources check`. Every other file is the scheme of its name, and may
// be read alone.
//
// Where a delivery names a key of the provider (PayPal's certificate, Plaid's JWK), fetch.go
// fetches it: from the provider's hosts alone, over TLS, without following redirects,
// within three seconds; it is asked for again after ten minutes, used for a day if asking
// fails, and no more than 30 names are asked for in a minute.
//
// # Failure modes
//
//   - A header that is missing, empty, there twice, not readable or not printable ASCII is
//     a Rejection. Of several signatures in one header, those that are no MAC at all are
//     skipped, as the providers' libraries do. One provider repeats its header (Repeated).
//   - Where what is signed is joined from fields without escapes, a field that holds the
//     separator is a Rejection: the text could be read as other fields. A field that is
//     there twice is one too.
//   - The time of signing may lie up to the tolerance from Request.At on either side,
//     inclusively. It is judged after the MAC, so Stale says: the secret is right, look at
//     clocks and queues.
//   - A secret that is empty, or empty once decoded, or not in the shape its scheme needs,
//     is an error of NewKeyring: anybody could compute a MAC with an empty key. White space
//     and unusual prefixes draw a warning, and nothing is stripped but one line feed at the
//     end of a file.
//   - A key that cannot be fetched is ErrUnavailable, no Rejection: nothing is known of the
//     signature, and the delivery shall come again.
//   - A reload that fails in part changes nothing and says so. A secret that is removed stops
//     matching with the reload; deliveries being checked finish with what they began with.
//   - A header that is itself the credential is not among those that are kept.
//
// Secrets do not print themselves, and no error or log line repeats a secret, a
// signature or a MAC that was expected.
package signature
