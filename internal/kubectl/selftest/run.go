package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/template"
)

// askTimeout limits requests whose answers only add an explanation.
const askTimeout = 10 * time.Second

// describeTimeout limits the description of what failed, which takes many requests and is what the user fixes the definition by.
const describeTimeout = time.Minute

// run is one test of a provisioner.
type run struct {
	options   *options
	input     *input
	name      string // of the copy, the StorageClass and the namespace
	agents    string // namespace of PaV's agents
	client    client.WithWatch
	templates *template.Evaluator
	troubles  *troubles
	progress  *progress
	report    *Report

	// describe writes everything that is known about a claim, for a step that failed.
	describe func(ctx context.Context, ref status.Ref) (string, error)

	// created are the objects that the test created and that do not belong to a volume, in the order of creation.
	created []client.Object

	// snapshots says that the test has created VolumeSnapshots.
	snapshots bool

	// buckets says that the test has claimed buckets.
	buckets bool
}

// subject is what a step is about: a volume or a bucket.
type subject interface {
	fmt.Stringer

	// ref names the claim, which is in a namespace.
	ref(namespace string) status.Ref
}

// outcome is the outcome of a step.
type outcome struct {
	result  Result
	message string
	details []string
}

func passed(format string, args ...any) (outcome, error) {
	return outcome{result: Passed, message: fmt.Sprintf(format, args...)}, nil
}

func warning(format string, args ...any) (outcome, error) {
	return outcome{result: Warning, message: fmt.Sprintf(format, args...)}, nil
}

func skipped(format string, args ...any) (outcome, error) {
	return outcome{result: Skipped, message: fmt.Sprintf(format, args...)}, nil
}

// step runs a step, reports it, and returns whether the next one may run. of is what the step is about; nil for nothing.
func (r *run) step(ctx context.Context, of subject, name string, do func(context.Context) (outcome, error)) bool {
	return r.stepWithin(ctx, r.options.Timeout, of, name, do)
}

// kubeletPatience is how long kubelet waits for a volume to be staged before it handles a pod's deletion.
const kubeletPatience = 2*time.Minute + 15*time.Second

// ending is step for steps that wait for pods to end.
func (r *run) ending(ctx context.Context, of subject, name string, do func(context.Context) (outcome, error)) bool {
	return r.stepWithin(ctx, r.options.Timeout+kubeletPatience, of, name, do)
}

func (r *run) stepWithin(ctx context.Context, limit time.Duration, of subject, name string, do func(context.Context) (outcome, error)) bool {
	if ctx.Err() != nil {
		return false
	}
	s := Step{Name: name}
	if of != nil {
		s.Volume = of.String()
	}
	r.progress.begin(s.Volume, name)
	began := time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %s", errTimeout, cli.Duration(limit)))
	defer cancel()
	found, err := do(bounded)
	s.Seconds = seconds(time.Since(began))
	if err != nil {
		found = r.explain(ctx, of, err)
	}
	s.Result, s.Message, s.Details = found.result, found.message, found.details
	r.report.Steps = append(r.report.Steps, s)
	r.progress.end(&s)
	return found.result != Failed
}

// explain returns the outcome of a step that failed.
func (r *run) explain(ctx context.Context, of subject, err error) outcome {
	if ctx.Err() != nil {
		return outcome{result: Failed, message: errInterrupted.Error()}
	}
	found := outcome{result: Failed, message: r.words(err)}
	var mine *podError
	if of == nil || r.describe == nil || errors.As(err, &mine) {
		return found // What the test's own pods found is not in PaV's records.
	}
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	text, err := r.describe(ctx, of.ref(r.name))
	if err != nil {
		found.details = []string{"it cannot be described: " + cli.Plain(err.Error())}
		return found
	}
	found.details = append([]string{""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	found.details = append(found.details, "")
	return found
}

// words returns an error in words. It leaves out the command that shows the log of a pod if the test removes the pod, and
// adds what a definition needs for pods with an fsGroup.
func (r *run) words(err error) string {
	text := cli.Plain(err.Error())
	if !r.options.Keep {
		text = status.Brief(text)
	}
	var mine *podError
	policy, _, _ := unstructured.NestedString(r.input.document.Object, "spec", "volumeStaging", "fsGroupPolicy")
	if r.options.FSGroup >= 0 && policy != "File" && errors.As(err, &mine) && strings.Contains(strings.ToLower(text), "permission denied") {
		text += "; for kubelet to give the files to the pod's fsGroup, set spec.volumeStaging.fsGroupPolicy: File"
	}
	return text
}

// test runs all steps and cleans up.
func (r *run) test(ctx context.Context) {
	began := time.Now()
	defer func() { r.report.Seconds = seconds(time.Since(began)) }()
	if r.step(ctx, nil, "lint", r.lint) {
		r.tryAll(ctx)
		r.cleanUp(ctx)
	}
	r.report.Passed = r.report.count(Failed) == 0 && len(r.report.Left) == 0 && ctx.Err() == nil
}

// tryAll installs the provisioner and tests its volumes and buckets.
func (r *run) tryAll(ctx context.Context) {
	var volumes []volume
	planned := !r.input.hasVolumes() || r.step(ctx, nil, "choose volumes", func(ctx context.Context) (outcome, error) {
		var err error
		if volumes, err = r.volumes(ctx); err != nil {
			return outcome{}, err
		}
		texts := make([]string, len(volumes))
		for i, v := range volumes {
			texts[i] = v.String()
		}
		return passed("%s", strings.Join(texts, "; "))
	})
	if !planned || !r.step(ctx, nil, "install a copy", r.install) {
		return
	}
	for _, v := range volumes {
		s := &scenario{run: r, volume: v}
		s.try(ctx)
	}
	r.tryBuckets(ctx)
}

// when returns the time of an event's last occurrence.
func when(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
