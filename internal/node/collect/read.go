package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/workflow"
)

// lost is told of a pod after whose end the node was restarted, or somebody has unmounted its /pav. What it wrote may have been lost, also
// where the files are there: a handle that is missing must not be taken for one that was never written.
var lost = workflow.Result{Unreadable: map[string]string{
	workflow.HandleFile: restarted, workflow.CapacityFile: restarted, workflow.ErrorFile: restarted,
}}

const restarted = "the node was restarted, or /pav unmounted, before it could be read"

// read returns what a pod left. What cannot be read because of what it is, is part of the result, in
// words for people, which name nothing of the node; all else that goes wrong is an error.
func (c *Collector) read(ctx context.Context, volumeID string) (workflow.Result, error) {
	result := workflow.Result{}
	for _, file := range []struct {
		name  string
		limit int
		text  *string
		trim  func(string) string
	}{
		{workflow.HandleFile, workflow.MaxHandle, &result.Handle, trimLine},
		{workflow.CapacityFile, workflow.MaxCapacity, &result.Capacity, strings.TrimSpace},
		{workflow.ErrorFile, workflow.MaxError, &result.Error, strings.TrimSpace},
	} {
		// The end of the line does not count.
		text, err := c.dirs.ReadPod(ctx, volumeID, file.name, file.limit+len("\r\n"))
		if err == nil && len(trimLine(text)) > file.limit {
			err = mount.ErrTooLarge
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			*file.text = file.trim(text)
			continue
		}
		why, known := unreadable(err, file.limit)
		if !known {
			return workflow.Result{}, err
		}
		if result.Unreadable == nil {
			result.Unreadable = map[string]string{}
		}
		result.Unreadable[file.name] = why
	}
	return result, nil
}

// unreadable says why a file cannot be read, where that is the pod's doing.
func unreadable(err error, limit int) (string, bool) {
	for _, reason := range []struct {
		err error
		why string
	}{
		{mount.ErrEscapes, "it is a symbolic link, or something is mounted over it"},
		{mount.ErrNotRegular, "it is not a regular file"},
		{mount.ErrTooLarge, fmt.Sprintf("it has more than %d bytes", limit)},
		{mount.ErrNotUTF8, "it is not valid UTF-8"},
		{mount.ErrControlCharacter, "it has a control character"},
	} {
		if errors.Is(err, reason.err) {
			return reason.why, true
		}
	}
	return "", false
}

// trimLine removes one line feed from the end of a text, with the carriage return before it.
func trimLine(text string) string {
	if line, found := strings.CutSuffix(text, "\n"); found {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}
