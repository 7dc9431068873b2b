package config

import (
	"fmt"
	"regexp"
	"strings"
)

// indexes are the positions in a path, sources[2].name; the reference writes [].
var indexes = regexp.MustCompile(`\[\d*\]`)

// unknownKey words the error for a key that does not exist, with the one that was
// probably meant. value is the scalar that was given, if any; it is looked at
// for one thing only and never repeated.
func unknownKey(path, value string) string {
	if why, ok := refusedReset(path, value); ok {
		return why
	}
	return fmt.Sprintf("unknown key %s%s", path, didYouMean(path))
}

// refusedReset explains why there is no setting for where a group without a
// position starts. A group that starts at the end skips money without an error.
func refusedReset(path, value string) (string, bool) {
	switch strings.ToLower(value) {
	case "latest", "newest", "largest", "end":
	default:
		return "", false
	}
	name := strings.ToLower(path)
	if !strings.Contains(name, "reset") && !strings.Contains(name, "offset") && !strings.Contains(name, "start") {
		return "", false
	}
	return fmt.Sprintf("%s: a reset to the end is refused: events that arrived before the worker would be skipped, and their money with them. "+
		"Workers start where Postgres says they stopped, else at the start of the log. Remove the key", path), true
}

func didYouMean(path string) string {
	want := indexes.ReplaceAllString(path, "[]")
	var paths []string
	groups := map[string]bool{}
	for _, k := range Keys() {
		paths = append(paths, k.Path)
		if group, _, nested := strings.Cut(k.Path, "."); nested && !groups[group] && !strings.Contains(group, "[") {
			groups[group] = true
			paths = append(paths, group)
		}
	}
	if best := nearest(want, paths); best != "" {
		return fmt.Sprintf(": did you mean %s?", best)
	}
	return "; `hookledger config reference` lists every key"
}

// nearest returns the candidate closest to want, or the empty string if none is
// close: within a third of its length, or with the same last word.
func nearest(want string, candidates []string) string {
	best, bestDistance := "", len(want)/3+2
	for _, c := range candidates {
		d := distance(want, c)
		if lastWord(c) == lastWord(want) {
			d = min(d, bestDistance-1)
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func lastWord(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}

// distance is the number of letters to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
