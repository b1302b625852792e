package status

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// How much of a log is shown: the number of last lines, and the maximum number of bytes; and how many bytes are
// requested, as a line may have any length.
const (
	lines     = 10
	bytesOf   = 16 << 10
	maxBytes  = 64 << 10
	maxColumn = 400
)

// lastLog returns the end of a container's log; nil if it is empty, or the user may not read it. A pod that is gone
// is not an error.
func lastLog(ctx context.Context, kube kubernetes.Interface, ref PodRef) *Log {
	tail, limit := int64(lines), int64(maxBytes)
	raw, err := kube.CoreV1().Pods(ref.Namespace).GetLogs(ref.Name, &corev1.PodLogOptions{
		Container: ref.Container, Previous: ref.Previous, TailLines: &tail, LimitBytes: &limit,
	}).DoRaw(ctx)
	if err != nil {
		return nil
	}
	raw = raw[max(len(raw)-bytesOf, 0):]
	text := strings.TrimRight(strings.ToValidUTF8(string(raw), "?"), "\n")
	if text == "" {
		return nil
	}
	log := &Log{PodRef: ref}
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxColumn {
			line = strings.ToValidUTF8(line[:maxColumn], "") + "…"
		}
		log.Lines = append(log.Lines, line)
	}
	return log
}
