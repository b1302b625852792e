package claim

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// create writes the PavVolume of a claim: the intent, before any effect. Claim, provisioner and class are read from
// the API server, and the decision is made again with these.
func (r *Reconciler) create(ctx context.Context, o snapshot) error {
	live, raw, err := r.readLive(ctx, o)
	if err != nil || raw.claim == nil || raw.class == nil {
		return err // deleted or replaced: the cache will show it
	}
	if d := decide(live); d.action != create {
		return r.act(ctx, live, d)
	}

	volume, err := newPavVolume(live, raw)
	if err != nil {
		return err
	}
	if message := tooLarge(volume); message != "" {
		return &reconcile.Later{After: r.report(o.claim, corev1.EventTypeWarning, protocol.ProvisioningFailed, message)}
	}
	if err := r.Client.Create(ctx, volume); apierrors.IsAlreadyExists(err) {
		return nil // an earlier pass wrote it, and the cache will show it
	} else if err != nil {
		return fmt.Errorf("writing PavVolume %q: %w", volume.Name, err)
	}
	r.Events.Eventf(o.claim, corev1.EventTypeNormal, protocol.Provisioning,
		"PavProvisioner %q is provisioning a volume for claim %q", live.provisioner.Name, o.claim.Namespace+"/"+o.claim.Name)
	r.warnOfExpansion(live)
	return nil
}

// tooLarge returns why a PavVolume has too large copies of other objects, or "".
func tooLarge(volume *pavv1.PavVolume) string {
	if size := len(volume.Spec.Claim.Raw); size > pavv1.MaxClaimCopy {
		return fmt.Sprintf("metadata: the claim has %d bytes, and may have %d for PaV to keep a copy of it: shorten its labels or annotations", size, pavv1.MaxClaimCopy)
	}
	if volume.Spec.Source == nil {
		return ""
	}
	size := 0
	for key, value := range volume.Spec.Source.Parameters {
		size += len(key) + len(value)
	}
	if size <= pavv1.MaxClaimCopy {
		return ""
	}
	return fmt.Sprintf("spec.dataSourceRef: the parameters of the source have %d bytes, and may have %d for PaV to keep a copy of them", size, pavv1.MaxClaimCopy)
}

// copied are the objects that a PavVolume has copies of, as the API server returned them. The last is nil if there is none.
type copied struct{ claim, class, attributesClass *unstructured.Unstructured }

// readLive reads from the API server what the decision depends on, with the complete claim and classes. Claim and StorageClass are
// nil if the claim, its class or its provisioner is gone, or if the claim was replaced.
func (r *Reconciler) readLive(ctx context.Context, o snapshot) (live snapshot, raw copied, err error) {
	live = snapshot{crossNamespace: r.CrossNamespaceSources, claim: &corev1.PersistentVolumeClaim{}, class: &storagev1.StorageClass{}}
	// A PavVolume of a provisioner that is being deleted would be deleted at once, and written again.
	if live.provisioner, err = optional(ctx, r.Live, o.provisioner.Name, &pavv1.PavProvisioner{}); err != nil || live.provisioner == nil {
		return live, raw, err
	}
	rawClaim, err := r.read(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), client.ObjectKeyFromObject(o.claim))
	if err != nil || rawClaim == nil || rawClaim.GetUID() != o.claim.UID {
		return live, raw, err
	}
	rawClass, err := r.read(ctx, storagev1.SchemeGroupVersion.WithKind("StorageClass"), types.NamespacedName{Name: o.class.Name})
	if err != nil || rawClass == nil {
		return live, raw, err
	}
	if err := typed(rawClaim, live.claim); err != nil {
		return live, raw, err
	}
	if err := typed(rawClass, live.class); err != nil {
		return live, raw, err
	}
	raw.claim, raw.class = rawClaim, rawClass
	if raw.attributesClass, err = r.readAttributesClass(ctx, &live); err != nil {
		return live, raw, err
	}
	if live.source, err = r.readSource(ctx, live); err != nil {
		return live, raw, err
	}
	live.bucket, err = r.readBucket(ctx, live.claim)
	return live, raw, err
}

