package vectors

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// FuzzRead judges any file of cases: each case comes out valid or invalid with a reason,
// or is an error of its own; and a list is read as its items on lines are.
func FuzzRead(f *testing.F) {
	text, err := os.ReadFile(cases)
	if err != nil {
		f.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		f.Fatal(err)
	}
	for i, c := range all {
		if i%10 == 0 { // of every scheme some
			f.Add([]byte(c))
		}
	}
	for _, s := range []string{"[]", "[{}", "[{}] x", "{\n}\n{}", "\xef\xbb\xbf{}", "nonsense\n{}", "[1,null]", "{\"id\":\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var ids []string
		err := Read(bytes.NewReader(file), func(c Case) error {
			ids = append(ids, c.ID)
			v, err := Judge(c)
			if err == nil && v.Verdict != Valid && (v.Verdict != Invalid || v.Reason == "") {
				t.Fatalf("got %+v, want a verdict, and a reason if it is invalid", v)
			}
			return nil
		})
		var items []json.RawMessage
		if err != nil || json.Unmarshal(file, &items) != nil || bytes.HasPrefix(bytes.TrimSpace(file), []byte("null")) {
			return
		}
		if len(items) != len(ids) {
			t.Fatalf("got %d cases, the list has %d", len(ids), len(items))
		}
	})
}
