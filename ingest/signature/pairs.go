package signature

import (
	"strings"

	"hookledger/schema/source"
)

// pairs is a header of name=value parts.
type pairs struct {
	ts     string
	values [][]byte
}

// readPairs reads a header such as ts=1764417600;h1=5f0c…;h1=77ab…. Parts of other names
// are ignored: they are versions that the scheme does not know. Signatures that are no
// MAC at all are skipped.
func readPairs(header, name string, c source.PairsConfig, encoding string, size int) (pairs, error) {
	p, known, timed := pairs{}, 0, false
	for part := range strings.SplitSeq(header, c.Separator) {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return pairs{}, reject(Malformed, "header %s has a part without =", name)
		}
		switch key {
		case c.Time:
			if timed {
				return pairs{}, reject(Malformed, "header %s has two times", name)
			}
			p.ts, timed = value, true
		case c.Signature:
			known++
			if mac, err := decode(value, encoding, size); err == nil {
				p.values = append(p.values, mac)
			}
		}
	}
	switch {
	case c.Time != "" && p.ts == "":
		return pairs{}, reject(Malformed, "header %s has no time", name)
	case known == 0:
		return pairs{}, reject(UnknownVersion, "header %s has no signature %s", name, c.Signature)
	case len(p.values) == 0:
		return pairs{}, reject(Malformed, "header %s has no readable signature", name)
	case known > maxSignatures:
		return pairs{}, reject(Malformed, "header %s has more than %d signatures", name, maxSignatures)
	}
	return p, nil
}
