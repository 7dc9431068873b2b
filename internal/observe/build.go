package observe

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Version is the release, set by the linker: -X hookledger/internal/observe.Version=v1.2.3.
// Without it Build falls back on what the Go tool recorded.
var Version = ""

// BuildInfo says which program this is.
type BuildInfo struct {
	Version string `json:"version"`
	// Commit is the revision, with a trailing + if the tree had changes; empty if
	// not known.
	Commit string `json:"commit"`
	// Time is when Commit was made, RFC 3339; empty if not known.
	Time string `json:"commit_time"`
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// Build returns the build information of the running program.
func Build() BuildInfo {
	b := BuildInfo{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		modified := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					modified = "+"
				}
			}
		}
		if b.Commit != "" {
			b.Commit += modified
		}
		if b.Version == "" {
			b.Version = info.Main.Version
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "development"
	}
	return b
}

// RegisterBuild exposes b as a metric that is always 1.
func RegisterBuild(reg prometheus.Registerer, b BuildInfo) {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hookledger_observe_build_info",
		Help: "Always 1; the labels say which program runs.",
	}, []string{"version", "commit", "go"})
	reg.MustRegister(g)
	g.WithLabelValues(b.Version, b.Commit, b.Go).Set(1)
}
