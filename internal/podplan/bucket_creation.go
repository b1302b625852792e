package podplan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// The fields of bucketCreation, for errors.
const (
	bucketIDField = "spec.bucketCreation.bucketId"
	infoField     = "spec.bucketCreation.info"
)

// The files of a creation pod of a bucket, as the node agent names those that it cannot read.
const (
	bucketIDFile = "bucketId"
	createdFile  = "created"
	infoFiles    = "info"
)

// errNoBuckets says that a definition creates no buckets.
var errNoBuckets = errors.New("spec.bucketCreation: is missing, so that only buckets that exist already can be used")

// BucketPlan is how a bucket is to be created.
type BucketPlan struct {
	// BucketID is the identifier in the definition, or "". Of a bucket that exists already, it is that of the bucket.
	BucketID string

	// Info is what the definition tells clients of the bucket.
	Info map[string]string

	// Pod is the evaluated template of the creation pod; nil if there is none. A bucket that exists already has none.
	Pod map[string]any
}

// Create evaluates spec.bucketCreation. Of a bucket that exists already, it evaluates only what clients are told.
func (r BucketRequest) Create(ctx context.Context) (*BucketPlan, error) {
	c := r.Spec.BucketCreation
	switch {
	case c == nil && !r.isExisting():
		return nil, &Error{errNoBuckets}
	case c == nil:
		return &BucketPlan{BucketID: r.Record.Spec.ExistingBucketID}, nil
	}
	vars, err := r.creationVariables()
	if err != nil {
		return nil, err
	}
	plan := &BucketPlan{BucketID: r.Record.Spec.ExistingBucketID}
	if plan.Info, err = r.info(ctx, c, vars); err != nil || r.isExisting() {
		return plan, err
	}
	if c.BucketID != nil {
		if plan.BucketID, err = r.text(ctx, r.Record.Spec.ClaimRef.Namespace, bucketIDField, c.BucketID, vars); err != nil {
			return nil, err
		}
		if err := workflow.CheckID(plan.BucketID); err != nil {
			return nil, refuse("%s: %w", bucketIDField, err)
		}
	}
	plan.Pod, err = r.pod(ctx, r.Record.Spec.ClaimRef.Namespace, BucketCreationPod, c.PodTemplate, vars)
	return plan, err
}

// info evaluates spec.bucketCreation.info. Empty values count as absent.
func (r BucketRequest) info(ctx context.Context, c *pavv1.BucketCreation, vars template.Variables) (map[string]string, error) {
	value, err := r.evaluate(ctx, r.Record.Spec.ClaimRef.Namespace, infoField, c.Info, vars)
	if err != nil || value == nil {
		return nil, err
	}
	entries, err := template.Object(infoField, value)
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if entries[name] == nil {
			continue
		}
		field := infoField + "." + name
		text, err := template.Text(field, entries[name])
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if err := workflow.CheckInfo(name, text); err != nil {
			return nil, refuse("%s: %w", field, err)
		}
		info[name] = text
	}
	return info, nil
}

// Update evaluates spec.bucketUpdate. It returns the evaluated template of the update pod; nil if there is none.
func (r BucketRequest) Update(ctx context.Context) (map[string]any, error) {
	u := r.Spec.BucketUpdate
	if u == nil || u.PodTemplate == nil {
		return nil, nil
	}
	b, err := r.bucket()
	if err != nil {
		return nil, err
	}
	return r.pod(ctx, r.Record.Spec.ClaimRef.Namespace, BucketUpdatePod, u.PodTemplate, template.BucketUpdateVariables(b, bucketID(r.Record)))
}

// Delete evaluates spec.bucketDeletion. It returns the evaluated template of the deletion pod; nil if there is none. Whether the bucket
// may be deleted is for the caller to decide.
func (r BucketRequest) Delete(ctx context.Context) (map[string]any, error) {
	d := r.Spec.BucketDeletion
	if d == nil || d.PodTemplate == nil {
		return nil, nil
	}
	b, err := r.bucket()
	if err != nil {
		return nil, err
	}
	vars := template.BucketDeletionVariables(b, bucketID(r.Record), r.Record.Status.Created)
	return r.pod(ctx, r.Record.Spec.ClaimRef.Namespace, BucketDeletionPod, d.PodTemplate, vars)
}

