package podrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// Record is a record whose pods run one after the other.
type Record[R any] interface {
	ledger.Record
	DeepCopy() R
	DeepCopyInto(R)

	// Work returns where the status has its pods.
	Work() pavv1.Work
}

// Purpose is what the recorded pod of a record is for.
type Purpose struct {
	// Workflow is that of the pod. Condition is the condition that reports it.
	Workflow, Condition string

	// Step is the reason of the condition while the pod runs, and Doing says the same in words: "is creating the snapshot".
	Step, Doing string
}

// Pods runs the pods of the records of one kind. It is safe for concurrent use.
type Pods[R Record[R]] struct {
	// Client reads from the cache and writes; Live reads from the API server, as Runner does.
	Client client.Client
	Live   client.Reader
	Runner *workflow.Runner

	// Slots limit how many pods run at once.
	Slots *attempt.Slots

	// Patch writes a changed status, unless the record was written by another process meanwhile. After that, the record is the object that
	// was written. The error is a conflict then, or reconcile.ErrStale if the record is gone.
	Patch func(ctx context.Context, record R, change func(R)) error

	// Now returns the time of the cluster.
	Now func() time.Time

	// Index is the index of pods by the name of the record that controls them.
	Index string

	// Empty returns an empty record.
	Empty func() R

	// Owner returns the owner of the slot of a record.
	Owner func(R) attempt.Owner

	// Purpose returns what the recorded pod of a record is for.
	Purpose func(R) Purpose

	// Unsettled reports whether the record has yet to say what a pod may have made that is not the recorded one; gone says that the node of
	// the pod does not exist any more. Such a pod is stopped, and not let go. Nil where no pod makes anything that could be lost.
	Unsettled func(record R, pod *corev1.Pod, gone bool) bool

	// Lost is told of a pod that may have made something, that is over, and whose record does not exist any more, before the pod goes.
	// Nil where no pod makes anything that could be lost.
	Lost func(ctx context.Context, pod *corev1.Pod) error

	mu      sync.Mutex
	adopted bool
}

// Found is what Kubernetes has of the pods of a record.
type Found struct {
	// Pods are all pods of the record, and Orphans those of an earlier record of its name.
	Pods, Orphans []corev1.Pod

	// NodeGone says that the node of the recorded pod does not exist any more, so that nobody reports the files of the pod.
	NodeGone bool

	// GoneNodes are the names of the nodes of all pods that do not exist any more.
	GoneNodes []string
}

// IsNodeGone reports whether the node of a pod of the record does not exist any more.
func (f Found) IsNodeGone(pod *corev1.Pod) bool {
	return slices.Contains(f.GoneNodes, pod.Spec.NodeName)
}

// Find looks up the pods of a record. The error is reconcile.ErrStale if the cache shows a record that is older than its pods, or a pod
// that is recorded later than the cache has it.
func (p *Pods[R]) Find(ctx context.Context, record R) (Found, error) {
	found := Found{}
	all, err := p.list(ctx, record.GetName())
	if err != nil {
		return found, err
	}
	work := record.Work()
	for i := range all {
		switch {
		case !metav1.IsControlledBy(&all[i], record):
			found.Orphans = append(found.Orphans, all[i])
		case workflow.Attempt(&all[i]) > *work.Pods:
			return found, reconcile.ErrStale
		default:
			found.Pods = append(found.Pods, all[i])
		}
	}
	recorded := attempt.Attempt{Ref: *work.Pod, Pods: found.Pods}
	if recorded.Progress() == attempt.Vanished {
		if err := attempt.CheckAbsent(ctx, p.Runner, recorded.Ref, record.GetUID()); err != nil {
			return found, err
		}
	}
	for i := range found.Pods {
		if found.GoneNodes, err = p.addIfGone(ctx, found.GoneNodes, found.Pods[i].Spec.NodeName); err != nil {
			return found, err
		}
	}
	found.NodeGone = recorded.Pod() != nil && found.IsNodeGone(recorded.Pod())
	return found, nil
}

// addIfGone adds the name of a node if the node does not exist any more.
func (p *Pods[R]) addIfGone(ctx context.Context, gone []string, name string) ([]string, error) {
	if name == "" || slices.Contains(gone, name) {
		return gone, nil
	}
	node, err := reconcile.Optional(ctx, p.Client, client.ObjectKey{Name: name}, &corev1.Node{})
	if err == nil && reconcile.IsNodeGone(node) {
		gone = append(gone, name)
	}
	return gone, err
}

// list returns all pods that a record of the name controls.
func (p *Pods[R]) list(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := p.Client.List(ctx, pods, client.MatchingFields{p.Index: name}); err != nil {
		return nil, fmt.Errorf("looking up pods: %w", err)
	}
	return pods.Items, nil
}

