package vectors

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRead_TakesListsAndLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		// ids are those read; ? stands for what is no case.
		ids string
		err string
	}{
		"list":                    {`[{"id":"a"},{"id":"b"}]`, "a b", ""},
		"list in lines":           {"\n [\n{\"id\":\"a\"},\n{\"id\":\"b\"}\n]\n\n", "a b", ""},
		"list after a mark":       {"\ufeff[{\"id\":\"a\"}]", "a", ""},
		"list and more":           {`[{"id":"a"}] x`, "a", "something stands behind the list"},
		"two lists":               {`[{"id":"a"}][{"id":"b"}]`, "a", "something stands behind the list"},
		"list and an object":      {"[{\"id\":\"a\"}]\n{\"id\":\"b\"}", "a", "something stands behind the list"},
		"list, not closed":        {`[{"id":"a"}`, "a", "not closed"},
		"list, broken":            {`[{"id":"a"},{"id":`, "a", "read case 1"},
		"list of other things":    {`[1,{"id":"a"},"x",null]`, "? a ? ", ""},
		"lines":                   {"{\"id\":\"a\"}\n{\"id\":\"b\"}\n", "a b", ""},
		"lines, no line feed":     {"{\"id\":\"a\"}\r\n\r\n{\"id\":\"b\"}", "a b", ""},
		"lines after a mark":      {"\ufeff{\"id\":\"a\"}\n{\"id\":\"b\"}\n", "a b", ""},
		"bad line":                {"{\"id\":\"a\"}\nnonsense\n{\"id\":\"b\"}\n", "a ? b", ""},
		"bad line first":          {"nonsense\n{\"id\":\"b\"}\n", "? b", ""},
		"line cut short":          {"{\"id\":\"a\"}\n{\"id\":\"x\",\"body\":\"y\n{\"id\":\"b\"}\n", "a ? b", ""},
		"last line cut short":     {"{\"id\":\"a\"}\n{\"id\":\"x\"", "a ?", ""},
		"two on a line":           {"{\"id\":\"a\"} {\"id\":\"x\"}\n{\"id\":\"b\"}", "? b", ""},
		"over several lines":      {"{\n  \"id\": \"a\"\n}\n{\n  \"id\": \"b\",\n  \"headers\": {\n  }\n}\n", "a b", ""},
		"nothing":                 {"", "", ""},
		"nothing but white space": {" \n\n", "", ""},
	} {
		var ids []string
		err := Read(strings.NewReader(tc.text), func(c Case) error {
			if c.err != nil {
				c.ID = "?"
			}
			ids = append(ids, c.ID)
			return nil
		})
		if got := strings.Join(ids, " "); got != tc.ids {
			t.Errorf("%s: got cases %q, want %q", name, got, tc.ids)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

func TestRead_StopsWhereItsReaderOrUserStops(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, text := range []string{`[{"id":"a"},{"id":"b"}]`, "{\"id\":\"a\"}\n{\"id\":\"b\"}"} {
		var ids []string
		err := Read(strings.NewReader(text), func(c Case) error {
			ids = append(ids, c.ID)
			return stop
		})
		if !errors.Is(err, stop) || !slices.Equal(ids, []string{"a"}) {
			t.Errorf("%s: got %v after %q", text, err, ids)
		}
	}
	verdict, err := Judge(Case{ID: "x", err: stop})
	if !errors.Is(err, stop) || verdict.Verdict != Invalid || verdict.Reason != reasonCase {
		t.Errorf("got %+v, %v", verdict, err)
	}
}
