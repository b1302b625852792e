package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

// ownNamespace is the mount namespace of the calling thread.
const ownNamespace = "/proc/thread-self/ns/mnt"

// Namespace is a mount namespace that functions can be run in. It is safe for
// concurrent use.
type Namespace struct {
	file *os.File

	mutex    sync.Mutex
	mounting map[string]struct{} // paths that a function of DoMount is at work for
}

// Open opens the mount namespace behind a path such as /proc/1/ns/mnt. The
// Namespace keeps it alive until closed.
func Open(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening mount namespace: %w", err)
	}
	kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE)
	if err != nil || kind != unix.CLONE_NEWNS {
		release(file)
		return nil, fmt.Errorf("opening %q: %w", path, ErrNotNamespace)
	}
	return &Namespace{file: file, mounting: make(map[string]struct{})}, nil
}

// Close lets go of the namespace. Functions that run in it go on.
func (n *Namespace) Close() error {
	return n.file.Close()
}

// Do runs f on an OS thread of its own, which is in the namespace, shares its
// root, working directory and umask with no other thread, and ends with f.
//
// If ctx ends first, Do returns its error. A system call cannot be taken back,
// so f goes on and its result is lost: f must not write to what the caller reads
// after an error, and anyone who repeats the work must expect f to finish it late.
// A panic of f is returned as ErrPanic.
func (n *Namespace) Do(ctx context.Context, f func() error) error {
	return n.do(ctx, f, func() {})
}

// DoMount is Do for a function that mounts something at path, and that may hang
// because of what is mounted there or is to be: while one for that path goes on,
// given up or not, the error is ErrHangs, at once, and f does not run. So a volume
// that never answers costs one thread for each path, however often it is asked for.
func (n *Namespace) DoMount(ctx context.Context, path string, f func() error) error {
	path = filepath.Clean(path)
	n.mutex.Lock()
	_, hangs := n.mounting[path]
	if !hangs {
		n.mounting[path] = struct{}{}
	}
	n.mutex.Unlock()
	if hangs {
		return fmt.Errorf("mounting at %q: %w", path, ErrHangs)
	}
	return n.do(ctx, f, func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.mounting, path)
	})
}

// do is Do that calls ended, once, when f has returned or will never run, and
// before it returns the result of f.
func (n *Namespace) do(ctx context.Context, f func() error, ended func()) error {
	if err := ctx.Err(); err != nil {
		ended()
		return fmt.Errorf("entering mount namespace: %w", err)
	}
	done := make(chan error, 1)
	go onOwnThread(func() {
		finished := false
		var err error
		defer func() {
			if !finished {
				err = fmt.Errorf("%w: %v\n%s", ErrPanic, recover(), debug.Stack())
			}
			ended()
			done <- err
		}()
		if err = n.enter(); err == nil {
			err = f()
		}
		finished = true
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for work in mount namespace: %w", ctx.Err())
	}
}

// enter moves the calling thread, which must be locked, into the namespace.
func (n *Namespace) enter() error {
	// A thread may change its namespace only if no other shares its root.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering mount namespace: unsharing root: %w", err)
	}
	conn, err := n.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("entering mount namespace: %w", err)
	}
	// Control holds the descriptor against Close, so that setns cannot meet
	// another file of the same number.
	var entered error
	if conn.Control(func(fd uintptr) { entered = unix.Setns(int(fd), unix.CLONE_NEWNS) }) != nil {
		return fmt.Errorf("entering mount namespace: %w", os.ErrClosed)
	}
	if entered != nil {
		return fmt.Errorf("entering mount namespace: %w", entered)
	}
	return nil
}

// onOwnThread runs f on a thread that ends with it: a goroutine that returns
// while locked takes its thread along, so nothing else ever runs on a thread
// whose namespace was changed.
//
// The main thread is spared. It cannot end, and /proc/self shows its namespace,
// which others take for that of the process.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(locked)
		f()
	}()
	<-locked
	runtime.UnlockOSThread()
}

// In is Namespace.Do for a function with a result, which is lost if ctx ends first.
func In[T any](ctx context.Context, n *Namespace, f func() (T, error)) (T, error) {
	var none T
	// Only read once f has returned: if ctx ends first, f goes on and writes to it.
	result := new(T)
	err := n.Do(ctx, func() error {
		value, err := f()
		*result = value
		return err
	})
	if err != nil {
		return none, err
	}
	return *result, nil
}
