package agent

import (
	"bytes"
	"sync"

	"github.com/albertofaria/pav/internal/observability"
)

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// libraries has what the libraries log by themselves, whichever agent they work for.
var libraries Buffer

// KeepLibraryLogs takes what the libraries log by themselves, so that it neither disturbs the tests'
// own output nor escapes their checks. For TestMain.
func KeepLibraryLogs() {
	observability.InstallLogger(observability.NewLogger(&libraries, observability.LogOptions{Verbosity: 1}))
}

// LibraryLogs returns what the libraries logged.
func LibraryLogs() string { return libraries.String() }
