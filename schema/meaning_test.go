package schema

import (
	"errors"
	"testing"
)

// What names the other side is no account, however an event spells it.
func TestMeaning_NobodyHasAnAccountNamedExternal(t *testing.T) {
	t.Parallel()
	for account, good := range map[string]bool{
		"external:stripe": false, "external:": false, "external": true, "external_1": true, "External:stripe": true, "my:external:x": true, "acct_7": true,
	} {
		m := Meaning{Postings: []Posting{{Account: account, Contra: "external:stripe", Amount: 1, Currency: "EUR", Rule: "r", Movement: "m"}}}
		var bad *MappingError
		if err := m.Check(); (err == nil) != good || err != nil && (!errors.As(err, &bad) || bad.Reason != ReasonBadAccount) {
			t.Errorf("%s: got %v, want good %v", account, err, good)
		}
	}
}
