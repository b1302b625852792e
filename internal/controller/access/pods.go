package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// owner returns the owner of an access's slot.
func owner(record *pavv1.PavBucketAccess) attempt.Owner {
	return attempt.Owner{Name: record.Name, Provisioner: record.Spec.Provisioner, Namespace: record.Spec.Requester.Namespace}
}

// keys are what a pod of an access has for itself while it runs: all of its buckets.
func keys(buckets []*pavv1.PavBucket) []string {
	var keys []string
	for _, bucket := range buckets {
		if key := reconcile.StorageOfBucket(bucket); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// turnOf returns the owner of a turn. PavBuckets take turns with the same keys.
func turnOf(name string) string { return kind + "/" + name }

// OwnerOfTurn returns the name of the record that is an owner of turns, if it is of this kind.
func OwnerOfTurn(owner string) (name string, ok bool) { return strings.CutPrefix(owner, kind+"/") }

// leave lets others have slot and turn.
func (r *Reconciler) leave(name string) {
	r.slots.Release(name)
	r.Turns.Leave(turnOf(name))
}

// intend records a pod, which is built again when it is created.
func (r *Reconciler) intend(ctx context.Context, o observation, step pavv1.AccessStep, rendered map[string]any, change change) error {
	pod, err := r.build(o, workflows[step], rendered, podplan.AccessAttempt{}, o.record.Status.Pods+1)
	if err != nil {
		return r.refuse(ctx, o, workflows[step], change, err)
	}
	return r.runs.Intend(ctx, o.record, pod, func(record *pavv1.PavBucketAccess) {
		change(&record.Status)
		record.Status.Step = step
	})
}

// build returns a pod with its PodPolicy. Its name is unique among the pods of the access.
func (r *Reconciler) build(o observation, kind string, rendered map[string]any, about podplan.AccessAttempt, number int32) (*corev1.Pod, error) {
	placement := podplan.Placement{Avoid: r.slots.Avoid(o.record.Spec.Provisioner, r.Now())}
	return podplan.AccessPod(o.record, kind, rendered, about, placement, r.PodDefaults, number)
}

// requestOf returns the request that the current definition serves, about an account that is granted or revoked. The record must be as
// the API server has it.
func (r *Reconciler) requestOf(ctx context.Context, o observation, account pavv1.GrantedAccount, buckets []podplan.GrantedBucket) (podplan.AccessRequest, error) {
	definition, namespace, err := r.definition(ctx, o)
	if err != nil {
		return podplan.AccessRequest{}, err
	}
	request := podplan.AccessRequest{BucketDefinition: definition, Record: o.record, Account: account, Buckets: buckets, Namespace: namespace}
	if current := o.record.Status.Current; current != nil {
		request.PreviousAccountID = current.AccountID
	}
	return request, nil
}

// definition returns the current definition, and the Namespace of who asks for access; nil if it is gone.
func (r *Reconciler) definition(ctx context.Context, o observation) (podplan.BucketDefinition, map[string]any, error) {
	object, err := r.namespace(ctx, o.record.Spec.Requester.Namespace)
	if err != nil {
		return podplan.BucketDefinition{}, nil, err
	}
	return podplan.BucketDefinition{
		Provisioner: o.provisioner.UID, Generation: o.provisioner.Generation, Spec: &o.provisioner.Spec,
		Templates: r.Templates, GetPVC: reconcile.GetPVC(r.Live), Defaults: r.PodDefaults,
		Foreign: func(_ context.Context, name, namespace string, allowed bool) {
			r.tellLookup(o.record, name, namespace, allowed)
		},
	}, object, nil
}

// runPod creates the recorded pod when it has a slot and its turn with the buckets, or after an agent was killed before that.
func (r *Reconciler) runPod(ctx context.Context, o observation, d rule.Decision) error {
	if !r.slots.Acquire(owner(o.record)) {
		if d.Message == "" {
			return nil // its slot brings the next pass
		}
		return r.wait(ctx, o, d)
	}
	if !r.Turns.Take(turnOf(o.record.Name), keys(o.buckets)) {
		r.slots.Release(o.record.Name) // the end of the other pod brings the next pass
		return r.wait(ctx, o, rule.Waiting(o.condition(), "BucketBusy", "waiting until another pod has finished its work on the bucket", false))
	}
	pod, err := r.preparePod(ctx, o, d)
	if errors.Is(err, reconcile.ErrStale) {
		return err // the pod may exist
	}
	if err != nil || pod == nil {
		r.leave(o.record.Name) // other pods may be created meanwhile
		return err
	}
	return r.start(ctx, o, pod)
}

// preparePod builds the recorded pod again, with the grants that are to be in force now. It is nil if that is not to run any more, which is
// recorded.
func (r *Reconciler) preparePod(ctx context.Context, o observation, d rule.Decision) (*corev1.Pod, error) {
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return nil, err
	}
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return nil, err
	}
	status := &o.record.Status
	kind := workflows[status.Step]
	rendered, about, err := r.render(ctx, o)
	if err == nil && rendered == nil {
		if kind == pavv1.WorkflowRevocation {
			return nil, r.recordRevoked(ctx, o, rule.Decision{Step: d.Step})
		}
		err = refuse("%s: yields no pod any more", podplan.PodField(kind))
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = r.build(o, kind, rendered, about, status.Pods)
	}
	if err != nil {
		return nil, r.refuse(ctx, o, kind, nothing, err)
	}
	pod.Namespace = status.Pod.Namespace
	return pod, nil
}

// render evaluates the template of the recorded pod again. For a grant pod, it makes the key of the attempt.
func (r *Reconciler) render(ctx context.Context, o observation) (rendered map[string]any, about podplan.AccessAttempt, err error) {
	status := &o.record.Status
	if workflows[status.Step] == pavv1.WorkflowRevocation {
		account := o.revoking()
		if account != nil {
			about.Account = account.Number
		}
		rendered, err = r.planRevocation(ctx, o, r.live, account)
		return rendered, about, err
	}
	about.Account = status.Granting.Number
	request, err := r.grantRequest(ctx, o, r.live, status.Granting)
	if err != nil {
		return nil, about, err
	}
	plan, err := request.Grant(ctx)
	if err == nil && plan.Pod == nil {
		err = refuse("%s: yields no pod any more", podplan.GrantPod)
	}
	if err != nil {
		return nil, about, err
	}
	about.Seal, err = r.makeKey(ctx, o.record)
	return plan.Pod, about, err
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

// dropPod removes a pod from the record that was never created, and ends its attempt: there is no account to revoke.
func (r *Reconciler) dropPod(ctx context.Context, o observation, _ rule.Decision) error {
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, endAttempt)
}

// unjudgedDelay is how long a pod waits that the webhook could not check.
const unjudgedDelay = 2 * time.Second

// unjudged reports that a pod cannot be created until the webhook answers, and tries again soon.
func (r *Reconciler) unjudged(ctx context.Context, o observation, reason error) error {
	ctrl.LoggerFrom(ctx).Error(reason, "a pod waits for the webhook")
	pod := o.record.Status.Pod
	d := rule.Waiting(o.condition(), "PodNotAdmitted",
		fmt.Sprintf("pod %s/%s has rights on its node, and waits until PaV's webhook admits it; the webhook does not answer", pod.Namespace, pod.Name), true)
	if err := r.wait(ctx, o, d); err != nil {
		return err
	}
	return &reconcile.Later{After: unjudgedDelay}
}
