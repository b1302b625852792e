package selftest

import (
	"maps"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Labels of all objects of a test.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "kubectl-pav-test"
	instanceLabel  = "app.kubernetes.io/instance"
)

func (r *run) labels() map[string]string {
	return map[string]string{managedByLabel: managedBy, instanceLabel: r.name}
}

func (r *run) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: r.labels()}
}

// copyOf returns the PavProvisioner of the files with the test's name, and otherwise unchanged.
func (r *run) copyOf() *unstructured.Unstructured {
	object := (&unstructured.Unstructured{Object: r.input.document.Object}).DeepCopy()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, r.labels())
	object.SetLabels(labels)
	object.SetName(r.name)
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers", "ownerReferences", "generateName"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

// namespace returns the namespace of the test. Clients run as root unless the user says otherwise, as many
// provisioners' volumes belong to root. Apart from that, they comply with Pod Security's restricted profile.
func (r *run) namespace() *corev1.Namespace {
	level := "baseline"
	if r.options.User > 0 {
		level = "restricted"
	}
	namespace := &corev1.Namespace{ObjectMeta: r.meta("", r.name)}
	if r.options.OpenNamespace {
		level = "privileged"
		namespace.Labels[pavv1.AllowPodsLabel] = "true"
	}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = level
	return namespace
}

// class returns the StorageClass of the test: a copy of the one in the files, if any, with another name, the reclaim
// policy Delete, and the parameters of the command line.
func (r *run) class() *storagev1.StorageClass {
	class := &storagev1.StorageClass{}
	if r.input.class != nil {
		pattern := r.input.class.DeepCopy()
		pattern.ObjectMeta = metav1.ObjectMeta{}
		class = pattern
	}
	class.TypeMeta = metav1.TypeMeta{}
	class.ObjectMeta = r.meta("", r.name)
	class.Provisioner = r.name
	policy := corev1.PersistentVolumeReclaimDelete
	class.ReclaimPolicy = &policy
	class.Parameters = r.parameters()
	return class
}

// parameters returns the parameters of the StorageClass in the files and of the command line.
func (r *run) parameters() map[string]string {
	parameters := map[string]string{}
	if r.input.class != nil {
		maps.Copy(parameters, r.input.class.Parameters)
	}
	maps.Copy(parameters, r.options.Parameters)
	return parameters
}

// claim returns the claim for a volume: a copy of the one in the files, if any, except for the fields that the test
// sets.
func (r *run) claim(v volume) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: r.meta(r.name, v.claim())}
	if r.input.claim != nil && v.static == "" {
		pattern := r.input.claim.DeepCopy()
		claim.Spec = pattern.Spec
		claim.Spec.VolumeName, claim.Spec.Selector = "", nil // The volume must be a new one.
		claim.Spec.DataSource, claim.Spec.DataSourceRef = nil, nil
		claim.Annotations = pattern.Annotations
		for _, binding := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node"} {
			delete(claim.Annotations, binding)
		}
		maps.Copy(claim.Labels, pattern.Labels)
		maps.Copy(claim.Labels, r.labels())
	}
	class := r.name
	if v.static != "" {
		class, claim.Spec.VolumeName = "", r.volumeName(v)
	}
	claim.Spec.StorageClassName = &class
	claim.Spec.VolumeMode = &v.mode
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{v.access}
	if claim.Spec.Resources.Requests == nil || r.options.sizeGiven {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: r.options.size}
	}
	if v.source != "" {
		r.nameSource(claim, v)
	}
	return claim
}

// nameSource names the volume of the same modes, or its snapshot, as the source of a claim.
func (r *run) nameSource(claim *corev1.PersistentVolumeClaim, v volume) {
	empty := volume{mode: v.mode, access: v.access}
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: string(v.source), Name: empty.claim()}
	if v.source == pavv1.DataSourceSnapshot {
		claim.Spec.DataSourceRef.APIGroup = new(snapshotv1.GroupName)
	}
	if requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]; v.least != nil && requested.Cmp(*v.least) < 0 {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = *v.least
	}
}

// volumeName returns the name of the PersistentVolume of a volume that is provisioned statically.
func (r *run) volumeName(v volume) string { return r.name + "-" + v.claim() }

// persistentVolume returns the PersistentVolume of a volume that is provisioned statically. The storage existed
// before the test, and stays.
func (r *run) persistentVolume(v volume) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: r.meta("", r.volumeName(v)),
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: r.options.size},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{v.access},
			VolumeMode:                    &v.mode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.name, Name: v.claim()},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: r.name, VolumeHandle: v.static, VolumeAttributes: r.parameters(),
			}},
		},
	}
}
