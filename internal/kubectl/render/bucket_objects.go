package render

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// createsVolumes reports whether a definition creates volumes, and rendersVolumes whether it has any to render. The only volumes of a
// definition may be buckets.
func createsVolumes(p *pavv1.PavProvisioner) bool {
	return p.Supports(pavv1.ProvisioningModeDynamic) && (p.Spec.VolumeCreation != nil || !p.Spec.HasBuckets())
}

func rendersVolumes(p *pavv1.PavProvisioner) bool {
	return len(p.Spec.VolumeStaging.PodTemplate.Raw) > 0 && (createsVolumes(p) || p.Supports(pavv1.ProvisioningModeStatic))
}

// existingBucket is the parameter of a class whose claims all use a bucket that exists already.
const existingBucket = "bucketName"

// chooseBucket takes the first ObjectBucketClaim of the definition's class, its Namespace, and the class, or makes them up.
func (c *objects) chooseBucket(g *given, p *pavv1.PavProvisioner) error {
	if !p.Spec.HasBuckets() {
		return nil
	}
	if c.bucketClass = c.class; c.bucketClass == nil {
		static := c.static
		c.static = false // buckets need a class
		err := c.chooseClass(g, p)
		c.bucketClass, c.class, c.static = c.class, nil, static
		if err != nil {
			return err
		}
	}
	class := text(c.bucketClass, "metadata", "name")
	if !p.Supports(pavv1.ProvisioningModeDynamic) && text(c.bucketClass, "parameters", existingBucket) == "" {
		set(c.bucketClass, "bucket", "parameters", existingBucket)
		c.notef("the StorageClass %q names no bucket: its parameter %s was made up, as the PavProvisioner creates none", class, existingBucket)
	}
	for _, claim := range g.bucketClaims {
		if named := text(claim.Object, "spec", "storageClassName"); named == class {
			c.bucketClaim = runtimeCopy(claim.Object)
			stored(c.bucketClaim, true)
			c.use("ObjectBucketClaim", text(c.bucketClaim, "metadata", "namespace")+"/"+claim.Name(), claim)
			break
		}
	}
	if c.bucketClaim == nil {
		c.bucketClaim = madeUpBucketClaim(p, class)
		stored(c.bucketClaim, true)
		c.notef("no ObjectBucketClaim was given: %q in namespace %q was made up", "bucket", "default")
	}
	namespace := text(c.bucketClaim, "metadata", "namespace")
	for _, given := range g.namespaces {
		if given.Name() == namespace {
			c.namespace = runtimeCopy(given.Object)
			c.use("Namespace", namespace, given)
		}
	}
	if c.namespace == nil {
		c.namespace = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}
	}
	set(c.namespace, namespace, "metadata", "labels", "kubernetes.io/metadata.name")
	stored(c.namespace, false)
	return nil
}

// madeUpBucketClaim returns an ObjectBucketClaim with a quota, if claims may have one.
func madeUpBucketClaim(p *pavv1.PavProvisioner, class string) map[string]any {
	config := map[string]any{}
	if v := p.Spec.BucketValidation; v != nil {
		for key, value := range map[string]string{"maxSize": "1Gi", "maxObjects": "1000"} {
			if slices.Contains(v.AdditionalConfig, key) {
				config[key] = value
			}
		}
	}
	return map[string]any{
		"apiVersion": "objectbucket.io/v1alpha1", "kind": "ObjectBucketClaim", "metadata": map[string]any{"name": "bucket", "namespace": "default"},
		"spec": map[string]any{"storageClassName": class, "generateBucketName": "bucket", "additionalConfig": config},
	}
}

