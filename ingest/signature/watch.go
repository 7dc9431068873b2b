package signature

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"
)

// pollEvery is how often files are read again in any case: file systems without
// notifications, and directories that are replaced as a whole, are noticed late but
// are noticed.
const pollEvery = 30 * time.Second

// settle is how long a change may take, such as write and rename.
const settle = 100 * time.Millisecond

// Watch reloads keyrings when a file of theirs changes, until ctx ends. It watches the
// directories, because a secret is replaced by renaming: Kubernetes swaps the symbolic
// link ..data beside the file and never touches the file. A reload that fails is logged
// and leaves the old secrets in use.
func Watch(ctx context.Context, rings []*Keyring, log zerolog.Logger) error {
	dirs := make(map[string][]*Keyring)
	for _, k := range rings {
		for _, c := range k.configs {
			if c.File != "" {
				dir := filepath.Dir(c.File)
				dirs[dir] = append(dirs[dir], k)
			}
		}
	}
	if len(dirs) == 0 {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files of secrets: %w", err)
	}
	defer watcher.Close()
	for dir := range dirs {
		if err := watcher.Add(dir); err != nil {
			log.Warn().Err(err).Str("dir", dir).Dur("poll", pollEvery).Msg("directory of secrets cannot be watched; its files are read again from time to time")
		}
	}
	due := make(map[*Keyring]bool)
	all := func() {
		for _, rings := range dirs {
			for _, k := range rings {
				due[k] = true
			}
		}
	}
	// A change between loading and watching would go unnoticed.
	all()
	timer, poll := time.NewTimer(0), time.NewTicker(pollEvery)
	defer timer.Stop()
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, ok := <-watcher.Events:
			if !ok {
				return nil
			}
			for _, k := range dirs[filepath.Dir(ev.Name)] {
				due[k] = true
			}
			timer.Reset(settle)
		case err, ok := <-watcher.Errors:
			if !ok {
				return nil
			}
			log.Warn().Err(err).Msg("watch files of secrets")
			all()
			timer.Reset(settle)
		case <-poll.C:
			all()
			timer.Reset(0)
		case <-timer.C:
			for k := range due {
				delete(due, k)
				if err := k.Reload(); err != nil {
					log.Error().Err(err).Msg("reload of secrets; the old ones stay in use")
				}
			}
		}
	}
}
