package verify

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Report is what verify found. It marshals to the JSON contract of the command.
type Report struct {
	// OK is false if one check is.
	OK bool `json:"ok"`
	// UnaccountedEvents counts records below a committed offset that are nowhere on
	// record. It must be 0.
	UnaccountedEvents int64   `json:"unaccounted_events"`
	Checks            []Check `json:"checks"`
	// Notes are open matters that break no promise.
	Notes []Note `json:"notes"`
	// Range is what the report is about.
	Range Range `json:"range"`
	// Records counts the records of the topic that were judged.
	Records int64 `json:"records"`
	// Mark is what the next increment builds upon. Nil unless Options.Incremental. It is
	// to be kept only if the report is OK: else the next run must find the same again.
	Mark *Mark `json:"-"`
}

// Check is one thing that must hold, and whether it does.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Found says how many break it, and the first of them by ID; what was compared
	// if none do.
	Found string `json:"found"`
	// Next is the command to run next; empty if OK.
	Next string `json:"next"`
}

// Note is something a person should know that breaks no promise.
type Note struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	Next  string `json:"next"`
}

// Names of checks, in the order of a report.
const (
	// CheckBalances: each account's balance and entry_count are those of its entries.
	CheckBalances = "balances"
	// CheckEntries: each entry has an applied event, a payment or an amendment behind it.
	CheckEntries = "entries"
	// CheckEvents: each applied event has an entry.
	CheckEvents = "events"
	// CheckAmounts: each amount is within range, each currency a code.
	CheckAmounts = "amounts"
	// CheckRecords: each record below the committed offset is on record.
	CheckRecords = "records"
	// CheckHashes: the hashes and bytes that are stored are those of the topic.
	CheckHashes = "hashes"
	// CheckPositions: committed offsets, progress and the log agree.
	CheckPositions = "positions"
	// CheckResolutions: the event of each record that left the quarantine is on record.
	CheckResolutions = "resolutions"
	// CheckIncidents: every loss was acknowledged by a person.
	CheckIncidents = "incidents"
	// CheckMeaning: the entries of an applied event are what it was recorded to mean.
	CheckMeaning = "meaning_mismatch"
	// CheckEffectKeys: the effect key of an entry is that of its movement.
	CheckEffectKeys = "effect_key_mismatch"
	// CheckSignatures: signatures hold as of when they were received.
	CheckSignatures = "signature_mismatch"
	// CheckAcknowledged: what a history says was acknowledged is in the topic or on record.
	CheckAcknowledged = "acknowledged_missing"
)

// sampleSize is how many IDs a finding names.
const sampleSize = 5

// finding counts what breaks a check and keeps the first few.
type finding struct {
	count  int64
	sample []sample
}

// sample is one of what was found: the ID to ask other commands for, and words.
type sample struct{ id, text string }

func (f *finding) add(id, text string) {
	f.count++
	if len(f.sample) < sampleSize {
		f.sample = append(f.sample, sample{id, text})
	}
}

// first makes a command about the first one, or about all if it has no ID.
func (f finding) first(command, otherwise string) string {
	if len(f.sample) == 0 || f.sample[0].id == "" {
		return otherwise
	}
	word := ShellWord(f.sample[0].id)
	if strings.HasPrefix(word, "-") {
		word = "-- " + word
	}
	return command + " " + word
}

func (f *finding) merge(g finding) {
	f.count += g.count
	f.sample = append(f.sample, g.sample[:min(len(g.sample), sampleSize-len(f.sample))]...)
}

func merged(f, g finding) finding {
	f.merge(g)
	return f
}

// words are what a report says of one thing, and of any other number of them.
type words struct{ one, many string }

// of says how many there are: 1 record waits, 2 records wait.
func (w words) of(n int64) string {
	if n == 1 {
		return "1 " + w.one
	}
	return strconv.FormatInt(n, 10) + " " + w.many
}

// text is the count, what is counted, and the first few.
func (f finding) text(what words) string {
	var s strings.Builder
	s.WriteString(what.of(f.count))
	for i, one := range f.sample {
		s.WriteString([]string{": ", "; "}[min(i, 1)])
		s.WriteString(one.text)
	}
	if f.count > int64(len(f.sample)) && len(f.sample) > 0 {
		s.WriteString("; …")
	}
	return s.String()
}

// check makes the check of a finding: broken words what was found, held what was
// compared if nothing was.
func (f finding) check(name string, broken words, held, next string) Check {
	if f.count == 0 {
		return Check{Name: name, OK: true, Found: held}
	}
	return Check{Name: name, Found: f.text(broken), Next: next}
}

// note makes the note of a finding, or none.
func (f finding) note(name string, what words, next string) []Note {
	if f.count == 0 {
		return nil
	}
	return []Note{{Name: name, Found: f.text(what), Next: next}}
}

// maxLabelRunes bounds an ID in a report, maxTextRunes a line of it.
const (
	maxLabelRunes = 80
	maxTextRunes  = 400
)

// label makes a foreign ID safe for a terminal: quoted unless it is plain, and cut.
func label(s string) string {
	s = cut(s, maxLabelRunes)
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || strings.ContainsRune(` ;"'`, r) }) {
		return strconv.Quote(s)
	}
	return s
}

// ShellWord makes a foreign ID one word of a command that a person will paste into a
// shell: nothing in it is run, whatever it holds.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/@+=", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(plain(s), "'", `'\''`) + "'"
}

// plain makes a line that holds foreign IDs safe for a terminal: what does not
// print is escaped.
func plain(s string) string {
	quoted := strconv.Quote(cut(s, maxTextRunes))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "…"
}

// place names a record.
func place(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/%d@%d", topic, partition, offset)
}
