package mount

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Dir is a directory that pods write to, held by descriptor. Open it before the
// pod starts: then no rename can put another directory in its place.
type Dir struct {
	file *os.File
}

// OpenDir opens a directory. The last component of path must not be a link.
func OpenDir(path string) (*Dir, error) {
	file, err := openTrusted(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	return &Dir{file: file}, nil
}

// Close lets go of the directory.
func (d *Dir) Close() error {
	return d.file.Close()
}

// lookOnly makes statx look at the entry itself, without effects or waiting.
const lookOnly = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC

// Exists reports whether the directory has an entry of that name, be it a dangling
// link. It does not look at what the entry is.
func (d *Dir) Exists(name string) (bool, error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	var st unix.Statx_t
	err := unix.Statx(int(d.file.Fd()), name, lookOnly, unix.STATX_TYPE, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for %q in %q: %w", name, d.file.Name(), err)
	}
	return true, nil
}

// ModTime says when the entry of that name was last written to; of a link, the
// link itself. Its error is fs.ErrNotExist, or one of the system.
func (d *Dir) ModTime(name string) (time.Time, error) {
	if err := checkName(name); err != nil {
		return time.Time{}, err
	}
	var st unix.Statx_t
	if err := unix.Statx(int(d.file.Fd()), name, lookOnly, unix.STATX_MTIME, &st); err != nil {
		return time.Time{}, fmt.Errorf("looking at %q in %q: %w", name, d.file.Name(), err)
	}
	return time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)), nil
}

// ReadFile reads a regular file of at most limit bytes that lies in the
// directory itself. Its errors are fs.ErrNotExist, ErrNotRegular, ErrTooLarge,
// ErrEscapes (a link, or a mount), or one of the system.
func (d *Dir) ReadFile(name string, limit int) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	// First only a handle, for opening a named pipe or a device has effects.
	handle, err := openBeneath(d.file, name, unix.O_PATH, sameMount)
	if err != nil {
		return nil, err
	}
	defer release(handle)
	found, err := inspect(handle)
	if err != nil {
		return nil, err
	}
	if found.kind != unix.S_IFREG {
		return nil, fmt.Errorf("reading %q: %w but %s", handle.Name(), ErrNotRegular, found.describe())
	}
	file, err := reopen(handle, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	defer release(file)
	// One buffer, which does not grow: what it has may be secret, and no copy of it is to stay behind.
	buffer := make([]byte, limit+1)
	n, err := io.ReadFull(file, buffer)
	if err == nil {
		clear(buffer)
		return nil, fmt.Errorf("reading %q: %w: over %d bytes", handle.Name(), ErrTooLarge, limit)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		clear(buffer)
		return nil, fmt.Errorf("reading %q: %w", handle.Name(), err)
	}
	return buffer[:n], nil
}

// ReadText is ReadFile for a text: what CheckText refuses is an error.
func (d *Dir) ReadText(name string, limit int) (string, error) {
	content, err := d.ReadFile(name, limit)
	if err != nil {
		return "", err
	}
	if err := CheckText(content); err != nil {
		return "", fmt.Errorf("reading %q below %q: %w", name, d.file.Name(), err)
	}
	return string(content), nil
}

// CheckText refuses what is not valid UTF-8 (ErrNotUTF8) or has control
// characters, NUL among them, other than tab, newline and carriage return
// (ErrControlCharacter). It does not judge characters that turn the direction of
// writing and the like.
func CheckText(content []byte) error {
	for i := 0; i < len(content); {
		char, size := utf8.DecodeRune(content[i:])
		if char == utf8.RuneError && size == 1 {
			return fmt.Errorf("%w at byte %d", ErrNotUTF8, i)
		}
		if unicode.IsControl(char) && char != '\t' && char != '\n' && char != '\r' {
			return fmt.Errorf("%w at byte %d: %U", ErrControlCharacter, i, char)
		}
		i += size
	}
	return nil
}
