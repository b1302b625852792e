package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Result has the files that a pod left in /pav, as the node agent read them after all containers had ended, or the
// pod had created /pav/ready. It is the value of pavv1.ResultAnnotation, as JSON. The pod wrote all of it, so it must not
// be trusted.
type Result struct {
	// Ready says that the files were read because the pod had created /pav/ready. Its containers may still have run.
	Ready bool `json:"ready,omitempty"`

	// Handle, Capacity, SnapshotHandle, SnapshotSize and Error are the texts of the files, without surrounding white space; "" if
	// there is no such file. Of handles, only one line feed at the end is removed.
	Handle         string `json:"handle,omitempty"`
	Capacity       string `json:"capacity,omitempty"`
	SnapshotHandle string `json:"snapshotHandle,omitempty"`
	SnapshotSize   string `json:"snapshotSize,omitempty"`
	Error          string `json:"error,omitempty"`

	// BucketID and AccountID identify what a creation pod of a bucket, or a grant pod, has made; "" if there is no such file.
	BucketID  string `json:"bucketId,omitempty"`
	AccountID string `json:"accountId,omitempty"`

	// Created says that the creation pod of a bucket found the bucket to be the claim's.
	Created bool `json:"created,omitempty"`

	// Info has the texts of the files in the directory info of a creation pod of a bucket, by name: "endpoint", "extra/KEY".
	Info map[string]string `json:"info,omitempty"`

	// Expires is when the credentials of a grant pod end, in RFC 3339; "" if they do not.
	Expires string `json:"expires,omitempty"`

	// Sealed are the credentials of a grant pod, which only the controller agent can open; see package credentials.
	Sealed []byte `json:"sealed,omitempty"`

	// Infeasible is the text of the file by which a pod that fails promises that it has changed nothing, and that it would
	// fail again; nil if there is no such file.
	Infeasible *string `json:"infeasible,omitempty"`

	// Unreadable says, by path below /pav, why an existing file or directory could not be read, or may not be told: it is not a
	// regular file, too large, or not valid UTF-8. A path that is not plain text is quoted.
	Unreadable map[string]string `json:"unreadable,omitempty"`
}

// CheckHandle returns why text cannot be the handle of a volume or snapshot, or nil.
func CheckHandle(text string) error {
	switch {
	case text == "":
		return errors.New("the handle is empty")
	case len(text) > MaxHandle:
		return fmt.Errorf("the handle is %d bytes long, and may have %d at most", len(text), MaxHandle)
	case !utf8.ValidString(text):
		return errors.New("the handle is not valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("the handle %q has control characters", text)
	}
	return nil
}

// Creates reports whether pods of a workflow of the controller agent make something that nobody knows but for their result: a
// volume, a snapshot, a bucket, or an account.
func Creates(workflow string) bool {
	creating := []string{pavv1.WorkflowCreation, pavv1.WorkflowSnapshotCreation, pavv1.WorkflowBucketCreation, pavv1.WorkflowGrant}
	return slices.Contains(creating, workflow)
}

// MayBeReady reports whether the files of a pod are read when it creates /pav/ready: its workflow Creates something, and its
// containers are never restarted, sidecars excepted. A container that is, might begin to create it again.
func MayBeReady(pod *corev1.Pod) bool {
	return Creates(pod.Labels[pavv1.WorkflowLabel]) && pod.Spec.RestartPolicy == corev1.RestartPolicyNever && !hasOwnPolicies(&pod.Spec)
}

// IsReported reports whether the node agent has written the result of a pod to it.
func IsReported(pod *corev1.Pod) bool {
	_, reported := pod.Annotations[pavv1.ResultAnnotation]
	return reported
}

// IsReady reports whether the result of a pod was read because it had created /pav/ready.
func IsReady(pod *corev1.Pod) bool {
	result, err := ResultOf(pod)
	return err == nil && result != nil && result.Ready
}

// Encode returns the value of the annotation.
func (r Result) Encode() (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // which would replace some characters by six bytes
	if err := encoder.Encode(r); err != nil {
		return "", fmt.Errorf("encoding the result of a pod: %w", err)
	}
	return strings.TrimSpace(text.String()), nil
}

// ResultOf returns the result of a pod, or nil if the node agent has not reported it yet.
func ResultOf(pod *corev1.Pod) (*Result, error) {
	text, ok := pod.Annotations[pavv1.ResultAnnotation]
	if !ok {
		return nil, nil
	}
	result := &Result{}
	if err := json.Unmarshal([]byte(text), result); err != nil {
		return nil, fmt.Errorf("pod %s/%s: annotation %s: %w", pod.Namespace, pod.Name, pavv1.ResultAnnotation, err)
	}
	return result, nil
}
