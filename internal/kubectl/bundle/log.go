package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLog is how many bytes of a log are kept: the last.
const maxLog = 10 << 20

// readLog returns the end of a log.
func readLog(ctx context.Context, log Log) (text []byte, err error) {
	stream, err := log.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", log.Name, err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	if text, err = tail(stream, maxLog); err != nil {
		return nil, fmt.Errorf("log of %s: %w", log.Name, err)
	}
	return text, nil
}

// tail returns the last whole lines of a text, of at most so many bytes together. A longer line is cut.
func tail(r io.Reader, most int) ([]byte, error) {
	var kept bytes.Buffer
	cut := false
	for {
		_, err := io.CopyN(&kept, r, int64(most))
		if over := kept.Len() - most; over > 0 {
			kept.Next(over)
			cut = true
		}
		switch {
		case errors.Is(err, io.EOF):
			return afterCut(kept.Bytes(), cut), nil
		case err != nil:
			return nil, fmt.Errorf("reading it: %w", err)
		}
	}
}

// afterCut removes the rest of the line in which a text was cut.
func afterCut(text []byte, cut bool) []byte {
	if at := bytes.IndexByte(text, '\n'); cut && at >= 0 && at < len(text)-1 {
		return text[at+1:]
	}
	return text
}
