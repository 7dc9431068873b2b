package chaos

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// enough seeds to draw everything there is to draw.
const enough = 300

func TestNewPlan_IsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	for _, target := range []string{TargetKafka, TargetKfake} {
		seen := map[string]uint64{}
		for seed := range uint64(enough) {
			p, again := NewPlan(seed, target), NewPlan(seed, target)
			if !reflect.DeepEqual(p, again) {
				t.Fatalf("seed %d: got %s, then %s", seed, &p, &again)
			}
			text := p.String()
			read, err := ParsePlan([]byte(text))
			if err != nil || !reflect.DeepEqual(p, read) {
				t.Fatalf("seed %d: wrote %s, read %s (%v)", seed, text, &read, err)
			}
			p.Seed = 0
			if other, ok := seen[p.String()]; ok {
				t.Errorf("seeds %d and %d have one plan: %s", other, seed, text)
			}
			seen[p.String()] = seed
		}
	}
}

// The load is a function of the seed too, but for the clock in it.
func TestWorkload_IsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	p := NewPlan(7, TargetKafka)
	a, b := workload(&p), workload(&p)
	if len(a) != p.Deliveries {
		t.Errorf("got %d deliveries, want %d", len(a), p.Deliveries)
	}
	expected := map[string]int{}
	for i := range a {
		x, y := a[i].tell, b[i].tell
		if x.EventID != y.EventID || x.Amount != y.Amount || x.Account != y.Account || x.Expect != y.Expect || x.Movement != y.Movement {
			t.Fatalf("delivery %d: got %+v, then %+v", i, x, y)
		}
		expected[x.Expect]++
	}
	for _, word := range []string{"", "quarantine", "refused"} {
		if expected[word] == 0 {
			t.Errorf("no delivery is expected to be %q: %v", word, expected)
		}
	}
	if x, y := payments(&p), payments(&p); !reflect.DeepEqual(x, y) {
		t.Error("payments of one seed differ")
	}
}

// Every kind of fault, link, process, broker and crash point is drawn by some seed.
func TestNewPlan_SeedsDrawEverything(t *testing.T) {
	t.Parallel()
	for _, target := range []string{TargetKafka, TargetKfake} {
		drawn := map[string]bool{}
		for seed := range uint64(enough) {
			p := NewPlan(seed, target)
			for _, s := range slices.Concat(p.Steps, p.Crashes) {
				drawn[string(s.Kind)] = true
				drawn[string(s.Kind)+" "+s.On] = true
				drawn[s.Point] = true
				if (s.Kind == LeaderMove || s.Kind == CoordinatorMove) && target == TargetKfake {
					t.Errorf("seed %d on %s: got %s, which needs three brokers", seed, target, s.Kind)
				}
			}
		}
		want := points()
		for _, f := range families {
			if target == TargetKafka || !f.kafkaOnly {
				want = append(want, string(f.kind))
			}
		}
		for _, link := range links {
			want = append(want, "stall "+link, "reset "+link, "cut "+link)
		}
		for _, role := range allRoles {
			want = append(want, "kill "+role, "freeze "+role, "terminate "+role)
		}
		for _, w := range want {
			if !drawn[w] {
				t.Errorf("%s: none of %d seeds draws %q", target, enough, w)
			}
		}
	}
}

// The crash points of the source are those that plans know.
func TestPoints_AreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	root := filepath.Join("..", "..", "..")
	for _, dir := range []string{"ingest", "consumer", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || f.Sel.Name != "Reach" {
					return true
				}
				if pkg, ok := f.X.(*ast.Ident); !ok || pkg.Name != "crashpoint" {
					return true
				}
				lit, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: a crash point is not named by a literal", path)
					return true
				}
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if other := found[name]; other != "" {
					t.Errorf("crash point %s is in %s and in %s", name, other, path)
				}
				found[name] = path
				if pkg, _, _ := strings.Cut(name, "."); pkg != filepath.Base(filepath.Dir(path)) {
					t.Errorf("crash point %s is in %s: name it after its package", name, path)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := slices.Sorted(maps.Keys(found)), points(); !slices.Equal(got, want) {
		t.Errorf("crash points of the source: got %v, want those of points.go: %v", got, want)
	}
}
