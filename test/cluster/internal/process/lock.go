package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// retryLock is the time between two attempts to get a lock that another process holds.
const retryLock = 200 * time.Millisecond

// Lock takes an exclusive lock on a file. It creates the file if it does not exist. The lock is released when the
// result is closed or when the process ends for any reason. If the lock is not free, Lock calls waiting once.
func Lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of locks: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	told := false
	err = Until(ctx, retryLock, func() (bool, error) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			if !told {
				told = true
				waiting()
			}
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("taking the lock %q: %w", path, err)
	}
	return file, nil
}

// Until calls condition, first at once and then periodically. It returns when the condition holds, returns an error, or
// the context ends.
func Until(ctx context.Context, period time.Duration, condition func() (bool, error)) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if done, err := condition(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