// readAttributesClass reads the claim's VolumeAttributesClass, and returns the complete object, too; nil if there is none.
func (r *Reconciler) readAttributesClass(ctx context.Context, live *snapshot) (*unstructured.Unstructured, error) {
	name := protocol.AttributesClass(live.claim)
	if name == "" {
		return nil, nil
	}
	raw, err := r.read(ctx, storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"), types.NamespacedName{Name: name})
	if err != nil || raw == nil {
		return nil, err
	}
	live.attributesClass = &storagev1.VolumeAttributesClass{}
	return raw, typed(raw, live.attributesClass)
}

// warnOfExpansion reports on the claim that PaV does not support the expansion that the class allows.
func (r *Reconciler) warnOfExpansion(o snapshot) {
	if grow := o.class.AllowVolumeExpansion; grow != nil && *grow && o.provisioner.Spec.VolumeExpansion == nil {
		r.Events.Eventf(o.claim, corev1.EventTypeWarning, protocol.VolumeExpansionUnsupported,
			"allowVolumeExpansion of StorageClass %q is true, but volumes of PavProvisioner %q cannot grow: request what is needed now", o.class.Name, o.provisioner.Name)
	}
}

// newPavVolume returns the PavVolume of a claim that is to be provisioned.
func newPavVolume(o snapshot, raw copied) (*pavv1.PavVolume, error) {
	claimJSON, err := encode(raw.claim)
	if err != nil {
		return nil, err
	}
	classJSON, err := encode(raw.class)
	if err != nil {
		return nil, err
	}
	var attributesJSON *apiextensionsv1.JSON
	if raw.attributesClass != nil {
		text, err := encode(raw.attributesClass)
		if err != nil {
			return nil, err
		}
		attributesJSON = &text
	}
	source, err := o.recorded()
	if err != nil {
		return nil, err
	}
	policy := corev1.PersistentVolumeReclaimDelete
	if o.class.ReclaimPolicy != nil {
		policy = *o.class.ReclaimPolicy
	}
	labels := map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name}
	if node := o.claim.Annotations[protocol.SelectedNode]; node != "" && protocol.BindsLate(o.class) {
		labels[pavv1.NodeLabel] = workflow.Hash(node)
	}
	if source != nil {
		labels[pavv1.SourceLabel] = workflow.Hash(source.Key())
	}
	return &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:       protocol.VolumeName(o.claim.UID),
			Labels:     labels,
			Finalizers: []string{pavv1.VolumeFinalizer},
		},
		Spec: pavv1.PavVolumeSpec{
			Provisioner:   o.provisioner.Name,
			ClaimRef:      pavv1.ClaimReference{Namespace: o.claim.Namespace, Name: o.claim.Name, UID: o.claim.UID},
			StorageClass:  classJSON,
			Source:        source,
			BucketRef:     o.bucketRef(),
			Claim:         claimJSON,
			ReclaimPolicy: policy,

			VolumeAttributesClass: attributesJSON,
		},
	}, nil
}

// copyClaim brings the PavVolume's copy of the claim up to date.
func (r *Reconciler) copyClaim(ctx context.Context, o snapshot) error {
	if wait := r.copies.wait(client.ObjectKeyFromObject(o.claim), r.Now()); wait > 0 {
		return &reconcile.Later{After: wait}
	}
	raw, err := r.read(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), client.ObjectKeyFromObject(o.claim))
	if err != nil || raw == nil || raw.GetUID() != o.claim.UID {
		return err
	}
	if raw.GetDeletionTimestamp() != nil {
		return nil // the copy stays as it was before the claim was deleted
	}
	copied, err := encode(raw)
	if err != nil {
		return err
	}
	if len(copied.Raw) > pavv1.MaxClaimCopy {
		r.report(o.claim, corev1.EventTypeWarning, protocol.Provisioning,
			fmt.Sprintf("metadata: the claim has become larger than %d bytes, which is what PaV keeps of it: the volume will be deleted by what the claim was before", pavv1.MaxClaimCopy))
		return nil
	}
	patch, err := copyPatch(o.volume, copied)
	if err != nil {
		return err
	}
	err = client.IgnoreNotFound(r.Client.Patch(ctx, &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: o.volume.Name}}, patch))
	if apierrors.IsInvalid(err) && r.isCopiedSince(ctx, o.volume) {
		return reconcile.ErrStale
	}
	if err != nil {
		return fmt.Errorf("copying the claim to PavVolume %q: %w", o.volume.Name, err)
	}
	return nil
}

// isCopiedSince reports whether a PavVolume that the cache has was replaced, or has another copy of its claim by now. The API
// server answers a patch whose test fails as it answers one whose result is invalid.
func (r *Reconciler) isCopiedSince(ctx context.Context, volume *pavv1.PavVolume) bool {
	live := &pavv1.PavVolume{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(volume), live); err != nil {
		return apierrors.IsNotFound(err)
	}
	return live.UID != volume.UID || copiedVersion(live) != copiedVersion(volume)
}

// copyPatch replaces the copy of a claim in a PavVolume, unless another process has replaced it. It is no merge patch, as the
// cache does not keep all of the copy, so that no difference can be made of it.
func copyPatch(volume *pavv1.PavVolume, copied apiextensionsv1.JSON) (client.Patch, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"test", "/metadata/uid", volume.UID}}
	if version := copiedVersion(volume); version != "" {
		operations = append(operations, operation{"test", "/spec/claim/metadata/resourceVersion", version})
	}
	text, err := json.Marshal(append(operations, operation{"add", "/spec/claim", copied}))
	if err != nil {
		return nil, fmt.Errorf("encoding the copy of the claim of PavVolume %q: %w", volume.Name, err)
	}
	return client.RawPatch(types.JSONPatchType, text), nil
}

// read returns an object as the API server has it, without managedFields, or nil if there is none.
func (r *Reconciler) read(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := r.Live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind.Kind, key.Name, err)
	}
	// They are half of the object's size, and say nothing about it.
	object.SetManagedFields(nil)
	return object, nil
}

func typed(raw *unstructured.Unstructured, object runtime.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, object); err != nil {
		return fmt.Errorf("decoding %s %q: %w", raw.GetKind(), raw.GetName(), err)
	}
	return nil
}

func encode(raw *unstructured.Unstructured) (apiextensionsv1.JSON, error) {
	text, err := raw.MarshalJSON()
	if err != nil {
		return apiextensionsv1.JSON{}, fmt.Errorf("encoding %s %q: %w", raw.GetKind(), raw.GetName(), err)
	}
	return apiextensionsv1.JSON{Raw: text}, nil
}
