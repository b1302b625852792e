package controller

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// What the objects in the cache share: small values, which are those of claims and volumes, and the lists of drivers of
// nodes. Each provisioner has about five values of its own: their objects come in turn, and would share nothing if fewer values were kept
// than there are. Few lists are kept, as they change while drivers are registered, and then become the same.
const (
	sharedValues, largestShared = 16384, 1 << 10
	sharedLists, largestList    = 16, 1 << 20
)

// CacheOptions removes from each cached object what the reconcilers do not use, as a cluster can have far more
// claims, volumes and nodes than PaV works with. Objects are written with patches of their changes, so a field that
// is missing here is never removed from the object.
func CacheOptions(o Options) (cache.Options, error) {
	ours, err := workflow.PodsOfController()
	if err != nil {
		return cache.Options{}, err
	}
	s := newSharing(sharedValues, largestShared)
	lists := newSharing(sharedLists, largestList)
	byObject := map[client.Object]cache.ByObject{
		&corev1.PersistentVolumeClaim{}: {Transform: keep(s.trimClaim)},
		&corev1.PersistentVolume{}:      {Transform: keep(s.trimPV)},
		&corev1.Node{}:                  {Transform: keep(trimNode)},
		&corev1.Pod{}:                   {Label: ours, Transform: keep(trimPod)},
		&pavv1.PavStage{}:               {Transform: keep(s.trimStage)},
		&pavv1.PavVolume{}:              {Transform: keep(s.trimVolume)},
		&pavv1.PavSnapshot{}:            {Transform: keep(s.trimSnapshot)},
		&pavv1.PavBucket{}:              {Transform: keep(s.trimBucket)},
		&pavv1.PavBucketAccess{}:        {Transform: keep(s.trimAccess)},
		&corev1.Namespace{}:             {Label: labels.SelectorFromSet(labels.Set{pavv1.AllowPodsLabel: "true"}), Transform: keep(trimNamespace)},
		&storagev1.CSINode{}:            {Transform: keep(lists.trimCSINode)},
		// It says when the cluster has snapshots.
		&apiextensionsv1.CustomResourceDefinition{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, protocol.SnapshotContentCRD)},
		&policyv1.PodDisruptionBudget{}:             {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, eviction.BudgetName)},
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

func (s *sharing) trimClaim(claim *corev1.PersistentVolumeClaim) {
	s.trimMeta(&claim.ObjectMeta)
	claim.Labels = nil
	claim.Annotations = share(s, only(claim.Annotations,
		protocol.StorageProvisioner, protocol.BetaStorageProvisioner, protocol.SelectedNode, corev1.BetaStorageClassAnnotation))
	status := &claim.Status
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: share(s, status.Phase), Capacity: share(s, status.Capacity),
		AllocatedResources: status.AllocatedResources, AllocatedResourceStatuses: status.AllocatedResourceStatuses, Conditions: status.Conditions,
		CurrentVolumeAttributesClassName: status.CurrentVolumeAttributesClassName, ModifyVolumeStatus: status.ModifyVolumeStatus,
	}
	volume := claim.Spec.VolumeName
	claim.Spec.VolumeName = ""
	claim.Spec = share(s, claim.Spec)
	claim.Spec.VolumeName = volume
}

func (s *sharing) trimPV(pv *corev1.PersistentVolume) {
	s.trimMeta(&pv.ObjectMeta)
	pv.Labels = only(pv.Labels, pavv1.ProvisionerLabel, pavv1.StorageLabel)
	if pv.Spec.CSI != nil && reconcile.IsLabelled(pv) {
		// The hash is another one for each volume, and each map takes 300 bytes.
		pv.Labels = share(s, map[string]string{pavv1.ProvisionerLabel: reconcile.LabelAsItShouldBe, pavv1.StorageLabel: reconcile.LabelAsItShouldBe})
	}
	pv.Annotations = share(s, only(pv.Annotations, protocol.ProvisionedBy))
	spec := corev1.PersistentVolumeSpec{
		Capacity:                      share(s, pv.Spec.Capacity),
		PersistentVolumeReclaimPolicy: share(s, pv.Spec.PersistentVolumeReclaimPolicy),
		VolumeAttributesClassName:     share(s, pv.Spec.VolumeAttributesClassName),
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: share(s, ref.APIVersion), Kind: share(s, ref.Kind), Namespace: share(s, ref.Namespace), Name: ref.Name, UID: ref.UID,
		}
	}
	if csi := pv.Spec.CSI; csi != nil {
		spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: share(s, csi.Driver), VolumeHandle: csi.VolumeHandle}
	}
	pv.Spec = spec
	pv.Status = corev1.PersistentVolumeStatus{Phase: share(s, pv.Status.Phase)}
}

// Nodes are watched as a whole, not only their metadata, for the out-of-service taint and for cordons.
func trimNode(node *corev1.Node) {
	node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	node.Spec = corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}
	node.Status = corev1.NodeStatus{}
}