// bucketRecord returns the PavBucket of the claim.
func (r *rendering) bucketRecord() (*pavv1.PavBucket, error) {
	rawClaim, err := convert(r.bucketClaim, &map[string]any{})
	if err != nil {
		return nil, err
	}
	rawClass, err := convert(r.bucketClass, &map[string]any{})
	if err != nil {
		return nil, err
	}
	id := text(r.bucketClaim, "metadata", "uid")
	record := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b-" + id, UID: uid("PavBucket", "", "b-"+id)},
		Spec: pavv1.PavBucketSpec{
			Provisioner: r.provisioner.Name, API: pavv1.BucketAPIClaim, ReclaimPolicy: pavv1.BucketDelete,
			ClaimRef: pavv1.ClaimReference{
				Namespace: text(r.bucketClaim, "metadata", "namespace"), Name: text(r.bucketClaim, "metadata", "name"), UID: types.UID(id),
			},
			Parameters: parameters(r.bucketClass), Claim: &rawClaim, Class: &rawClass,
		},
	}
	spec := &record.Spec
	spec.AdditionalConfig, _, _ = unstructured.NestedStringMap(r.bucketClaim, "spec", "additionalConfig")
	spec.ExistingBucketID = spec.Parameters[existingBucket]
	const longestPrefix = 26 // of generated names, as in lib-bucket-provisioner
	prefix := text(r.bucketClaim, "spec", "generateBucketName")
	spec.BucketName = strings.TrimPrefix(prefix[:min(len(prefix), longestPrefix)]+"-"+id, "-")
	if asked := text(r.bucketClaim, "spec", "bucketName"); asked != "" {
		spec.BucketName, spec.NameRequested = asked, true
	}
	spec.BucketName = cmp.Or(spec.ExistingBucketID, spec.BucketName)
	spec.Quota, err = podplan.QuotaOf(spec.AdditionalConfig, spec.Parameters)
	return record, err
}

// accessRecord returns the PavBucketAccess of the claim, which is granted what the definition supports.
func (r *rendering) accessRecord(bucket *pavv1.PavBucket) *pavv1.PavBucketAccess {
	claim := bucket.Spec.ClaimRef
	access := &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{Name: "a-" + string(claim.UID), UID: uid("PavBucketAccess", "", "a-"+string(claim.UID))},
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: r.provisioner.Name, API: pavv1.BucketAPIClaim,
			Requester: pavv1.AccessRequester{Kind: "ObjectBucketClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			Buckets:   []pavv1.AccessedBucket{{Bucket: bucket.Name, Mode: pavv1.AccessReadWrite, SecretName: claim.Name}},
			Protocol:  pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey, Parameters: bucket.Spec.Parameters,
			Access: bucket.Spec.Claim, Class: bucket.Spec.Class,
		},
	}
	v := r.provisioner.Spec.BucketValidation
	if v == nil {
		return access
	}
	if len(v.Protocols) > 0 {
		access.Spec.Protocol = v.Protocols[0]
	}
	if len(v.AccessModes) > 0 {
		access.Spec.Buckets[0].Mode = v.AccessModes[0]
	}
	if len(v.AuthenticationTypes) > 0 {
		access.Spec.AuthenticationType = v.AuthenticationTypes[0]
	}
	if access.Spec.AuthenticationType == pavv1.AuthenticationServiceAccount {
		access.Spec.ServiceAccountName = "default"
	}
	return access
}

// bucketVolume returns the bucket that a volume is, as far as the definition tells; nil if the volume is none. What only the creation pod
// knows, and writes below /pav/info, is made up; guessed says so.
func (r *rendering) bucketVolume(ctx context.Context, stage *pavv1.PavStage) (bucket *pavv1.VolumeBucket, guessed bool) {
	if stage.Spec.Bucket != nil || r.static || !r.provisioner.Spec.MakesBucketVolumes() {
		return stage.Spec.Bucket, false
	}
	bucket = &pavv1.VolumeBucket{ID: stage.Spec.VolumeHandle, SecretName: stage.Spec.VolumeName, Info: map[string]string{}}
	record, err := r.bucketRecord()
	if err != nil {
		return bucket, false // the phases of the bucket say why
	}
	plan, err := r.bucketRequest(record).Create(ctx)
	if err != nil {
		return bucket, false
	}
	if plan.Pod != nil {
		for _, name := range workflow.InfoNames() {
			bucket.Info[name], guessed = "made-up-"+name, guessed || plan.Info[name] == ""
		}
	}
	maps.Copy(bucket.Info, plan.Info)
	return bucket, guessed
}

// bucketRequest returns the request for a bucket.
func (r *rendering) bucketRequest(record *pavv1.PavBucket) podplan.BucketRequest {
	return podplan.BucketRequest{Record: record, Namespace: r.namespace, BucketDefinition: podplan.BucketDefinition{
		Provisioner: r.provisioner.UID, Generation: r.provisioner.Generation, Spec: &r.provisioner.Spec, Templates: r.templates, GetPVC: r.getPVC,
	}}
}
