package render

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// bucketPhases are the phases of a bucket's life, and of the access to it.
const (
	bucketValidation = "bucket-validation"
	bucketCreation   = "bucket-creation"
	bucketUpdate     = "bucket-update"
	bucketDeletion   = "bucket-deletion"
	accessGrant      = "access-grant"
	accessRevocation = "access-revocation"
)

// buckets renders the life of a bucket.
func (r *rendering) buckets(ctx context.Context) {
	if r.bucketClaim == nil {
		return
	}
	record, err := r.bucketRecord()
	if err != nil {
		r.fail(bucketValidation, err)
		return
	}
	request := r.bucketRequest(record)
	r.validateBucket(ctx, request)
	r.createBucket(ctx, request)
	spec := &r.provisioner.Spec
	if r.wanted(bucketUpdate, spec.BucketUpdate != nil) {
		pod, err := request.Update(ctx)
		r.buildBucket(Phase{Phase: bucketUpdate}, record, pavv1.WorkflowBucketUpdate, pod, err)
	}
	r.access(ctx, request)
	if r.wanted(bucketDeletion, spec.BucketDeletion != nil && spec.BucketDeletion.PodTemplate != nil && record.Spec.ExistingBucketID == "") {
		pod, err := request.Delete(ctx)
		r.buildBucket(Phase{Phase: bucketDeletion}, record, pavv1.WorkflowBucketDeletion, pod, err)
	}
}

func (r *rendering) validateBucket(ctx context.Context, request podplan.BucketRequest) {
	if !r.wanted(bucketValidation, true) {
		return
	}
	valid, err := request.Validate(ctx)
	if err != nil {
		r.fail(bucketValidation, err)
		return
	}
	phase := Phase{Phase: bucketValidation, Notes: []string{"the claim is one that the definition supports"}}
	if valid.Pod != nil {
		phase.Notes[0] += ", if the pod succeeds"
	}
	for _, ceiling := range []struct {
		words string
		most  *int64
	}{{"the claims of the namespace may have %d buckets", valid.Ceilings.Buckets}, {"the bucket may have %d accesses", valid.Ceilings.Accesses}} {
		if ceiling.most != nil {
			phase.Notes = append(phase.Notes, fmt.Sprintf(ceiling.words, *ceiling.most))
		}
	}
	if r.wanted(bucketValidation, r.provisioner.Spec.BucketValidation != nil) {
		r.buildBucket(phase, request.Record, pavv1.WorkflowBucketValidation, valid.Pod, nil)
	}
}

// createBucket renders creation, and completes the record with the bucket, which is made up if creation fails.
func (r *rendering) createBucket(ctx context.Context, request podplan.BucketRequest) {
	record := request.Record
	plan, err := request.Create(ctx)
	outcome := podplan.BucketOutcome{BucketID: record.Spec.BucketName}
	if err == nil {
		outcome, err = podplan.BucketOutcomeOf(record, plan, nil)
	}
	record.Status.BucketID, record.Status.Info, record.Status.Created = outcome.BucketID, outcome.Info, outcome.Created
	switch wanted := r.wanted(bucketCreation, true); {
	case err != nil && wanted:
		r.fail(bucketCreation, err)
		return
	case err != nil:
		r.unshown = append(r.unshown, failure{bucketCreation, err})
		return
	case !wanted:
		return
	}
	phase := Phase{Phase: bucketCreation, Notes: []string{"the bucket is " + outcome.BucketID}}
	for _, name := range slices.Sorted(maps.Keys(outcome.Info)) {
		phase.Notes = append(phase.Notes, name+": "+outcome.Info[name])
	}
	if plan.Pod != nil && plan.BucketID == "" {
		phase.Notes = append(phase.Notes, "if the pod writes /pav/bucketId, that is the bucket")
	}
	if plan.Pod != nil && record.Spec.NameRequested {
		phase.Notes = append(phase.Notes, "if the pod creates /pav/created, the bucket is the claim's, and is deleted with it")
	}
	r.buildBucket(phase, record, pavv1.WorkflowBucketCreation, plan.Pod, nil)
}

// access renders how access to the bucket is granted and revoked.
func (r *rendering) access(ctx context.Context, bucket podplan.BucketRequest) {
	spec := &r.provisioner.Spec
	record := r.accessRecord(bucket.Record)
	account := pavv1.GrantedAccount{AccountName: "ba-" + strings.TrimPrefix(record.Name, "a-")}
	request := podplan.AccessRequest{BucketDefinition: bucket.BucketDefinition, Record: record, Account: account, Namespace: r.namespace, Buckets: []podplan.GrantedBucket{{
		Record: bucket.Record, Grants: []podplan.BucketGrant{{AccountID: account.AccountName, Mode: record.Spec.Buckets[0].Mode}},
	}}}
	if r.wanted(accessGrant, spec.BucketAccessGrant != nil) {
		plan, err := request.Grant(ctx)
		phase, pod := Phase{Phase: accessGrant}, map[string]any(nil)
		switch {
		case err != nil:
		case plan.FromSecret != "":
			phase.Notes = []string{"the credentials are those of Secret " + plan.FromSecret + " in namespace pav-credentials"}
		default:
			phase.Notes = []string{"the account is " + account.AccountName, "if the pod writes /pav/accountId, that is the account"}
			pod = plan.Pod
		}
		r.buildAccess(phase, record, pavv1.WorkflowGrant, pod, err)
	}
	if r.wanted(accessRevocation, spec.BucketAccessRevoke != nil && spec.BucketAccessRevoke.PodTemplate != nil) {
		request.Buckets[0].Grants, request.Account.AccountID = nil, account.AccountName
		pod, err := request.Revoke(ctx)
		r.buildAccess(Phase{Phase: accessRevocation}, record, pavv1.WorkflowRevocation, pod, err)
	}
}

// buildBucket shows the next pod of the bucket; no pod if rendered is nil.
func (r *rendering) buildBucket(phase Phase, record *pavv1.PavBucket, kind string, rendered map[string]any, err error) {
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	if rendered == nil {
		r.show(phase, nil)
		return
	}
	record.Status.Pods++
	pod, err := podplan.BucketPod(record, kind, rendered, podplan.Placement{}, workflow.Defaults{}, record.Status.Pods)
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	r.show(phase, pod)
}

// buildAccess shows the next pod of the access; no pod if rendered is nil. Its seal is the public key of an attempt in a cluster.
func (r *rendering) buildAccess(phase Phase, record *pavv1.PavBucketAccess, kind string, rendered map[string]any, err error) {
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	if rendered == nil {
		r.show(phase, nil)
		return
	}
	record.Status.Pods++
	pod, err := podplan.AccessPod(record, kind, rendered, podplan.AccessAttempt{}, podplan.Placement{}, workflow.Defaults{}, record.Status.Pods)
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	r.show(phase, pod)
}
