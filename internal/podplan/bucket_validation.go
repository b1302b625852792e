package podplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// The fields of bucketValidation, for errors.
const (
	storeField       = "spec.bucketValidation.store"
	maxSizeField     = "spec.bucketValidation.maxSize"
	maxBucketsField  = "spec.bucketValidation.maxBucketsPerNamespace"
	maxAccessesField = "spec.bucketValidation.maxAccessesPerBucket"
)

// The keys of an ObjectBucketClaim's spec.additionalConfig, and of the parameters of a class, that are quotas.
const (
	claimSize    = "maxSize"
	claimObjects = "maxObjects"
	classSize    = "maxSizePerBucket"
	classObjects = "maxObjectsPerBucket"
)

// ValidBucket is what is known of a bucket whose request is valid.
type ValidBucket struct {
	// Protocols are those of the bucket.
	Protocols []pavv1.BucketProtocol

	Ceilings BucketCeilings

	// Pod is the evaluated template of the validation pod, which decides; nil if there is none.
	Pod map[string]any
}

// BucketCeilings are limits that the caller checks, as they depend on other requests. Each is nil for none.
type BucketCeilings struct {
	// Buckets is how many buckets the claims of a namespace may have.
	Buckets *int64

	// Accesses is how many accesses there may be to the bucket.
	Accesses *int64
}

// Validate checks the request against spec.bucketValidation.
func (r BucketRequest) Validate(ctx context.Context) (*ValidBucket, error) {
	v := r.validation()
	for _, check := range []func(pavv1.BucketValidation) error{r.checkMode, r.checkProtocols, r.checkName, r.checkConfig} {
		if err := check(v); err != nil {
			return nil, err
		}
	}
	vars, err := r.creationVariables()
	if err != nil {
		return nil, err
	}
	if err := r.checkSize(ctx, v, vars); err != nil {
		return nil, err
	}
	valid := &ValidBucket{Protocols: orElse(r.Record.Spec.Protocols, v.Protocols)}
	if valid.Ceilings, err = r.ceilings(ctx, v, vars); err != nil {
		return nil, err
	}
	valid.Pod, err = r.pod(ctx, r.Record.Spec.ClaimRef.Namespace, BucketValidationPod, v.PodTemplate, vars)
	return valid, err
}

// Ceilings evaluates those limits of spec.bucketValidation that depend on other requests.
func (r BucketRequest) Ceilings(ctx context.Context) (BucketCeilings, error) {
	vars, err := r.creationVariables()
	if err != nil {
		return BucketCeilings{}, err
	}
	return r.ceilings(ctx, r.validation(), vars)
}

// Store evaluates spec.bucketValidation.store; "" if there is none.
func (r BucketRequest) Store(ctx context.Context) (string, error) {
	vars, err := r.creationVariables()
	if err != nil {
		return "", err
	}
	store, err := r.text(ctx, r.Record.Spec.ClaimRef.Namespace, storeField, r.validation().Store, vars)
	if err != nil {
		return "", err
	}
	const longest = 2048 // of PavBucket.spec.store
	return store, checkText(storeField, store, longest)
}

var (
	errNotDynamic = errors.New("spec.provisioningModes of the provisioner lacks Dynamic: it creates no buckets, and only buckets that exist already can be used")
	errNotStatic  = errors.New("spec.provisioningModes of the provisioner lacks Static: buckets that exist already cannot be used")
)

func (r BucketRequest) checkMode(pavv1.BucketValidation) error {
	modes, existing := r.Spec.ProvisioningModes, r.isExisting()
	switch {
	case existing && !slices.Contains(modes, pavv1.ProvisioningModeStatic):
		return &Error{errNotStatic}
	case !existing && !slices.Contains(modes, pavv1.ProvisioningModeDynamic):
		return &Error{errNotDynamic}
	}
	return nil
}

func (r BucketRequest) checkProtocols(v pavv1.BucketValidation) error {
	for _, protocol := range r.Record.Spec.Protocols {
		if !slices.Contains(v.Protocols, protocol) {
			return refuse("the claim asks for the protocol %s, but the provisioner supports only %s", protocol, strings.Join(stringsOf(v.Protocols), ", "))
		}
	}
	return nil
}

// bucketName is a name that a tenant may have chosen, or the beginning of it: scripts use it as a word and as a name of a file.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)

func (r BucketRequest) checkName(v pavv1.BucketValidation) error {
	spec := &r.Record.Spec
	if r.isExisting() {
		if err := workflow.CheckID(spec.ExistingBucketID); err != nil {
			return refuse("the bucket that the claim is to use: %w", err)
		}
		return nil
	}
	if spec.NameRequested && v.RequestedNames == pavv1.RequestedNamesRefuse {
		return refuse("the claim asks for the bucket name %q, but the provisioner chooses the names of its buckets: leave the name out, or give a prefix of it", spec.BucketName)
	}
	if !bucketName.MatchString(spec.BucketName) || strings.Contains(spec.BucketName, "..") {
		return refuse("the bucket name %.100q is not valid: use at most 255 letters, digits, '.', '_' and '-', with a letter or digit first, and no '..'", spec.BucketName)
	}
	return nil
}

