package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hookledger/schema"
)

// LiveFlag says where a provider's events tell whether real money moved. Without a place
// the provider does not tell.
type LiveFlag struct {
	// Paths lead to the flag in an event; the first that leads to a value counts.
	Paths []string
	// Delivery is its path in a delivery of several events, Header the header it stands in:
	// then it is kept beside the event, in the record's header hl_livemode.
	Delivery string
	Header   string
	// Live and Test are what it reads, as it is written; a * stands for any beginning. Test
	// goes first.
	Live, Test []string
	// Missing is what an event without the flag is: live, or empty where that is not known.
	Missing string
	// Instead tells, where there is no flag, how a provider's tests are kept apart.
	Instead string
}

// IsZero tells whether events have no flag.
func (f *LiveFlag) IsZero() bool { return len(f.Paths) == 0 && f.Delivery == "" && f.Header == "" }

// Words of Config.Livemode; liveOnly and liveTest are those of an event too.
const (
	liveAny  = "any"
	liveOnly = "live"
	liveTest = "test"
)

// livemode is what counts, and where events tell.
type livemode struct {
	counts   string
	flag     *LiveFlag
	paths    []schema.Path
	delivery schema.Path
}

func newLivemode(def *Definition, mode string, p *Problems) livemode {
	l := livemode{counts: mode, flag: &def.Live}
	if l.counts == "" {
		l.counts = liveAny
	}
	p.OneOf("livemode", l.counts, liveAny, liveOnly, liveTest)
	if l.flag.IsZero() {
		if l.counts != liveAny {
			instead := def.Live.Instead
			if instead == "" {
				instead = "use `when` in postings, or a source of its own for tests"
			}
			p.Add("livemode", "events of provider %s do not tell live from test: %s", def.Name, instead)
		}
		return l
	}
	for _, path := range l.flag.Paths {
		l.paths = append(l.paths, schema.MustPath(path))
	}
	if l.flag.Delivery != "" {
		l.delivery = schema.MustPath(l.flag.Delivery)
	}
	return l
}

// kept returns what a delivery says of all its events, for the record; empty where each
// event says it itself.
func (l *livemode) kept(header http.Header, root *schema.Value) string {
	switch {
	case l.flag.Header != "":
		values := header[l.flag.Header]
		if len(values) > 1 {
			return ""
		}
		return l.flag.read(strings.Join(values, ""), len(values) == 1)
	case !l.delivery.IsZero():
		v, ok := present(root, l.delivery)
		if !ok {
			return l.flag.Missing
		}
		text, ok := v.Literal()
		return l.flag.read(text, ok)
	}
	return ""
}

// of returns live or test, or empty if the event does not tell.
func (l *livemode) of(ev *schema.Event, root *schema.Value) string {
	if len(l.paths) == 0 {
		return ev.Livemode
	}
	for _, path := range l.paths {
		v, ok := present(root, path)
		if !ok {
			continue
		}
		text, ok := v.Literal()
		if !ok {
			return ""
		}
		return l.flag.read(text, true)
	}
	return l.flag.Missing
}

// read returns what a flag says; empty for what is neither of its words.
func (f *LiveFlag) read(text string, there bool) string {
	switch {
	case !there:
		return f.Missing
	case slices.ContainsFunc(f.Test, func(word string) bool { return fits(word, text) }):
		return liveTest
	case slices.ContainsFunc(f.Live, func(word string) bool { return fits(word, text) }):
		return liveOnly
	}
	return ""
}

func fits(word, text string) bool {
	end, open := strings.CutPrefix(word, "*")
	return open && strings.HasSuffix(text, end) || word == text
}

// judge tells whether the event counts. One that does not tell is no error yet: it is,
// where it moves money.
func (l *livemode) judge(ev *schema.Event, root *schema.Value) (counts bool, unclear error) {
	if l.counts == liveAny {
		return true, nil
	}
	switch l.of(ev, root) {
	case l.counts:
		return true, nil
	case "":
		return true, mappingError(schema.ReasonBodyUnreadable, "%s does not say whether the event is live or test, and livemode is %s", l.place(), l.counts)
	}
	return false, nil
}

// place names where the flag is.
func (l *livemode) place() string {
	switch {
	case len(l.paths) > 0:
		return strings.Join(l.flag.Paths, " or ")
	case l.flag.Header != "":
		return fmt.Sprintf("header %s (hl_livemode of the record)", l.flag.Header)
	}
	return fmt.Sprintf("%s of the delivery (hl_livemode of the record)", l.flag.Delivery)
}

// compose sets the flag in a delivery to be sent, unless it is said by leaving it out or by
// a name that only the provider gives.
func (f *LiveFlag) compose(d *draft, header http.Header, live bool) {
	if f.IsZero() || f.Delivery != "" || strings.HasPrefix(f.Live[0], "*") || live && f.Missing == liveOnly {
		return
	}
	if f.Header != "" {
		header.Set(f.Header, fmt.Sprint(f.word(live)))
		return
	}
	d.set(schema.MustPath(f.Paths[0]), f.word(live))
}

// word is the flag as it is written: true and false are no texts in JSON, but in the flag
// of a delivery of several events.
func (f *LiveFlag) word(live bool) any {
	words := f.Test
	if live {
		words = f.Live
	}
	if text := words[0]; f.Delivery != "" || text != "true" && text != "false" {
		return text
	}
	return live == (f.Live[0] == "true")
}