// Planned returns the pod of a workflow that the definition plans for a bucket, or nil if it plans none.
func (r BucketRequest) Planned(ctx context.Context, kind string) (*corev1.Pod, error) {
	var rendered map[string]any
	var err error
	switch kind {
	case pavv1.WorkflowBucketValidation:
		var valid *ValidBucket
		if valid, err = r.Validate(ctx); err == nil {
			rendered = valid.Pod
		}
	case pavv1.WorkflowBucketCreation:
		var plan *BucketPlan
		if plan, err = r.Create(ctx); err == nil {
			rendered = plan.Pod
		}
	case pavv1.WorkflowBucketUpdate:
		rendered, err = r.Update(ctx)
	case pavv1.WorkflowBucketDeletion:
		rendered, err = r.Delete(ctx)
	}
	if err != nil || rendered == nil {
		return nil, err
	}
	return BucketPod(r.Record, kind, rendered, Placement{}, r.Defaults, 1)
}

// BucketOutcome is what is known of a bucket that is there.
type BucketOutcome struct {
	// BucketID identifies the bucket in its store.
	BucketID string

	// Created says that the bucket certainly is the claim's.
	Created bool

	// Info is what clients need to know besides credentials, and ExtraInfo are further keys of a ConfigMap.
	Info, ExtraInfo map[string]string
}

// BucketOutcomeOf returns what a creation pod has made, from the plan and the result of the pod, which is nil if there was no pod. The
// identifier in the definition takes precedence: that which was recorded with the pod, if there was one. Of what clients are told, the
// pod's word takes precedence.
func BucketOutcomeOf(record *pavv1.PavBucket, plan *BucketPlan, result *workflow.Result) (BucketOutcome, error) {
	outcome := BucketOutcome{Info: map[string]string{}, ExtraInfo: map[string]string{}}
	for name, value := range plan.Info {
		outcome.tell(name, value)
	}
	if result == nil {
		outcome.BucketID = cmp.Or(plan.BucketID, record.Spec.BucketName)
		outcome.Created = IsOfClaim(record, outcome.BucketID)
		return outcome, nil
	}
	var err error
	if outcome.BucketID, err = bucketIDOutcome(record, result); err != nil {
		return BucketOutcome{}, err
	}
	if outcome.Created = IsOfClaim(record, outcome.BucketID); !outcome.Created {
		if why, ok := result.Unreadable[createdFile]; ok {
			return BucketOutcome{}, refuse("the creation pod's /pav/created: %s", why)
		}
		outcome.Created = result.Created
	}
	if err := outcome.addInfo(result); err != nil {
		return BucketOutcome{}, err
	}
	return outcome, nil
}

// bucketIDOutcome returns the identifier of a bucket that a creation pod has made.
func bucketIDOutcome(record *pavv1.PavBucket, result *workflow.Result) (string, error) {
	const source = "the creation pod's /pav/bucketId"
	if planned := record.Status.PlannedBucketID; planned != "" {
		return planned, nil
	}
	if why, ok := result.Unreadable[bucketIDFile]; ok {
		return "", refuse("%s: %s", source, why)
	}
	if result.BucketID == "" {
		return record.Spec.BucketName, nil
	}
	if err := workflow.CheckID(result.BucketID); err != nil {
		return "", refuse("%s: %w", source, err)
	}
	return result.BucketID, nil
}

// addInfo adds what the pod tells clients of the bucket. A file that is empty removes what the definition tells.
func (o *BucketOutcome) addInfo(result *workflow.Result) error {
	for _, file := range slices.Sorted(maps.Keys(result.Unreadable)) {
		if file == infoFiles || strings.HasPrefix(file, infoFiles+"/") {
			return refuse("the creation pod's /pav/%s: %s", file, result.Unreadable[file])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(result.Info)) {
		value := result.Info[name]
		if value == "" && !strings.HasPrefix(name, workflow.ExtraInfo) {
			delete(o.Info, name)
			continue
		}
		if err := workflow.CheckInfo(name, value); err != nil {
			return refuse("the creation pod's /pav/%s/%.100s: %w", infoFiles, name, err)
		}
		o.tell(name, value)
	}
	return nil
}

// tell adds what clients are told of the bucket by a name.
func (o *BucketOutcome) tell(name, value string) {
	if key, extra := strings.CutPrefix(name, workflow.ExtraInfo); extra {
		o.ExtraInfo[key] = value
	} else {
		o.Info[name] = value
	}
}