// trimCSINode keeps the names of the drivers. They are sorted, and shared: nodes times drivers are many, and most nodes have
// the same drivers.
func (s *sharing) trimCSINode(node *storagev1.CSINode) {
	drivers := make([]storagev1.CSINodeDriver, len(node.Spec.Drivers))
	for i := range drivers {
		drivers[i].Name = node.Spec.Drivers[i].Name
	}
	slices.SortFunc(drivers, func(a, b storagev1.CSINodeDriver) int { return strings.Compare(a.Name, b.Name) })
	node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	node.Spec = storagev1.CSINodeSpec{Drivers: share(s, drivers)}
}

func trimPod(pod *corev1.Pod) {
	pod.Labels = only(pod.Labels, pavv1.WorkflowLabel, pavv1.ProvisionerLabel)
	pod.Annotations = only(pod.Annotations, pavv1.AttemptAnnotation, pavv1.GivenAnnotation, pavv1.ResultAnnotation, pavv1.AccountAnnotation, pavv1.PlannedBucketAnnotation)
	pod.Spec = workflow.KeepForJudge(&pod.Spec)
}

func (s *sharing) trimStage(stage *pavv1.PavStage) {
	s.trimMeta(&stage.ObjectMeta)
	stage.Labels = nil
	// It may have copies as well. An object can be trimmed again, when others share its annotations already.
	if text, found := stage.Annotations[pavv1.AdmittedAnnotation]; found && text != "{}" {
		stage.Annotations[pavv1.AdmittedAnnotation] = "{}"
	}
	stage.Annotations = share(s, stage.Annotations)
	spec := &stage.Spec
	spec.Volume, spec.Claim, spec.ProvisionedClaim = apiextensionsv1.JSON{}, apiextensionsv1.JSON{}, nil
	spec.Provisioner, spec.NodeName = share(s, spec.Provisioner), share(s, spec.NodeName)
	spec.ClaimRef.Namespace = share(s, spec.ClaimRef.Namespace)
	stage.Status.BootID = share(s, stage.Status.BootID)
	s.trimConditions(stage.Status.Conditions)
}

// trimVolume removes from a PavVolume's copies of the claim everything except what a PersistentVolume is built from,
// the version of the copy, and whether the claim was bound.
func (s *sharing) trimVolume(volume *pavv1.PavVolume) {
	s.trimMeta(&volume.ObjectMeta)
	volume.Labels = nil
	volume.Spec.Provisioner = share(s, volume.Spec.Provisioner)
	volume.Spec.ClaimRef.Namespace = share(s, volume.Spec.ClaimRef.Namespace)
	volume.Spec.StorageClass = share(s, volume.Spec.StorageClass)
	volume.Spec.VolumeAttributesClass = share(s, volume.Spec.VolumeAttributesClass)
	volume.Status.ProvisionedClaim = nil
	if source := volume.Spec.Source; source != nil {
		source.Parameters = nil
		source.Namespace, source.AccessibleTopology = share(s, source.Namespace), share(s, source.AccessibleTopology)
	}
	s.trimConditions(volume.Status.Conditions)
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

// trimSnapshot removes from a PavSnapshot its copies of objects: templates see those that the API server has.
func (s *sharing) trimSnapshot(snapshot *pavv1.PavSnapshot) {
	s.trimMeta(&snapshot.ObjectMeta)
	snapshot.Labels = nil
	spec := &snapshot.Spec
	spec.Objects = pavv1.SnapshotObjects{}
	spec.Provisioner, spec.SnapshotRef.Namespace = share(s, spec.Provisioner), share(s, spec.SnapshotRef.Namespace)
	s.trimConditions(snapshot.Status.Conditions)
}

// trimBucket removes from a PavBucket its copies of objects: templates see those that the API server has. COSI's first proposal wants what the
// class says shown in BucketContents, whatever has become of the class.
func (s *sharing) trimBucket(bucket *pavv1.PavBucket) {
	s.trimMeta(&bucket.ObjectMeta)
	bucket.Labels = nil
	spec := &bucket.Spec
	spec.Claim = nil
	if spec.API != pavv1.BucketAPICOSI0 {
		spec.Class = nil
	}
	spec.Provisioner, spec.ClaimRef.Namespace, spec.Parameters = share(s, spec.Provisioner), share(s, spec.ClaimRef.Namespace), share(s, spec.Parameters)
	s.trimConditions(bucket.Status.Conditions)
}

// trimAccess removes from a PavBucketAccess its copies of objects: templates see those that the API server has.
func (s *sharing) trimAccess(access *pavv1.PavBucketAccess) {
	s.trimMeta(&access.ObjectMeta)
	access.Labels = nil
	spec := &access.Spec
	spec.Access, spec.Class = nil, nil
	spec.Provisioner, spec.Requester.Namespace, spec.Parameters = share(s, spec.Provisioner), share(s, spec.Requester.Namespace), share(s, spec.Parameters)
	s.trimConditions(access.Status.Conditions)
}

func (s *sharing) trimMeta(meta *metav1.ObjectMeta) {
	meta.Namespace = share(s, meta.Namespace)
	meta.Finalizers = share(s, meta.Finalizers)
}

func (s *sharing) trimConditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Reason, c.Message = share(s, c.Type), share(s, c.Reason), share(s, c.Message)
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
