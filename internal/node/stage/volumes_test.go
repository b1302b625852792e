package stage

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
)

// volumesAPI is an API that also has PersistentVolumes, and whose PavStages can be released and deleted.
type volumesAPI struct {
	*nodetest.API
	volumes     map[string]*corev1.PersistentVolume
	claim       *corev1.PersistentVolumeClaim
	provisioner *pavv1.PavProvisioner
	record      *pavv1.PavVolume
}

func (a *volumesAPI) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if record, is := into.(*pavv1.PavVolume); is && a.record != nil {
		a.record.DeepCopyInto(record)
		return nil
	}
	object, is := into.(*unstructured.Unstructured)
	if !is {
		return a.API.Get(ctx, key, into, options...)
	}
	var found client.Object
	switch volume := a.volumes[key.Name]; {
	case object.GetKind() == "PersistentVolume" && volume != nil:
		found = volume
	case object.GetKind() == "PersistentVolumeClaim" && a.claim != nil:
		found = a.claim
	default:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	object.Object = content
	return err
}

func (a *volumesAPI) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	a.Lock()
	defer a.Unlock()
	switch object.(type) {
	case *corev1.Pod:
		delete(a.Pods, object.GetName())
	case *pavv1.PavStage:
		now := metav1.Now()
		if stage := a.Stages[object.GetName()]; stage != nil {
			stage.DeletionTimestamp = &now
		}
	}
	return nil
}

func (a *volumesAPI) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, is := object.(*pavv1.PavStage); !is {
		return a.API.Patch(ctx, object, patch, options...)
	}
	a.Lock()
	defer a.Unlock()
	stage := a.Stages[object.GetName()]
	stage.Finalizers, stage.OwnerReferences = slices.Clone(object.GetFinalizers()), slices.Clone(object.GetOwnerReferences())
	if stage.DeletionTimestamp != nil && len(stage.Finalizers) == 0 {
		delete(a.Stages, stage.Name)
	}
	return nil
}

// VolumeNames makes the API a Catalogue that is always up to date.
func (a *volumesAPI) VolumeNames(_ context.Context, driver, handle string) ([]string, error) {
	var names []string
	for name, volume := range a.volumes {
		if isOf(volume, Volume{Driver: driver, Handle: handle}) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Provisioner implements Catalogue.
func (a *volumesAPI) Provisioner(context.Context, string) (*pavv1.PavProvisioner, error) {
	return a.provisioner, nil
}

// withVolumes adds PersistentVolumes with the driver and handle. Each has its name as UID.
func (n *testNode) withVolumes(v Volume, names ...string) *volumesAPI {
	a := &volumesAPI{API: n.API, volumes: map[string]*corev1.PersistentVolume{}}
	for _, name := range names {
		a.volumes[name] = persistentVolume(v, name, types.UID(name))
	}
	n.stager.client, n.stager.runner.Client, n.stager.catalogue = a, a, a
	return a
}

func persistentVolume(v Volume, name string, uid types.UID) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v.Driver, VolumeHandle: v.Handle}
	return volume
}

// ledger adds a stage of the PersistentVolume "pv" to the API server, in the phase Staged, and returns it.
func (n *testNode) ledger(t *testing.T, v Volume, name string) *pavv1.PavStage {
	t.Helper()
	raw, err := json.Marshal(persistentVolume(v, "pv", "pv"))
	must(t, err)
	stage := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "stage-uid", Finalizers: []string{pavv1.StageFinalizer}},
		Spec: pavv1.PavStageSpec{
			Provisioner: v.Driver, VolumeName: "pv", VolumeHandle: v.Handle, NodeName: "node",
			VolumeMode: corev1.PersistentVolumeFilesystem, Scope: pavv1.StagingScopeNode,
			ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "claim", UID: "claim-uid"},
		},
		Status: pavv1.PavStageStatus{
			Phase: pavv1.StageStaged, BootID: "boot", Attempt: 1, Validated: true,
			StagingPod: &pavv1.PodReference{Namespace: "pav-pods", Name: "stage-1"},
		},
	}
	stage.Spec.Volume.Raw = raw
	n.API.Stages[name] = stage
	n.API.Pods["stage-1"] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pav-pods", Name: "stage-1",
			Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging, pavv1.StageLabel: name},
			Annotations:     map[string]string{pavv1.NodeAnnotation: "node"},
			OwnerReferences: []metav1.OwnerReference{{UID: "stage-uid", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	return stage
}
