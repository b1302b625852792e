package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// bucketDefinition returns the present definition as requests for buckets are served from it.
func (h *ControllerPodHandler) bucketDefinition(provisioner *pavv1.PavProvisioner) podplan.BucketDefinition {
	return podplan.BucketDefinition{
		Provisioner: provisioner.UID, Generation: provisioner.Generation, Spec: &provisioner.Spec,
		Templates: h.Templates, Defaults: h.PodDefaults, GetPVC: reconcile.GetPVC(h.Client),
	}
}

// bucketPlans returns what plans the pod of a workflow of a PavBucket.
func (h *ControllerPodHandler) bucketPlans(ctx context.Context, provisioner *pavv1.PavProvisioner, record *pavv1.PavBucket, kind string) ([]podPlan, error) {
	namespace, err := h.namespace(ctx, record.Spec.ClaimRef.Namespace)
	if err != nil {
		return nil, err
	}
	request := podplan.BucketRequest{BucketDefinition: h.bucketDefinition(provisioner), Record: record, Namespace: namespace}
	return []podPlan{func() (*corev1.Pod, error) { return request.Planned(ctx, kind) }}, nil
}

// accessPlans returns what plans the pods of a workflow of a PavBucketAccess, one for each account that the pod may be about. Of the
// grants on a bucket they have only that of the account: no rights on a node depend on others.
func (h *ControllerPodHandler) accessPlans(ctx context.Context, provisioner *pavv1.PavProvisioner, record *pavv1.PavBucketAccess, kind string) ([]podPlan, error) {
	accounts := accountsOf(record, kind)
	if len(accounts) == 0 {
		return nil, refusePod("PavBucketAccess %q has no account for a pod of the workflow %q", record.Name, kind)
	}
	namespace, err := h.namespace(ctx, record.Spec.Requester.Namespace)
	if err != nil {
		return nil, err
	}
	buckets, err := h.accessed(ctx, record)
	if err != nil {
		return nil, err
	}
	if kind == pavv1.WorkflowGrant && len(buckets) < len(record.Spec.Buckets) {
		return nil, refusePod("a PavBucket of PavBucketAccess %q does not exist any more", record.Name)
	}
	plans := make([]podPlan, len(accounts))
	for i, account := range accounts {
		request := podplan.AccessRequest{
			BucketDefinition: h.bucketDefinition(provisioner), Record: record, Account: account, Namespace: namespace, Buckets: buckets,
		}
		if kind == pavv1.WorkflowGrant {
			request.Buckets = granted(buckets, record, account)
			if record.Status.Current != nil {
				request.PreviousAccountID = record.Status.Current.AccountID
			}
		}
		plans[i] = func() (*corev1.Pod, error) { return request.Planned(ctx, kind) }
	}
	return plans, nil
}

// accountsOf returns the accounts that a pod of a workflow may be about.
func accountsOf(record *pavv1.PavBucketAccess, kind string) []pavv1.GrantedAccount {
	status := &record.Status
	var accounts []pavv1.GrantedAccount
	if status.Granting != nil {
		accounts = append(accounts, *status.Granting)
	}
	if kind == pavv1.WorkflowGrant {
		return accounts
	}
	if status.Current != nil {
		accounts = append(accounts, *status.Current)
	}
	return append(accounts, status.Former...)
}

// accessed returns the buckets of an access that exist.
func (h *ControllerPodHandler) accessed(ctx context.Context, record *pavv1.PavBucketAccess) ([]podplan.GrantedBucket, error) {
	var buckets []podplan.GrantedBucket
	for _, accessed := range record.Spec.Buckets {
		bucket, _, err := get[pavv1.PavBucket](ctx, h.Client, pavv1.GroupVersion.String(), "PavBucket", client.ObjectKey{Name: accessed.Bucket})
		if err != nil {
			return nil, err
		}
		if bucket != nil {
			buckets = append(buckets, podplan.GrantedBucket{Record: bucket})
		}
	}
	return buckets, nil
}

// granted returns buckets with the grants that an account is to have on them.
func granted(buckets []podplan.GrantedBucket, record *pavv1.PavBucketAccess, account pavv1.GrantedAccount) []podplan.GrantedBucket {
	all := make([]podplan.GrantedBucket, len(buckets))
	for i, bucket := range buckets {
		at := slices.IndexFunc(record.Spec.Buckets, func(b pavv1.AccessedBucket) bool { return b.Bucket == bucket.Record.Name })
		all[i] = podplan.GrantedBucket{Record: bucket.Record, Grants: []podplan.BucketGrant{{AccountID: account.AccountName, Mode: record.Spec.Buckets[at].Mode}}}
	}
	return all
}

// namespace returns a Namespace; nil if it is gone.
func (h *ControllerPodHandler) namespace(ctx context.Context, name string) (map[string]any, error) {
	_, live, err := get[corev1.Namespace](ctx, h.Client, "v1", "Namespace", client.ObjectKey{Name: name})
	return live, err
}
