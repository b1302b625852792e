package pavdir

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher watches for /pav/ready of all pods of the node with one inotify instance.
type watcher struct {
	inotify *fsnotify.Watcher
	done    chan struct{}

	mu    sync.Mutex
	woken map[string]func() // by directory
}

func newWatcher() (*watcher, error) {
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("making an inotify instance (see fs.inotify.max_user_instances): %w", err)
	}
	w := &watcher{inotify: inotify, done: make(chan struct{}), woken: map[string]func(){}}
	go w.run()
	return w, nil
}

// add calls woken when /pav/ready is created in a directory; woken must not block. It must be called on a thread of the
// mount namespace that the directory is in. It may be repeated.
func (w *watcher) add(dir string, woken func()) error {
	w.mu.Lock()
	_, watched := w.woken[dir]
	w.woken[dir] = woken
	w.mu.Unlock()
	if watched {
		return nil
	}
	if err := w.inotify.Add(dir); err != nil {
		w.mu.Lock()
		delete(w.woken, dir)
		w.mu.Unlock()
		return fmt.Errorf("watching %q (see fs.inotify.max_user_watches): %w", dir, err)
	}
	return nil
}

func (w *watcher) remove(dir string) {
	w.mu.Lock()
	_, watched := w.woken[dir]
	delete(w.woken, dir)
	w.mu.Unlock()
	if watched {
		// The kernel removes the watch of a directory that is removed, so the watch may be gone already.
		_ = w.inotify.Remove(dir)
	}
}

func (w *watcher) run() {
	defer close(w.done)
	for {
		select {
		case event, ok := <-w.inotify.Events:
			if !ok {
				return
			}
			if filepath.Base(event.Name) == readyName && event.Has(fsnotify.Create) {
				w.wake(filepath.Dir(event.Name))
			}
		case err, ok := <-w.inotify.Errors:
			if !ok {
				return
			}
			// Events were lost.
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.wakeAll()
			}
		}
	}
}

func (w *watcher) wake(dir string) {
	w.mu.Lock()
	woken := w.woken[dir]
	w.mu.Unlock()
	if woken != nil {
		woken()
	}
}

func (w *watcher) wakeAll() {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.woken))
	w.mu.Unlock()
	for _, woken := range all {
		woken()
	}
}

func (w *watcher) close() error {
	err := w.inotify.Close()
	<-w.done
	return err
}
