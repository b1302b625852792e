package agent

import (
	"bytes"
	"sync"

	"github.com/albertofaria/pav/internal/observe"
)

// buffer is a bytes.Buffer for writers in several goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// libraries has what the libraries log by themselves, whichever agent they work for.
var libraries buffer

// KeepLibraryLogs takes what the libraries log by themselves, so that it neither disturbs the tests'
// own output nor escapes their checks. For TestMain.
func KeepLibraryLogs() { observe.InstallLogger(observe.NewLogger(&libraries, observe.LogOptions{})) }
