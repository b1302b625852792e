package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// owner returns the owner of a bucket's slot.
func owner(record *pavv1.PavBucket) attempt.Owner {
	return attempt.Owner{Name: record.Name, Provisioner: record.Spec.Provisioner, Namespace: record.Spec.ClaimRef.Namespace}
}

// keys are what a pod of a bucket has for itself while it runs. Validation pods change nothing.
func keys(record *pavv1.PavBucket) []string {
	if record.Status.Step == pavv1.BucketValidating {
		return nil
	}
	return []string{reconcile.StorageOfBucket(record)}
}

// intend records a pod.
func (r *Reconciler) intend(ctx context.Context, o observation, step pavv1.BucketStep, rendered map[string]any, change change) error {
	pod, err := r.build(o, workflows[step], rendered, o.record.Status.Pods+1)
	if err != nil {
		return r.refuse(ctx, o, workflows[step], change, err)
	}
	return r.runs.Intend(ctx, o.record, pod, func(record *pavv1.PavBucket) {
		change(&record.Status)
		record.Status.Step = step
	})
}

// build returns a pod with its PodPolicy. Its name is unique among the pods of the bucket.
func (r *Reconciler) build(o observation, kind string, rendered map[string]any, number int32) (*corev1.Pod, error) {
	placement := podplan.Placement{Avoid: r.slots.Avoid(o.record.Spec.Provisioner, r.Now())}
	return podplan.BucketPod(o.record, kind, rendered, placement, r.PodDefaults, number)
}

// requestOf returns the request that the current definition serves. The record must be as the API server has it.
func (r *Reconciler) requestOf(ctx context.Context, o observation) (podplan.BucketRequest, error) {
	namespace := &corev1.Namespace{}
	var object map[string]any
	err := r.Live.Get(ctx, client.ObjectKey{Name: o.record.Spec.ClaimRef.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return podplan.BucketRequest{}, fmt.Errorf("reading namespace %q: %w", o.record.Spec.ClaimRef.Namespace, err)
	}
	if err == nil {
		if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(namespace); err != nil {
			return podplan.BucketRequest{}, fmt.Errorf("decoding namespace %q: %w", namespace.Name, err)
		}
	}
	return podplan.BucketRequest{
		BucketDefinition: podplan.BucketDefinition{
			Provisioner: o.provisioner.UID, Generation: o.provisioner.Generation, Spec: &o.provisioner.Spec,
			Templates: r.Templates, GetPVC: reconcile.GetPVC(r.Live), Defaults: r.PodDefaults,
			Foreign: func(_ context.Context, name, namespace string, allowed bool) {
				r.tellLookup(o.record, name, namespace, allowed)
			},
		},
		Record: o.record, Namespace: object,
	}, nil
}

// runPod creates the recorded pod when it has a slot and its turn with the bucket, or after an agent was killed before that.
func (r *Reconciler) runPod(ctx context.Context, o observation, d rule.Decision) error {
	if !r.slots.Acquire(owner(o.record)) {
		if d.Message == "" {
			return nil // its slot brings the next pass
		}
		return r.wait(ctx, o, d)
	}
	if !r.Turns.Take(turnOf(o.record.Name), keys(o.record)) {
		r.slots.Release(o.record.Name) // the end of the other pod brings the next pass
		return r.wait(ctx, o, rule.Waiting(conditionOf(workflows[o.record.Status.Step]), "BucketBusy", "waiting until another pod has finished its work on the bucket", false))
	}
	pod, err := r.preparePod(ctx, o, d)
	if errors.Is(err, reconcile.ErrStale) {
		return err // the pod may exist
	}
	if err != nil || pod == nil {
		r.release(o.record.Name) // other pods may be created meanwhile
		return err
	}
	return r.start(ctx, o, pod)
}

// turnOf returns the owner of a turn. PavBucketAccesses take turns with the same keys.
func turnOf(name string) string { return kind + "/" + name }

// OwnerOfTurn returns the name of the record that is an owner of turns, if it is of this kind.
func OwnerOfTurn(owner string) (name string, ok bool) { return strings.CutPrefix(owner, kind+"/") }

// release releases slot and turn.
func (r *Reconciler) release(name string) {
	r.slots.Release(name)
	r.Turns.Leave(turnOf(name))
}

// preparePod builds the recorded pod again. It is nil if that is not to run any more, which is recorded.
func (r *Reconciler) preparePod(ctx context.Context, o observation, d rule.Decision) (*corev1.Pod, error) {
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return nil, err
	}
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return nil, err
	}
	status := &o.record.Status
	step, kind := status.Step, workflows[status.Step]
	if kind != pavv1.WorkflowBucketDeletion && configuration(o.record) != status.Configuring {
		return nil, r.dropPod(ctx, o, d) // what is validated is what is created
	}
	rendered, err := r.render(ctx, o)
	if err == nil && rendered == nil {
		if kind == pavv1.WorkflowBucketDeletion {
			return nil, r.finish(ctx, o)
		}
		err = refuse("%s: yields no pod any more", podplan.PodField(kind))
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = r.build(o, workflows[step], rendered, status.Pods)
	}
	if err != nil {
		return nil, r.refuse(ctx, o, kind, nothing, err)
	}
	pod.Namespace = status.Pod.Namespace
	return pod, nil
}

