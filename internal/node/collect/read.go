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

// lost is reported of a pod if the node was restarted after it ended, or if its /pav was unmounted. Its files may be
// lost, even if some exist: a missing handle must not be taken for one that was never written.
var lost = workflow.Result{Unreadable: map[string]string{
	workflow.HandleFile: restarted, workflow.CapacityFile: restarted, workflow.ErrorFile: restarted,
	workflow.SnapshotHandleFile: restarted, workflow.SnapshotSizeFile: restarted,
}}

const restarted = "the node was restarted, or /pav unmounted, before it could be read"

// read returns the files that a pod left. If a file cannot be read because of what the pod made it, the result says
// why, in a text without any path of the node; all other problems are errors.
func (c *Collector) read(ctx context.Context, volumeID string) (workflow.Result, error) {
	result := workflow.Result{}
	for _, file := range []struct {
		name  string
		limit int
		keep  func(text string)
	}{
		{workflow.HandleFile, workflow.MaxHandle, func(text string) { result.Handle = trimLine(text) }},
		{workflow.CapacityFile, workflow.MaxCapacity, func(text string) { result.Capacity = strings.TrimSpace(text) }},
		{workflow.SnapshotHandleFile, workflow.MaxHandle, func(text string) { result.SnapshotHandle = trimLine(text) }},
		{workflow.SnapshotSizeFile, workflow.MaxCapacity, func(text string) { result.SnapshotSize = strings.TrimSpace(text) }},
		{workflow.ErrorFile, workflow.MaxError, func(text string) { result.Error = strings.TrimSpace(text) }},
		{workflow.InfeasibleFile, workflow.MaxInfeasible, func(text string) { result.Infeasible = new(strings.TrimSpace(text)) }},
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
			file.keep(text)
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

// unreadable says why a file cannot be read, if the pod caused that.
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