// Intend records a pod, as the next of the record. Change is written with it.
func (p *Pods[R]) Intend(ctx context.Context, record R, pod *corev1.Pod, change func(R)) error {
	return p.Patch(ctx, record, func(record R) {
		work := record.Work()
		*work.Pods++
		*work.Pod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, Due: new(metav1.NewTime(p.Now()))}
		change(record)
		p.report(record, attempt.ReasonQueued, fmt.Sprintf("pod %s/%s is created as soon as it has a slot", pod.Namespace, pod.Name))
	})
}

func (p *Pods[R]) report(record R, reason, message string) {
	meta.SetStatusCondition(record.StatusConditions(), ledger.False(record.GetGeneration(), p.Purpose(record).Condition, reason, message))
}

// Create creates the recorded pod, which must have a slot, and records its UID and the generation of its definition. Last, if it is not
// nil, is asked just before, and prevents it with an error. Else the error is
// workflow.ErrUnjudged if the webhook does not answer, a *podplan.Error if the API server refuses the pod, and reconcile.ErrStale if the
// pod is not recorded any more: then it is stopped.
func (p *Pods[R]) Create(ctx context.Context, record R, pod *corev1.Pod, generation int64, last func(context.Context) error) error {
	err := p.Runner.CheckNamespace(ctx, pod.Namespace)
	if err == nil && last != nil {
		err = last(ctx)
	}
	if err == nil {
		err = p.Runner.Create(ctx, pod)
	}
	if errors.Is(err, workflow.ErrRefused) || errors.Is(err, workflow.ErrForeign) {
		return &podplan.Error{Err: err}
	}
	if err != nil {
		return err
	}
	err = p.Created(ctx, record, pod, generation)
	if apierrors.IsConflict(err) || errors.Is(err, reconcile.ErrStale) {
		return p.withdraw(ctx, record, pod)
	}
	return err
}

// Created records the UID of the recorded pod, which exists. Generation is that of its definition; 0 if it is not known.
func (p *Pods[R]) Created(ctx context.Context, record R, pod *corev1.Pod, generation int64) error {
	return p.Patch(ctx, record, func(record R) {
		work := record.Work()
		(*work.Pod).UID = pod.UID
		if generation > 0 {
			*work.Generation = generation
		}
		purpose := p.Purpose(record)
		p.report(record, purpose.Step, attempt.Attempt{Ref: *work.Pod, Doing: purpose.Doing}.Describe())
	})
}

// withdraw stops a pod that was just created if it is not recorded any more: another leader has removed it from the record before it
// was created.
func (p *Pods[R]) withdraw(ctx context.Context, record R, pod *corev1.Pod) error {
	live := p.Empty()
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(record), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %q, the owner of a pod: %w", record.GetName(), err)
	}
	if err != nil || live.GetUID() != record.GetUID() || !Names(live, pod) {
		if err := p.Runner.Stop(ctx, pod); err != nil {
			return err
		}
	}
	return reconcile.ErrStale
}

// Names reports whether a record has a pod, or the failure of one.
func Names[R Record[R]](record R, pod *corev1.Pod) bool {
	is := func(namespace, name string) bool { return namespace == pod.Namespace && name == pod.Name }
	ref := *record.Work().Pod
	return ref != nil && is(ref.Namespace, ref.Name) ||
		slices.ContainsFunc(record.Work().Failures, func(f *pavv1.WorkflowFailure) bool { return is(f.PodNamespace, f.PodName) })
}

// CheckNotCreated asks the API server whether a pod that is recorded, and not known to be created, was created after all. If it was, the
// error is reconcile.ErrStale.
func (p *Pods[R]) CheckNotCreated(ctx context.Context, record R, pods []corev1.Pod) error {
	ref := *record.Work().Pod
	if (attempt.Attempt{Ref: ref, Pods: pods}).Progress() != attempt.Intended {
		return nil
	}
	return attempt.CheckAbsent(ctx, p.Runner, ref, record.GetUID())
}

// MayHavePod asks the API server whether the recorded pod of a record was created, unless that is recorded.
func (p *Pods[R]) MayHavePod(ctx context.Context, record R) (bool, error) {
	ref := *record.Work().Pod
	if ref == nil || ref.UID != "" {
		return ref != nil, nil
	}
	err := attempt.CheckAbsent(ctx, p.Runner, ref, record.GetUID())
	if errors.Is(err, reconcile.ErrStale) {
		return true, nil
	}
	return false, err
}

