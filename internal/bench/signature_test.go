package bench

import (
	"bufio"
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// measureSignatures runs the benchmarks of package signature, which know how each scheme
// signs, and puts a line for each of them beside the bare HMAC of the same run.
func measureSignatures(b *bench) {
	b.say("building the benchmarks of ingest/signature")
	for _, text := range b.signatureRuns() {
		found := parseBenchmarks(text)
		for _, name := range slices.Sorted(keysOf(found)) {
			bare, floorName, wanted := found["bare-sha256/size=1024"], "bare HMAC of the same 1 KiB", most(1.5)
			scheme, sized := strings.CutSuffix(name, "/size=1024")
			switch {
			case strings.HasPrefix(name, "bare-"):
				continue
			case !sized: // reads what it signs out of a body of its own
				floorName, wanted = "bare HMAC of 1 KiB, for scale", want{}
			case strings.Contains(name, "sha512"):
				bare = found["bare-sha512/size=1024"]
			}
			i := slices.IndexFunc(b.lines, func(l *line) bool { return l.name == scheme })
			if i < 0 {
				i = len(b.lines)
				b.add(line{name: scheme, unit: "ns/verification", floorName: floorName, want: wanted})
			}
			l := b.lines[i]
			l.ours, l.floor = append(l.ours, found[name].ns), append(l.floor, bare.ns)
			l.note = strconv.Itoa(int(found[name].allocs)) + " and " + strconv.Itoa(int(bare.allocs)) + " allocations"
		}
	}
}

// signatureRuns returns what the benchmarks print, one text for each repetition.
func (b *bench) signatureRuns() [][]byte {
	b.tb.Helper()
	if b.tiny() { // building another test binary takes longer than all the rest
		return [][]byte{[]byte("BenchmarkVerify/scheme=stripe/size=1024-2 100 1500 ns/op 600 B/op 9 allocs/op\n" +
			"BenchmarkVerify/scheme=bare-sha256/size=1024-2 100 1000.5 ns/op 500 B/op 6 allocs/op\n" +
			"BenchmarkVerifyDerived/scheme=tbank-2 100 3000 ns/op 600 B/op 9 allocs/op\nPASS\n")}
	}
	program := filepath.Join(b.tb.TempDir(), "signature.test")
	b.command("go", "../..", nil, "test", "-c", "-o", program, "./ingest/signature")
	took := "100ms"
	if b.mode.name == quickMode.name {
		took = "20ms"
	}
	var texts [][]byte
	for range b.reps + 2 { // they are short
		texts = append(texts, b.command(program, "../../ingest/signature", nil,
			"-test.run", "^$", "-test.bench", "^BenchmarkVerify$/.*/size=1024$", "-test.benchmem", "-test.benchtime", took).stdout)
		texts[len(texts)-1] = append(texts[len(texts)-1], b.command(program, "../../ingest/signature", nil,
			"-test.run", "^$", "-test.bench", "^BenchmarkVerifyDerived$", "-test.benchmem", "-test.benchtime", took).stdout...)
	}
	return texts
}

// benchmark is what one says of an operation.
type benchmark struct{ ns, allocs float64 }

// parseBenchmarks reads the output of benchmarks whose names are scheme=….
func parseBenchmarks(text []byte) map[string]benchmark {
	found := map[string]benchmark{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		_, name, ok := strings.Cut(f[0], "/scheme=")
		if i := strings.LastIndexByte(name, '-'); ok && i > 0 { // the number of processors
			name = name[:i]
		}
		var m benchmark
		for i := 2; i+1 < len(f); i += 2 {
			x, err := strconv.ParseFloat(f[i], 64)
			switch {
			case err != nil:
			case f[i+1] == "ns/op":
				m.ns = x
			case f[i+1] == "allocs/op":
				m.allocs = x
			}
		}
		if ok && m.ns > 0 {
			found[name] = m
		}
	}
	return found
}

func keysOf(m map[string]benchmark) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
