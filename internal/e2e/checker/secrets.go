package checker

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// secrets is I13. A violation names the place and the number of the secret, never
// the secret.
func (j *judge) secrets() {
	for n, secret := range j.Secrets {
		if secret == "" {
			j.violatedf("I13", "secret %d is empty: it would be found everywhere", n+1)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(j.Texts)) {
			if line, ok := lineWith(j.Texts[name], secret); ok {
				j.violatedf("I13", "secret %d is in line %d of %s", n+1, line, name)
			}
		}
		var records []string
		for i := range j.Records {
			r := &j.Records[i]
			for _, h := range r.Headers {
				if strings.Contains(h.Value, secret) {
					records = append(records, fmt.Sprintf("%s at %s, header %s", r.Ref(), at(r.Partition, r.Offset), h.Key))
				}
			}
			if bytes.Contains(r.Key, []byte(secret)) || bytes.Contains(r.Value, []byte(secret)) {
				records = append(records, fmt.Sprintf("%s at %s", r.Ref(), at(r.Partition, r.Offset)))
			}
		}
		j.violated("I13", fmt.Sprintf("secret %d is in the topic", n+1), records)
	}
}

func lineWith(text, secret string) (int, bool) {
	i := strings.Index(text, secret)
	if i < 0 {
		return 0, false
	}
	return 1 + strings.Count(text[:i], "\n"), true
}
