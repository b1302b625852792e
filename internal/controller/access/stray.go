package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// A pod is stray if a former leader, which stalled meanwhile, creates it after the present one has removed it from the record. What it does
// must not be lost.

// accountOf returns the account that a pod is about; false if the pod does not say which one it is.
func accountOf(requester types.UID, pod *corev1.Pod) (pavv1.GrantedAccount, bool) {
	number, err := strconv.ParseInt(pod.Annotations[pavv1.AccountAnnotation], 10, 32)
	if err != nil || number < 0 {
		return pavv1.GrantedAccount{}, false
	}
	return pavv1.GrantedAccount{Number: int32(number), AccountName: accountName(requester, int32(number))}, true
}

// formerOf returns the former account that a pod is about, or nil.
func formerOf(record *pavv1.PavBucketAccess, pod *corev1.Pod) *pavv1.GrantedAccount {
	account, told := accountOf(record.Spec.Requester.UID, pod)
	i := slices.IndexFunc(record.Status.Former, func(a pavv1.GrantedAccount) bool { return told && a.Number == account.Number })
	if i < 0 {
		return nil
	}
	return &record.Status.Former[i]
}

// isStray reports whether a pod may have made an account that the record does not have. Its finalizer says that nobody has recorded its
// outcome, unless that was a moment ago; gone says that its node does not exist any more. A revocation pod has written policies that may
// lack accounts which were granted meanwhile: the account is recorded as well, so that another revocation writes them once more. That is
// seen only while the pod runs.
func isStray(record *pavv1.PavBucketAccess, pod *corev1.Pod, gone bool) bool {
	if !controllerutil.ContainsFinalizer(pod, pavv1.PodFinalizer) || podrun.Names(record, pod) {
		return false
	}
	over := workflow.Judge(pod).IsOver()
	switch pod.Labels[pavv1.WorkflowLabel] {
	case pavv1.WorkflowGrant:
		if over && (attempt.CertainlyNeverRan(pod, gone) || attempt.IsInfeasible(pod)) {
			return false
		}
	case pavv1.WorkflowRevocation:
		if over {
			return false
		}
	default:
		return false
	}
	account, told := accountOf(record.Spec.Requester.UID, pod)
	return told && !slices.ContainsFunc(accountsOf(record), func(a pavv1.GrantedAccount) bool { return a.Number == account.Number })
}

// strays returns the stray pods of the access.
func (o observation) strays() []*corev1.Pod {
	var strays []*corev1.Pod
	for i := range o.Pods {
		if pod := &o.Pods[i]; isStray(o.record, pod, o.IsNodeGone(pod)) {
			strays = append(strays, pod)
		}
	}
	return strays
}

// settling returns a stray pod whose account can be recorded, or nil: a grant pod tells its account at its end.
func (o observation) settling() *corev1.Pod {
	for _, pod := range o.strays() {
		if pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowRevocation || workflow.Judge(pod).IsOver() && !o.awaitsReportOf(pod, o.IsNodeGone(pod)) {
			return pod
		}
	}
	return nil
}

// reportingStray returns a stray pod that is over and whose node has yet to report its files, or nil.
func (o observation) reportingStray() *corev1.Pod {
	for _, pod := range o.strays() {
		if workflow.Judge(pod).IsOver() {
			return pod
		}
	}
	return nil
}

// runsUnrecorded reports whether a pod runs that is not the recorded one.
func (o observation) runsUnrecorded() bool { return o.unrecordedPod() != nil }

// whileStray returns the decision about an access whose pods may be stray: no attempt begins, and the record does not go, before all other
// pods have ended, and before it is known what they have made.
func whileStray(o observation, d rule.Decision) rule.Decision {
	running, reporting := o.unrecordedPod(), o.reportingStray()
	switch {
	case running != nil && afterAllPods(d.Step):
		d = waitForUnrecorded(o, running)
		d.Rule = "a pod that is not recorded has not ended"
	case reporting != nil && afterAllPods(d.Step):
		d = rule.OfPod(attempt.DecideReporting(o.now, reporting), conditionOf(reporting.Labels[pavv1.WorkflowLabel]))
		d.Rule = "the result of a pod that is not recorded is not reported"
	}
	if reporting != nil && (d.After == 0 || d.After > attempt.ResultDelay) {
		d.After = attempt.ResultDelay
	}
	return d
}

// settle records that the account of a stray pod is to be revoked now.
func (r *Reconciler) settle(ctx context.Context, o observation, _ rule.Decision) error {
	pod := o.settling()
	account, _ := accountOf(o.record.Spec.Requester.UID, pod)
	r.accounts.Lock()
	defer r.accounts.Unlock()
	if id := toldBy(pod); id != "" {
		err := r.checkAccount(ctx, o.record, &account, id)
		if err != nil && !podplan.IsRefusal(err) {
			return err
		}
		if err == nil {
			account.AccountID = id // else it is another access's
		}
	}
	// The former leader made a key for the pod. Nobody reads what the pod has left as credentials.
	if err := r.deleteKeyNamed(ctx, o, keyName(o.record, workflow.Attempt(pod))); err != nil {
		return err
	}
	now := r.Now()
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		status.Accounts = max(status.Accounts, account.Number+1)
		retire(status, &account, now)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("the account of a pod that was not recorded is to be revoked", "account", account.Number, observability.Pod, observability.Name(pod.Namespace, pod.Name))
	r.tell(o, true, protocol.AccessGrantFailed, fmt.Sprintf("PavProvisioner %q: pod %s/%s ran although it was not needed any more: its account, %q, is revoked",
		o.record.Spec.Provisioner, pod.Namespace, pod.Name, idOf(&account)))
	return nil
}

// lost reports that a pod may have made an account, and that the record which would have it does not exist any more: the administrator has
// to look for it.
func (r *Reconciler) lost(ctx context.Context, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowGrant {
		return nil
	}
	account, _ := accountOf(protocol.RequesterOfRecord(owner.Name), pod)
	account.AccountID = toldBy(pod)
	text := fmt.Sprintf("pod %s/%s ran for PavBucketAccess %q, which does not exist any more: account %q may exist; look for it in the store, and delete it",
		pod.Namespace, pod.Name, owner.Name, idOf(&account))
	if due, _ := r.repeats.Due(owner.Name, text, r.Now()); !due {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("an account may exist that no record has", "account", idOf(&account), observability.Pod, observability.Name(pod.Namespace, pod.Name))
	provisioner, err := reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: pod.Labels[pavv1.ProvisionerLabel]}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil {
		return err
	}
	r.Events.Event(provisioner, corev1.EventTypeWarning, protocol.AccountLeft, observability.Clip(text, observability.MaxNote))
	return nil
}
