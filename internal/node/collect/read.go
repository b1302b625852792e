package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/workflow"
)

// lost returns what is reported of a pod if the node was restarted after it ended, or if its /pav was unmounted. Its files may be
// lost, even if some exist: a missing handle must not be taken for one that was never written.
func lost(pod *corev1.Pod) workflow.Result {
	result := workflow.Result{Unreadable: map[string]string{}}
	for _, name := range workflow.FilesOf(pod.Labels[pavv1.WorkflowLabel]) {
		if name != workflow.InfeasibleFile { // a promise that is lost does not count
			result.Unreadable[name] = restarted
		}
	}
	return result
}

const restarted = "the node was restarted, or /pav unmounted, before it could be read"

// read returns the files that a pod left. If a file cannot be read because of what the pod made it, the result says
// why, in a text without any path of the node; all other problems are errors.
func (c *Collector) read(ctx context.Context, volumeID string, pod *corev1.Pod) (workflow.Result, error) {
	r := &reader{dirs: c.dirs, volumeID: volumeID}
	defer func() { r.secrets.clear() }()
	for _, name := range workflow.FilesOf(pod.Labels[pavv1.WorkflowLabel]) {
		var err error
		switch name {
		case workflow.CreatedFile:
			err = r.readCreated(ctx)
		case workflow.InfoDirectory:
			err = r.readInfo(ctx)
		case workflow.CredentialsDirectory:
			err = r.readCredentials(ctx)
		default:
			err = r.readText(ctx, name)
		}
		if err != nil {
			return workflow.Result{}, err
		}
	}
	if r.secrets != nil {
		r.hideSecrets()
		r.seal(pod)
	}
	return r.result, nil
}

// reader reads the files that a pod left.
type reader struct {
	dirs     Files
	volumeID string
	result   workflow.Result
	secrets  *secrets // nil for pods that leave no credentials
}

// texts are the files that have a text, with their limits.
var texts = map[string]struct {
	limit int
	keep  func(r *workflow.Result, text string)
}{
	workflow.HandleFile:         {workflow.MaxHandle, func(r *workflow.Result, s string) { r.Handle = trimLine(s) }},
	workflow.CapacityFile:       {workflow.MaxCapacity, func(r *workflow.Result, s string) { r.Capacity = strings.TrimSpace(s) }},
	workflow.SnapshotHandleFile: {workflow.MaxHandle, func(r *workflow.Result, s string) { r.SnapshotHandle = trimLine(s) }},
	workflow.SnapshotSizeFile:   {workflow.MaxCapacity, func(r *workflow.Result, s string) { r.SnapshotSize = strings.TrimSpace(s) }},
	workflow.BucketIDFile:       {workflow.MaxID, func(r *workflow.Result, s string) { r.BucketID = trimLine(s) }},
	workflow.AccountIDFile:      {workflow.MaxID, func(r *workflow.Result, s string) { r.AccountID = trimLine(s) }},
	workflow.ExpiresFile:        {workflow.MaxExpires, func(r *workflow.Result, s string) { r.Expires = strings.TrimSpace(s) }},
	workflow.ErrorFile:          {workflow.MaxError, func(r *workflow.Result, s string) { r.Error = strings.TrimSpace(s) }},
	workflow.InfeasibleFile:     {workflow.MaxInfeasible, func(r *workflow.Result, s string) { r.Infeasible = new(strings.TrimSpace(s)) }},
}

// lineEnd is the longest end of a line, which does not count for the limit of a text.
const lineEnd = "\r\n"

func (r *reader) readText(ctx context.Context, name string) error {
	file := texts[name]
	text, err := r.dirs.ReadPod(ctx, r.volumeID, name, file.limit+len(lineEnd))
	if err == nil && len(trimLine(text)) > file.limit {
		err = mount.ErrTooLarge
	}
	if err == nil {
		file.keep(&r.result, text)
	}
	return r.tolerate(name, err, limits{bytes: file.limit})
}

