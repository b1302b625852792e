package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// container is one container of a workflow pod.
type container struct {
	pod       *corev1.Pod
	name      string
	begun     bool // the container runs, or has run
	runs      bool
	restarted bool // the container has run before, and will run again

	// run identifies this run of the container; empty if it has not run.
	run string
}

// runOf returns what identifies the last run of a container.
func runOf(s *corev1.ContainerStatus) string {
	switch last := s.LastTerminationState.Terminated; {
	case s.State.Running != nil && s.ContainerID != "":
		return s.ContainerID
	case s.State.Terminated != nil && s.State.Terminated.ContainerID != "":
		return s.State.Terminated.ContainerID
	case s.State.Waiting != nil && last != nil && last.ContainerID != "":
		return last.ContainerID
	}
	return strconv.Itoa(int(s.RestartCount))
}

// containersOf returns the containers of a pod, init containers first.
func containersOf(pod *corev1.Pod) []container {
	var all []container
	status := map[string]corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			status[s.Name] = s
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			s := status[list[i].Name]
			waits := s.State.Waiting != nil && s.LastTerminationState.Terminated != nil
			all = append(all, container{pod: pod, name: list[i].Name, restarted: waits, run: runOf(&s), runs: s.State.Running != nil,
				begun: s.State.Running != nil || s.State.Terminated != nil || waits})
		}
	}
	return all
}

// printer writes whole lines of several containers.
type printer struct {
	mu     sync.Mutex
	out    io.Writer
	style  cli.Style
	prefix bool
	wrote  bool // whether anything was written
}

// line writes a line of a container.
func (p *printer) line(c *container, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote = true
	if p.prefix {
		text = p.style.Dim(prefixOf(c)) + " " + cli.Plain(text)
	} else {
		text = cli.Plain(text)
	}
	if _, err := fmt.Fprintln(p.out, text); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

// prefixOf returns the prefix of a container's lines if there are several containers.
func prefixOf(c *container) string {
	text := cli.Phase(c.pod.Labels[pavv1.WorkflowLabel]) + "/" + c.pod.Name
	if len(c.pod.Spec.Containers)+len(c.pod.Spec.InitContainers) > 1 {
		text += "/" + c.name
	}
	return text
}

// maxLine is the maximum number of bytes of a line that are kept in memory. A longer line is written in parts.
const maxLine = 64 << 10

// copyLog writes the log of a container until now.
func (p *printer) copyLog(ctx context.Context, kube kubernetes.Interface, c *container, o *options) error {
	get := &corev1.PodLogOptions{Container: c.name, Previous: c.restarted, Timestamps: o.timestamps}
	if o.tail >= 0 {
		get.TailLines = &o.tail
	}
	return read(ctx, kube, c, get, func(text []byte, _ bool) error { return p.line(c, string(text)) })
}

// read calls a function for each line of a container's log, without the line feed, and for each part of a line longer
// than maxLine; begins is true for the first part. It ends with the log, or with ctx, which is not an error.
func read(ctx context.Context, kube kubernetes.Interface, c *container, get *corev1.PodLogOptions, line func(text []byte, begins bool) error) error {
	stream, err := kube.CoreV1().Pods(c.pod.Namespace).GetLogs(c.pod.Name, get).Stream(ctx)
	if err != nil {
		return fmt.Errorf("the log of container %s of pod %s/%s: %w", c.name, c.pod.Namespace, c.pod.Name, err)
	}
	defer func() { _ = stream.Close() }()
	reader := bufio.NewReaderSize(stream, maxLine)
	begins := true
	for {
		text, err := reader.ReadSlice('\n')
		if len(text) > 0 {
			if err := line(bytes.TrimSuffix(text, []byte("\n")), begins); err != nil {
				return err
			}
		}
		begins = err == nil
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("the log of pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
		}
	}
}
