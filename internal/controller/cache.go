package controller

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/eviction"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// CacheOptions removes from each cached object what the reconcilers do not use, as a cluster can have far more
// claims, volumes and nodes than PaV works with. Objects are written with patches of their changes, so a field that
// is missing here is never removed from the object.
func CacheOptions(o Options) (cache.Options, error) {
	ours, err := workflow.PodsOfVolumes()
	if err != nil {
		return cache.Options{}, err
	}
	byObject := map[client.Object]cache.ByObject{
		&corev1.PersistentVolumeClaim{}: {Transform: keep(trimClaim)},
		&corev1.PersistentVolume{}:      {Transform: keep(trimVolume)},
		&corev1.Node{}:                  {Transform: keep(trimNode)},
		&corev1.Pod{}:                   {Label: ours, Transform: keep(trimPod)},
		&pavv1.PavStage{}:               {Transform: keep(trimStage)},
		&pavv1.PavVolume{}:              {Transform: keep(trimLedger)},
		&corev1.Namespace{}:             {Label: labels.SelectorFromSet(labels.Set{pavv1.AllowPodsLabel: "true"}), Transform: keep(trimNamespace)},
		&storagev1.CSINode{}:            {Transform: keep((&driverLists{}).trim)},
		&policyv1.PodDisruptionBudget{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, eviction.BudgetName)},
	}
	if o.serves() {
		maps.Copy(byObject, admission.CacheOptions(o.Namespace))
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject}, nil
}

// keep turns a function that trims objects of one type into a transform.
func keep[T client.Object](trim func(T)) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			typed.SetManagedFields(nil)
			trim(typed)
		}
		return object, nil
	}
}

func trimClaim(claim *corev1.PersistentVolumeClaim) {
	claim.Labels = nil
	claim.Annotations = only(claim.Annotations,
		protocol.StorageProvisioner, protocol.BetaStorageProvisioner, protocol.SelectedNode, corev1.BetaStorageClassAnnotation)
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase}
}

func trimVolume(pv *corev1.PersistentVolume) {
	pv.Labels, pv.Annotations = only(pv.Labels, pavv1.ProvisionerLabel, pavv1.StorageLabel), only(pv.Annotations, protocol.ProvisionedBy)
	spec := corev1.PersistentVolumeSpec{
		Capacity:                      pv.Spec.Capacity,
		ClaimRef:                      pv.Spec.ClaimRef,
		PersistentVolumeReclaimPolicy: pv.Spec.PersistentVolumeReclaimPolicy,
	}
	if csi := pv.Spec.CSI; csi != nil {
		spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	pv.Spec = spec
	pv.Status = corev1.PersistentVolumeStatus{Phase: pv.Status.Phase}
}

// Nodes are watched as a whole, not only their metadata, for the out-of-service taint and for cordons.
func trimNode(node *corev1.Node) {
	node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	node.Spec = corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}
	node.Status = corev1.NodeStatus{}
}

func trimPod(pod *corev1.Pod) {
	pod.Labels = only(pod.Labels, pavv1.WorkflowLabel)
	pod.Annotations = only(pod.Annotations, pavv1.AttemptAnnotation, pavv1.GivenAnnotation, pavv1.ResultAnnotation)
	pod.Spec = workflow.KeepForJudge(&pod.Spec)
}

func trimStage(stage *pavv1.PavStage) {
	stage.Spec.Volume, stage.Spec.Claim, stage.Spec.ProvisionedClaim = apiextensionsv1.JSON{}, apiextensionsv1.JSON{}, nil
	if _, found := stage.Annotations[pavv1.AdmittedAnnotation]; found {
		stage.Annotations[pavv1.AdmittedAnnotation] = "{}" // it may have copies as well
	}
}

// trimLedger removes from a PavVolume's copies of the claim everything except what a PersistentVolume is built from,
// the version of the copy, and whether the claim was bound.
func trimLedger(volume *pavv1.PavVolume) {
	volume.Status.ProvisionedClaim = nil
	claim := corev1.PersistentVolumeClaim{}
	if err := json.Unmarshal(volume.Spec.Claim.Raw, &claim); err != nil {
		return // the code that needs it reports the error
	}
	raw, err := json.Marshal(corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{UID: claim.UID, ResourceVersion: claim.ResourceVersion},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, Resources: claim.Spec.Resources,
			VolumeName: claim.Spec.VolumeName,
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase},
	})
	if err == nil {
		volume.Spec.Claim.Raw = raw
	}
}

func trimNamespace(namespace *corev1.Namespace) {
	namespace.Labels, namespace.Annotations = only(namespace.Labels, pavv1.AllowPodsLabel), nil
	namespace.Spec, namespace.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
}

// only returns the entries of the keys.
func only(all map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			kept[key] = value
		}
	}
	return kept
}
