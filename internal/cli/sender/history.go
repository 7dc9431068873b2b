package sender

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Line is one attempt in the history, which is JSON lines.
type Line struct {
	Seed uint64 `json:"seed"`
	// I is the index of the event within the run, Attempt counts its deliveries.
	I       int   `json:"i"`
	Attempt int64 `json:"attempt"`
	// T0 and T1 are when the attempt began and ended, RFC 3339 in UTC.
	T0       string `json:"t0"`
	Source   string `json:"source"`
	EventID  string `json:"event_id"`
	Account  string `json:"account"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	SHA256   string `json:"sha256"`
	// Result is ok, reject or unknown; HTTP the status, 0 for none.
	Result string `json:"result"`
	HTTP   int    `json:"http"`
	T1     string `json:"t1"`
}

// history writes lines that are on disk when write returns. Lines that arrive while
// the disk is busy share the next sync.
type history struct {
	file *os.File

	mu      sync.Mutex
	synced  *sync.Cond
	pending []byte
	// written and durable count lines.
	written, durable int64
	syncing          bool
	err              error
}

// openHistory appends to the file at path; an empty path keeps no history.
func openHistory(path string) (*history, error) {
	h := &history{}
	h.synced = sync.NewCond(&h.mu)
	if path == "" {
		return h, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	h.file = f
	return h, nil
}

// write appends a line and returns when it is durable.
func (h *history) write(l Line) error {
	if h.file == nil {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = append(append(h.pending, text...), '\n')
	h.written++
	mine := h.written
	for h.durable < mine && h.err == nil {
		if h.syncing {
			h.synced.Wait()
			continue
		}
		h.flush()
	}
	return h.err
}

// flush writes and syncs what is pending. The caller holds mu, which is released
// meanwhile.
func (h *history) flush() {
	h.syncing = true
	text, upTo := h.pending, h.written
	h.pending = nil
	h.mu.Unlock()
	_, err := h.file.Write(text)
	if err == nil {
		err = h.file.Sync()
	}
	h.mu.Lock()
	h.syncing = false
	if err != nil {
		h.err = fmt.Errorf("write history: %w", err)
	} else {
		h.durable = upTo
	}
	h.synced.Broadcast()
}

func (h *history) close() error {
	if h.file == nil {
		return nil
	}
	if err := h.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close history: %w", err)
	}
	return nil
}
