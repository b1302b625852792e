package pavdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/albertofaria/pav/internal/mount"
)

// Names of the records in a directory. The name of a temporary file begins with a dot.
const (
	podRecord   = "pod.json"
	stageRecord = "stage.json"
	targetsName = "targets"
)

// ErrTorn is wrapped if a record is damaged.
var ErrTorn = errors.New("the record is torn")

// readRecord reads a record; nil if there is none.
func readRecord[T any](path string) (*T, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a record: %w", err)
	}
	record := new(T)
	if err := json.Unmarshal(raw, record); err != nil {
		return nil, fmt.Errorf("decoding %q: %w: %w", path, ErrTorn, err)
	}
	return record, nil
}

// keepRecord writes a record to disk, in a directory that exists: if the machine stops during the call, the file has
// the old or the new content, and after the call the new one.
func (d *Directories) keepRecord(path string, record any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding the record %q: %w", path, err)
	}
	if found, err := os.ReadFile(path); err != nil || !bytes.Equal(found, raw) {
		if err := replaceFile(path, raw, (*os.File).Sync); err != nil {
			return fmt.Errorf("writing a record: %w", err)
		}
	}
	// This is also done if the file was there: an agent may have been killed just after it renamed the file. The
	// directories are synced up to one of kubelet's, as any of them may be new.
	plugins := filepath.Join(d.kubelet, "plugins")
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if err := syncDir(dir); err != nil {
			return fmt.Errorf("writing the record %q: %w", path, err)
		}
		if dir == plugins || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// replaceFile replaces a file atomically, or creates it. Each call writes a separate temporary file, as a call that
// was given up may still be running.
func replaceFile(path string, content []byte, sync func(*os.File) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	mount.Traced("openat")
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = sync(file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	mount.Traced("renameat")
	return nil
}

// removeFile removes a file. It is not an error if the file does not exist.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	mount.Traced("unlinkat")
	return nil
}

// syncDir writes the renames in a directory to disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing a directory: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
