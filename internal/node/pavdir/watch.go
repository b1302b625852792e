package pavdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher watches for /pav/ready of all stages of the node with one inotify instance.
type watcher struct {
	inotify *fsnotify.Watcher
	woken   func(stage string)
	done    chan struct{}

	mu     sync.Mutex
	stages map[string]string // by directory
}

func newWatcher(woken func(stage string)) (*watcher, error) {
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("making an inotify instance (see fs.inotify.max_user_instances): %w", err)
	}
	w := &watcher{inotify: inotify, woken: woken, done: make(chan struct{}), stages: map[string]string{}}
	go w.run()
	return w, nil
}

// add must be called on a thread of the mount namespace that the directory is in. It may be repeated.
func (w *watcher) add(stage, dir string) error {
	w.mu.Lock()
	_, watched := w.stages[dir]
	w.stages[dir] = stage
	w.mu.Unlock()
	if watched {
		return nil
	}
	if err := w.inotify.Add(dir); err != nil {
		w.mu.Lock()
		delete(w.stages, dir)
		w.mu.Unlock()
		return fmt.Errorf("watching /pav of stage %q (see fs.inotify.max_user_watches): %w", stage, err)
	}
	return nil
}

func (w *watcher) remove(dir string) {
	w.mu.Lock()
	_, watched := w.stages[dir]
	delete(w.stages, dir)
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
			// Events were lost: wake all stages.
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.wakeAll()
			}
		}
	}
}

func (w *watcher) wake(dir string) {
	w.mu.Lock()
	stage, ok := w.stages[dir]
	w.mu.Unlock()
	if ok {
		w.woken(stage)
	}
}

func (w *watcher) wakeAll() {
	w.mu.Lock()
	stages := make([]string, 0, len(w.stages))
	for _, stage := range w.stages {
		stages = append(stages, stage)
	}
	w.mu.Unlock()
	for _, stage := range stages {
		w.woken(stage)
	}
}

func (w *watcher) close() error {
	err := w.inotify.Close()
	<-w.done
	return err
}
