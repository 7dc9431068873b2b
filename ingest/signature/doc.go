// Package signature decides whether a delivery comes from who it claims to come from.
//
// # Guarantee
//
// A Verified exists only if a secret that is valid now made one of the delivery's
// signatures over exactly these bytes, at a time that is near enough. MACs are compared
// as decoded bytes in constant time. An unknown version or algorithm is never tried as
// a known one.
//
// # Flow
//
//	secrets (env, file, value) ──NewKeyring──▶ Keyring ──New──▶ Verifier
//	Request (headers, raw body, time) ──Verify──▶ Verified or *Rejection
//
// Each family of schemes is one file: hmac.go (a header, a template, an encoding),
// stripe.go, standardwebhooks.go. They read headers into a claim; trying every signature
// against every valid secret, comparing and judging the time are common to all.
//
// # Failure modes
//
//   - A header that is missing, empty, there twice, not readable or not printable ASCII is
//     a Rejection. Of several signatures in one header, those that are no MAC at all are
//     skipped, as the providers' libraries do.
//   - The time of signing may lie up to the tolerance from Request.At on either side,
//     inclusively. It is judged after the MAC, so Stale says: the secret is right, look at
//     clocks and queues.
//   - A secret that is empty, or empty once decoded, or not in the shape its scheme needs,
//     is an error of NewKeyring: anybody could compute a MAC with an empty key. White space
//     and unusual prefixes draw a warning, and nothing is stripped but one line feed at the
//     end of a file.
//   - A reload that fails in part changes nothing and says so. A secret that is removed stops
//     matching with the reload; deliveries being checked finish with what they began with.
//
// Secrets do not print themselves, and no error or log line repeats a secret, a
// signature or a MAC that was expected.
package signature