// readCreated reads a file whose content does not matter.
func (r *reader) readCreated(ctx context.Context) error {
	_, err := r.dirs.ReadPod(ctx, r.volumeID, workflow.CreatedFile, 0)
	if err == nil || errors.Is(err, mount.ErrTooLarge) {
		r.result.Created = true
		return nil
	}
	return r.tolerate(workflow.CreatedFile, err, limits{})
}

func (r *reader) readInfo(ctx context.Context) error {
	most := limits{bytes: workflow.MaxInfo, files: workflow.MaxInfoFiles}
	files, err := r.dirs.ReadPodFiles(ctx, r.volumeID, workflow.InfoDirectory, most.files, most.bytes+len(lineEnd))
	if err != nil {
		return r.tolerate(workflow.InfoDirectory, err, most)
	}
	info, size := map[string]string{}, 0
	for _, file := range files {
		text, err := trimLine(string(file.Content)), file.Err
		switch {
		case err != nil:
		case len(text) > most.bytes:
			err = mount.ErrTooLarge
		case !plainName.MatchString(file.Name):
			err = errName
		default:
			err = mount.CheckText(file.Content)
		}
		if err := r.tolerate(pathOf(workflow.InfoDirectory, file.Name), err, most); err != nil {
			return err
		}
		if err == nil {
			info[file.Name] = text
			size += len(text)
		}
	}
	if size > workflow.MaxAllInfo {
		r.unreadable(workflow.InfoDirectory, fmt.Sprintf("its files have more than %d bytes together", workflow.MaxAllInfo))
		return nil
	}
	if len(info) > 0 {
		r.result.Info = info
	}
	return nil
}

// tolerate notes why a file or directory cannot be read, if the pod caused that, and returns other errors. What does not exist is
// not missed.
func (r *reader) tolerate(path string, err error, most limits) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	why, known := most.exceeded(err)
	if !known {
		return err
	}
	r.unreadable(path, why)
	return nil
}

func (r *reader) unreadable(path, why string) {
	if r.result.Unreadable == nil {
		r.result.Unreadable = map[string]string{}
	}
	r.result.Unreadable[path] = why
}

// limits are those of a file, or of a directory with files.
type limits struct{ bytes, files int }

// errName says that the name of a file is not plain.
var errName = errors.New("the name of the file is not plain text")

// exceeded says why a file or directory cannot be read, if the pod caused that.
func (l limits) exceeded(err error) (string, bool) {
	for _, reason := range []struct {
		err error
		why string
	}{
		{mount.ErrEscapes, "it is a symbolic link, or something is mounted over it"},
		{mount.ErrNotRegular, "it is not a regular file"},
		{mount.ErrNotDirectory, "it is not a directory"},
		{mount.ErrNotMounted, "it is not mounted any more"},
		{mount.ErrTooLarge, fmt.Sprintf("it has more than %d bytes", l.bytes)},
		{mount.ErrTooMany, fmt.Sprintf("it has more than %d files", l.files)},
		{mount.ErrNotUTF8, "it is not valid UTF-8"},
		{mount.ErrControlCharacter, "it has a control character"},
		{errName, "its name has other characters than letters, digits, '-', '_' and '.'"},
	} {
		if errors.Is(err, reason.err) {
			return reason.why, true
		}
	}
	return "", false
}

// plainName is a name, chosen by a pod, that is told as it is.
var plainName = regexp.MustCompile(`^(extra/)?[-._a-zA-Z0-9]{1,253}$`)

// pathOf returns the path of a file in a directory of /pav as the result has it. The pod chose the name, perhaps to disturb its readers.
func pathOf(directory, name string) string {
	if !plainName.MatchString(name) {
		name = fmt.Sprintf("%+.32q", name)
	}
	return directory + "/" + name
}

// trimLine removes one line feed from the end of a text, with the carriage return before it.
func trimLine(text string) string {
	if line, found := strings.CutSuffix(text, "\n"); found {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}