// render evaluates the template of the recorded pod again.
func (r *Reconciler) render(ctx context.Context, o observation) (map[string]any, error) {
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return nil, err
	}
	switch workflows[o.record.Status.Step] {
	case pavv1.WorkflowBucketValidation:
		valid, err := request.Validate(ctx)
		if err != nil {
			return nil, err
		}
		return valid.Pod, nil
	case pavv1.WorkflowBucketCreation:
		plan, err := request.Create(ctx)
		if err == nil && plan.BucketID != o.record.Status.PlannedBucketID {
			err = refuse("spec.bucketCreation.bucketId: is %q now, and was %q when the attempt began", plan.BucketID, o.record.Status.PlannedBucketID)
		}
		if err != nil {
			return nil, err
		}
		return plan.Pod, nil
	case pavv1.WorkflowBucketUpdate:
		return request.Update(ctx)
	default:
		return request.Delete(ctx)
	}
}

// start creates a recorded pod that has a slot, and records its UID.
func (r *Reconciler) start(ctx context.Context, o observation, pod *corev1.Pod) error {
	generation := int64(0)
	if o.provisioner != nil {
		generation = o.provisioner.Generation
	}
	err := r.runs.Create(ctx, o.record, pod, generation, nil)
	switch {
	case errors.Is(err, workflow.ErrUnjudged):
		return r.unjudged(ctx, o, err)
	case podplan.IsRefusal(err):
		return r.refuse(ctx, o, workflows[o.record.Status.Step], nothing, err)
	default:
		return err
	}
}

// recordPod records the UID of the pod.
func (r *Reconciler) recordPod(ctx context.Context, o observation, _ rule.Decision) error {
	return r.runs.Created(ctx, o.record, o.pod(), 0)
}

// stopPod deletes the recorded pod.
func (r *Reconciler) stopPod(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.Runner.StopAsSeen(ctx, o.pod()); err != nil {
		return err
	}
	if d.Message != "" {
		r.announce(o, d)
	}
	return nil
}

// dropPod removes a pod from the record that was never created, and ends its attempt.
func (r *Reconciler) dropPod(ctx context.Context, o observation, _ rule.Decision) error {
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		status.Step, status.Pod, status.PlannedBucketID = "", nil, ""
	})
}

// unjudgedDelay is how long a pod waits that the webhook could not check.
const unjudgedDelay = 2 * time.Second

// unjudged reports that a pod cannot be created until the webhook answers, and tries again soon.
func (r *Reconciler) unjudged(ctx context.Context, o observation, reason error) error {
	ctrl.LoggerFrom(ctx).Error(reason, "a pod waits for the webhook")
	pod := o.record.Status.Pod
	d := rule.Waiting(conditionOf(workflows[o.record.Status.Step]), "PodNotAdmitted",
		fmt.Sprintf("pod %s/%s has rights on its node, and waits until PaV's webhook admits it; the webhook does not answer", pod.Namespace, pod.Name), true)
	if err := r.wait(ctx, o, d); err != nil {
		return err
	}
	return &reconcile.Later{After: unjudgedDelay}
}
