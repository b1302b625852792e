package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// newReceiver returns a receiver whose events a watcher without a cluster passes on.
func newReceiver() *receiver {
	return &receiver{watcher: &watcher{followers: map[int]func(event){}}, known: map[string]client.Object{}, listed: make(chan struct{})}
}

func podNamed(name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Phase: phase}}
}

func add(t *testing.T, r *receiver, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := r.Add(object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestObserveTakesTheFirstEventThatMeetsEachCondition(t *testing.T) {
	r := newReceiver()
	one, other := podNamed("one", corev1.PodRunning), podNamed("other", corev1.PodRunning)
	took, err := r.watcher.observe(t.Context(), func() error {
		add(t, r, podNamed("one", corev1.PodPending), one)
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // Time is what is measured.
		add(t, r, one, other)
		return nil
	}, running(one), running(other))
	if err != nil {
		t.Fatal(err)
	}
	if took[0] >= 20*time.Millisecond || took[1] < 20*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if len(r.watcher.followers) > 0 {
		t.Error("the watcher still follows")
	}
}

func TestObserveSaysWhatWasNotSeen(t *testing.T) {
	r := newReceiver()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.watcher.observe(ctx, func() error {
		add(t, r, podNamed("one", corev1.PodRunning))
		cancel()
		return nil
	}, running(podNamed("one", "")), running(podNamed("other", "")))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "pav-bench/other") || strings.Contains(err.Error(), "pav-bench/one") {
		t.Errorf("got %v", err)
	}
	if len(r.watcher.followers) > 0 {
		t.Error("the watcher still follows")
	}
}

func TestWhatAFailedWatchHasMissedIsDeleted(t *testing.T) {
	r := newReceiver()
	one, other := podNamed("one", corev1.PodRunning), podNamed("other", corev1.PodRunning)
	add(t, r, one, other)
	_, err := r.watcher.observe(t.Context(), func() error { return r.Replace([]any{other}, "7") }, gone(one))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.listed:
	default:
		t.Error("the receiver does not say that it has a list")
	}
}

func TestAPodOfAWorkflowHasEndedWhenItsLastContainerHas(t *testing.T) {
	ended, runs := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, corev1.ContainerStatus{}
	pod := func(provisioner, workflow string, containers ...corev1.ContainerStatus) event {
		labels := map[string]string{pavv1.ProvisionerLabel: provisioner, pavv1.WorkflowLabel: workflow}
		return event{object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: corev1.PodStatus{ContainerStatuses: containers}}}
	}
	grant := ofWorkflow("p", pavv1.WorkflowGrant)
	for name, test := range map[string]struct {
		event        event
		exists, ends bool
	}{
		"it is new":                    {event: pod("p", pavv1.WorkflowGrant), exists: true},
		"one of its containers runs":   {event: pod("p", pavv1.WorkflowGrant, ended, runs), exists: true},
		"its containers have ended":    {event: pod("p", pavv1.WorkflowGrant, ended, ended), exists: true, ends: true},
		"it is for another workflow":   {event: pod("p", pavv1.WorkflowRevocation, ended)},
		"it is another provisioner's":  {event: pod("q", pavv1.WorkflowGrant, ended)},
		"it is a claim and not a pod":  {event: event{object: &corev1.PersistentVolumeClaim{}}},
		"it is deleted, and had ended": {event: event{object: pod("p", pavv1.WorkflowGrant, ended).object, deleted: true}, ends: true},
	} {
		if got := exists(grant).met(test.event); got != test.exists {
			t.Errorf("%s: it exists: %t", name, got)
		}
		if got := containersEnded(grant).met(test.event); got != test.ends {
			t.Errorf("%s: it has ended: %t", name, got)
		}
	}
}

func TestABucketIsBoundWhenTheClaimSaysSo(t *testing.T) {
	claim := func(name string, phase obcv1.ClaimPhase) *obcv1.ObjectBucketClaim {
		return &obcv1.ObjectBucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: obcv1.ObjectBucketClaimStatus{Phase: phase}}
	}
	condition := bucketBound(claim("one", ""))
	for seen, want := range map[*obcv1.ObjectBucketClaim]bool{
		claim("one", obcv1.ClaimBound): true, claim("one", obcv1.ClaimPending): false, claim("other", obcv1.ClaimBound): false,
	} {
		if got := condition.met(event{object: seen}); got != want {
			t.Errorf("%s %s: %t", seen.Name, seen.Status.Phase, got)
		}
	}
}

func TestClaimsAreBoundWhenTheLastIs(t *testing.T) {
	claims := (&world{}).claims(3, "class")
	condition := bound(claims...)
	for i, claim := range []*corev1.PersistentVolumeClaim{claims[2], claims[0], claims[0], claims[1]} {
		claim.Status.Phase = corev1.ClaimBound
		if got, want := condition.met(event{object: claim}), i == 3; got != want {
			t.Errorf("after %d: %v", i, got)
		}
	}
}