// Sweep lets the pods go whose outcome is recorded, and deletes all but those that people may want to look at.
func (p *Pods[R]) Sweep(ctx context.Context, record R, found Found) error {
	ref := *record.Work().Pod
	current := attempt.Attempt{Ref: ref, Pods: found.Pods}.Pod()
	for i := range found.Pods {
		pod := &found.Pods[i]
		if pod == current {
			continue
		}
		if p.Unsettled != nil && p.Unsettled(record, pod, found.IsNodeGone(pod)) {
			if err := p.stop(ctx, pod); err != nil {
				return err
			}
			continue
		}
		kind := pod.Labels[pavv1.WorkflowLabel]
		var failure *pavv1.WorkflowFailure
		for _, f := range record.Work().Failures {
			if f.Workflow == kind {
				failure = f
			}
		}
		replaced := failure != nil && ref != nil && p.Purpose(record).Workflow == failure.Workflow
		// A pod may fail while it runs: it has created /pav/ready, and what it tells is invalid.
		keep := attempt.IsKept(pod, failure, replaced) && workflow.Judge(pod).IsOver()
		if err := attempt.Release(ctx, p.Runner, pod, keep); err != nil {
			return err
		}
	}
	return p.releaseOrphans(ctx, record.GetName(), found.Orphans)
}

// stop stops a pod that has not ended.
func (p *Pods[R]) stop(ctx context.Context, pod *corev1.Pod) error {
	if workflow.Judge(pod).IsOver() {
		return nil
	}
	return p.Runner.Stop(ctx, pod)
}

// releaseOrphans lets the pods of a record go that does not exist any more.
func (p *Pods[R]) releaseOrphans(ctx context.Context, name string, pods []corev1.Pod) error {
	if err := p.tellLost(ctx, name, pods); err != nil {
		return err
	}
	return attempt.ReleaseOrphans(ctx, p.Live, p.Runner, p.Empty(), name, pods)
}

// tellLost tells of the pods of a record that does not exist any more, which are about to go, and may have made something that nobody has
// recorded: they have their finalizer. If the API server has the record of one of them, the error is reconcile.ErrStale.
func (p *Pods[R]) tellLost(ctx context.Context, name string, pods []corev1.Pod) error {
	if p.Lost == nil {
		return nil
	}
	for i := range pods {
		pod := &pods[i]
		if !controllerutil.ContainsFinalizer(pod, pavv1.PodFinalizer) || !workflow.Observe(pod).IsOver() {
			continue
		}
		gone, err := p.addIfGone(ctx, nil, pod.Spec.NodeName)
		if err != nil {
			return err
		}
		if attempt.CertainlyNeverRan(pod, len(gone) > 0) || attempt.IsInfeasible(pod) {
			continue
		}
		live := p.Empty()
		if err := p.Live.Get(ctx, client.ObjectKey{Name: name}, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %q, the owner of a pod: %w", name, err)
		}
		if metav1.IsControlledBy(pod, live) {
			return reconcile.ErrStale
		}
		if err := p.Lost(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// CheckSeen asks the API server for all pods of a workflow of a record. If there is one that is not among the given ones, which are those
// of the cache, the error is reconcile.ErrStale. It is asked before the record goes: a former leader may have created a pod that was
// removed from the record.
func (p *Pods[R]) CheckSeen(ctx context.Context, record R, pods []corev1.Pod, kind string) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	labels := client.MatchingLabels{pavv1.WorkflowLabel: kind, pavv1.ProvisionerLabel: p.Owner(record).Provisioner}
	if err := p.Live.List(ctx, all, labels); err != nil {
		return fmt.Errorf("listing the pods of %q: %w", record.GetName(), err)
	}
	for i := range all.Items {
		pod := &all.Items[i]
		if metav1.IsControlledBy(pod, record) && !slices.ContainsFunc(pods, func(seen corev1.Pod) bool { return seen.UID == pod.UID }) {
			return reconcile.ErrStale
		}
	}
	return nil
}

// Forget clears up after a record that does not exist any more.
func (p *Pods[R]) Forget(ctx context.Context, name string) error {
	p.Slots.Release(name)
	pods, err := p.list(ctx, name)
	if err != nil {
		return err
	}
	return p.releaseOrphans(ctx, name, pods)
}

// Adopt tells the queue, once, of all pods that an earlier agent has started. All returns all records.
func (p *Pods[R]) Adopt(all func() ([]R, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adopted {
		return nil
	}
	records, err := all()
	if err != nil {
		return err
	}
	for _, record := range records {
		if ref := *record.Work().Pod; ref != nil && ref.UID != "" {
			p.Slots.Restore(p.Owner(record))
		}
	}
	p.adopted = true
	return nil
}
