package agent

import (
	"bytes"
	"sync"

	"github.com/albertofaria/pav/internal/observability"
)

// Buffer is a bytes.Buffer that several goroutines may use at once.
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

// libraries has the log messages that libraries write by themselves, for all agents.
var libraries Buffer

// KeepLibraryLogs collects the log messages that libraries write by themselves, so that they do not disturb the output
// of the tests, and the tests can check them. It is for TestMain.
func KeepLibraryLogs() {
	observability.InstallLogger(observability.NewLogger(&libraries, observability.LogOptions{Verbosity: 1}))
}

// LibraryLogs returns the log messages of the libraries.
func LibraryLogs() string { return libraries.String() }
