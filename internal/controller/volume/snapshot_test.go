package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestStateOf(t *testing.T) {
	now := metav1.Now()
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}
		change(c)
		return c
	}
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  claimState
	}{
		"no claim":             {want: claimGone},
		"another of the name":  {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "u2" }), want: claimGone},
		"one under deletion":   {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }), want: claimGone},
		"one bound elsewhere":  {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-x" }), want: claimElsewhere},
		"one bound to this":    {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-u1" }), want: claimBound},
		"one that lost this":   {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), want: claimBound},
		"one that still waits": {claim: claim(func(*corev1.PersistentVolumeClaim) {}), want: claimWaits},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(test.claim, fresh().o.volume); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestLateWords(t *testing.T) {
	const failed = corev1.PodFailed
	says := func(text string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: text} }
	}
	// after is a volume whose pod has failed, which is on record as that pod said before changes to it.
	after := func(step pavv1.VolumeStep, before []func(*corev1.Pod), changes ...func(*corev1.Pod)) *state {
		s := at(step).pod(9, append([]func(*corev1.Pod){ended(failed, 6)}, before...)...)
		pod := &s.o.pods[0]
		failure := failureOf(workflows[step], pod, podErrorMessage(pod))
		failure.Time = ago(1)
		if step == pavv1.StepReverting {
			s.o.volume.Status.DeletionFailure = failure
		} else {
			s.o.volume.Status.Failure = failure
		}
		s.o.volume.Status.Pod = nil
		for _, change := range changes {
			change(pod)
		}
		return s
	}
	full := says(`{"error": "no room"}`)
	tests := map[string]struct {
		state *state
		want  string // of the message, or empty where nothing is new
	}{
		"nothing has failed":              {state: at(pavv1.StepCreating).pod(9, runs)},
		"nothing was told":                {state: after(pavv1.StepCreating, nil)},
		"words of a creation pod":         {state: after(pavv1.StepCreating, nil, full), want: "exit code 3: no room; see"},
		"words of a validation pod":       {state: after(pavv1.StepValidating, nil, full), want: "exit code 3: no room; see"},
		"words of a deletion pod":         {state: after(pavv1.StepReverting, nil, full), want: "exit code 3: no room; see"},
		"words that were in time":         {state: after(pavv1.StepCreating, []func(*corev1.Pod){full}, full)},
		"no words at last":                {state: after(pavv1.StepCreating, nil, told)},
		"what is no result":               {state: after(pavv1.StepCreating, nil, says("no JSON"))},
		"as many words as there may be":   {state: after(pavv1.StepCreating, nil, says(`{"error": "`+strings.Repeat("x", 9000)+`"}`)), want: "xxx"},
		"another pod":                     {state: after(pavv1.StepCreating, nil, full, func(pod *corev1.Pod) { pod.Name = "next" })},
		"a pod that succeeded":            {state: after(pavv1.StepCreating, nil, full, ended(corev1.PodSucceeded, 6))},
		"a failure that is not the pod's": {state: after(pavv1.StepCreating, nil, full).with(func(o *snapshot) { o.volume.Status.Failure.Message = "/pav/handle is empty" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.state.o.lateMessage()
			if got == nil {
				if test.want != "" || decide(test.state.o).step == stepRecordLateMessage {
					t.Errorf("got nothing, want %q", test.want)
				}
				return
			}
			if test.want == "" || !strings.Contains(got.Message, test.want) || !got.Time.Equal(new(ago(1))) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
			if next := decide(test.state.o).step; next != stepRecordLateMessage {
				t.Errorf("got step %s", next)
			}
			// Once recorded, they are no news.
			if status := &test.state.o.volume.Status; status.Failure != nil {
				status.Failure = got
			} else {
				status.DeletionFailure = got
			}
			if again := test.state.o.lateMessage(); again != nil {
				t.Errorf("recorded, they are late again: %+v", again)
			}
		})
	}
}