// checkConfig refuses what claims may not set: some of it, such as a policy, could take the store away from all others.
func (r BucketRequest) checkConfig(v pavv1.BucketValidation) error {
	var refused []string
	for _, key := range slices.Sorted(maps.Keys(r.Record.Spec.AdditionalConfig)) {
		if !slices.Contains(v.AdditionalConfig, key) {
			refused = append(refused, fmt.Sprintf("%.100q", key))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	allowed := "none"
	if len(v.AdditionalConfig) > 0 {
		allowed = "only " + strings.Join(v.AdditionalConfig[:min(len(v.AdditionalConfig), mostKnown)], ", ")
	}
	return refuse("spec.additionalConfig of the claim has %s, but spec.bucketValidation.additionalConfig of the provisioner allows %s",
		strings.Join(refused[:min(len(refused), mostKnown)], ", "), allowed)
}

func (r BucketRequest) checkSize(ctx context.Context, v pavv1.BucketValidation, vars template.Variables) error {
	evaluate := func(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (any, error) {
		return r.evaluate(ctx, r.Record.Spec.ClaimRef.Namespace, field, given, vars)
	}
	most, found, err := quantity(ctx, evaluate, maxSizeField, v.MaxSize, vars)
	if err != nil || !found {
		return err
	}
	quota, err := r.quota()
	switch {
	case err != nil:
		return err
	case quota.Size == nil && r.isExisting():
		return nil // it has its size
	case quota.Size == nil:
		return refuse("the claim asks for no size, and the provisioner's buckets have at most %s: set additionalConfig.%s of the claim, or the parameter %s of its class",
			bytes(most), claimSize, classSize)
	case quota.Size.Value() > most:
		return refuse("the claim asks for a size of %s, but the provisioner's buckets have at most %s", bytes(quota.Size.Value()), bytes(most))
	}
	return nil
}

func (r BucketRequest) ceilings(ctx context.Context, v pavv1.BucketValidation, vars template.Variables) (c BucketCeilings, err error) {
	if c.Buckets, err = r.count(ctx, maxBucketsField, v.MaxBucketsPerNamespace, vars); err == nil {
		c.Accesses, err = r.count(ctx, maxAccessesField, v.MaxAccessesPerBucket, vars)
	}
	return c, err
}

func (r BucketRequest) count(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (*int64, error) {
	value, err := r.evaluate(ctx, r.Record.Spec.ClaimRef.Namespace, field, given, vars)
	if err != nil || value == nil {
		return nil, err
	}
	number, err := template.Count(field, value)
	return &number, err
}

// quota returns that of the record and, where the record has none, that of the claim and its class.
func (r BucketRequest) quota() (pavv1.BucketQuota, error) {
	spec := &r.Record.Spec
	quota, err := QuotaOf(spec.AdditionalConfig, spec.Parameters)
	if spec.Quota.Size != nil {
		quota.Size = spec.Quota.Size
	}
	if spec.Quota.Objects != nil {
		quota.Objects = spec.Quota.Objects
	}
	return quota, err
}

// QuotaOf returns what an ObjectBucketClaim asks for in its spec.additionalConfig, or else what the parameters of its class grant. It
// refuses a claim that asks for more than its class grants.
func QuotaOf(additionalConfig, parameters map[string]string) (pavv1.BucketQuota, error) {
	size, err := limitOf(additionalConfig, claimSize, parameters, classSize)
	if err != nil {
		return pavv1.BucketQuota{}, err
	}
	objects, err := limitOf(additionalConfig, claimObjects, parameters, classObjects)
	if err != nil {
		return pavv1.BucketQuota{}, err
	}
	quota := pavv1.BucketQuota{Objects: objects}
	if size != nil {
		quota.Size = resource.NewQuantity(*size, resource.BinarySI)
	}
	return quota, nil
}

// limitOf returns the limit of a claim, or else that of its class; nil if neither has one.
func limitOf(config map[string]string, key string, parameters map[string]string, parameter string) (*int64, error) {
	most, err := limitIn(parameters, parameter, "parameters of the class")
	if err != nil {
		return nil, err
	}
	asked, err := limitIn(config, key, "additionalConfig of the claim")
	switch {
	case err != nil:
		return nil, err
	case asked == nil:
		return most, nil
	case most != nil && *asked > *most:
		return nil, refuse("additionalConfig[%s] of the claim is %s, but the parameter %s of its class allows only %s", key, config[key], parameter, parameters[parameter])
	}
	return asked, nil
}

func limitIn(entries map[string]string, key, where string) (*int64, error) {
	text, found := entries[key]
	if !found || text == "" {
		return nil, nil
	}
	limit, err := template.ParseCapacity(text)
	if err != nil {
		return nil, refuse("%s: %s: %.100q is not a number above zero, such as 1000 or 10Gi", where, key, text)
	}
	return &limit, nil
}
