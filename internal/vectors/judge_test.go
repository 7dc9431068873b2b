package vectors

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// cases are deliveries whose verdict was checked with the libraries of the providers.
const cases = "../../ingest/signature/testdata/signatures.json"

// expectation is what a case says of itself.
type expectation struct {
	ID       string  `json:"id"`
	Expect   string  `json:"expect"`
	Reason   string  `json:"reason"`
	EventID  *string `json:"event_id"`
	Response *string `json:"expect_response"`
}

// otherPolicy are the cases where we choose otherwise, with the reason. There is none:
// every expectation is ours.
var otherPolicy = map[string]string{}

// otherID are the cases whose event we name otherwise, with the reason.
var otherID = map[string]string{}

func TestJudge_ComesOutAsTheVectorsExpect(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cases)
	if err != nil {
		t.Fatal(err)
	}
	var expected []expectation
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	if len(expected) != 220 {
		t.Fatalf("got %d cases, want 220", len(expected))
	}
	file, err := os.Open(cases)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	i := 0
	err = Read(file, func(c Case) error {
		want := expected[i]
		i++
		got, err := Judge(c)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			return nil
		}
		if why, other := otherPolicy[c.ID]; got.Verdict != want.Expect && !other {
			t.Errorf("%s (%s): got %s %s, want %s", c.ID, want.Reason, got.Verdict, got.Reason, want.Expect)
		} else if got.Verdict == want.Expect && other {
			t.Errorf("%s: comes out as expected, and is said not to (%s)", c.ID, why)
		}
		if (got.Verdict == Valid) != (got.Reason == "") {
			t.Errorf("%s: %s with reason %q", c.ID, got.Verdict, got.Reason)
		}
		if got.Verdict == Invalid {
			return nil
		}
		if want.Response != nil && got.Response != *want.Response {
			t.Errorf("%s: got response %q, want %q", c.ID, got.Response, *want.Response)
		}
		if _, other := otherID[c.ID]; want.EventID != nil && !other && !slices.Contains(got.EventIDs, *want.EventID) {
			t.Errorf("%s: got events %q, want %q", c.ID, got.EventIDs, *want.EventID)
		}
		return nil
	})
	if err != nil || i != len(expected) {
		t.Errorf("read %d of %d cases: %v", i, len(expected), err)
	}
}

// Cases made of the others by changing one thing: names, lines and encodings of headers,
// bytes of bodies, times at the edge of the tolerance, secrets, keys, certificates, addresses.
// Signatures and verdicts are those of another implementation (Python), by the providers' rules.
func TestJudge_OfOneThingChanged(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../ingest/signature/testdata/mutations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	i := 0
	err = Read(strings.NewReader(string(text)), func(c Case) error {
		var want expectation
		if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
			return err
		}
		i++
		if got, err := Judge(c); err != nil || got.Verdict != want.Expect {
			t.Errorf("%s (%s): got %s %s %v, want %s", c.ID, want.Reason, got.Verdict, got.Reason, err, want.Expect)
		}
		return nil
	})
	if err != nil || i < 400 {
		t.Errorf("read %d cases: %v", i, err)
	}
}
