package app

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// Progress is one line on a terminal that is written over; elsewhere, and with --json, it
// is silent. It is safe for concurrent use.
type Progress struct {
	mu   sync.Mutex
	w    io.Writer
	last time.Time
}

// progressEvery is how often the line changes.
const progressEvery = 100 * time.Millisecond

// NewProgress returns a line on standard error.
func (a *App) NewProgress() *Progress {
	if f, ok := a.Stderr.(*os.File); ok && isatty.IsTerminal(f.Fd()) && !a.JSON {
		return &Progress{w: f}
	}
	return &Progress{}
}

// barWidth is the length of the bar in characters.
const barWidth = 30

// Update shows that done of total are done in stage, which is our own word.
func (p *Progress) Update(stage string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || total == 0 || time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	full := int(done * barWidth / total)
	bar := strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s %s %d of %d (%d %%)", stage, bar, done, total, done*100/total)
}

// Count shows that n are done in stage of a whole that is not known.
func (p *Progress) Count(stage string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s %d", stage, n)
}

// Clear takes the line away.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && !p.last.IsZero() {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}
