package render

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// chooseSnapshot takes the first VolumeSnapshotClass of the definition, and the first VolumeSnapshot of the claim, or makes them up.
func (c *objects) chooseSnapshot(g *given, p *pavv1.PavProvisioner) {
	if p.Spec.SnapshotCreation == nil {
		return
	}
	for _, class := range g.snapshotClasses {
		if text(class.Object, "driver") == p.Name {
			c.snapshotClass = runtimeCopy(class.Object)
			c.use("VolumeSnapshotClass", class.Name(), class)
			break
		}
	}
	namespace, claim := text(c.claim, "metadata", "namespace"), text(c.claim, "metadata", "name")
	for _, snapshot := range g.snapshots {
		if text(snapshot.Object, "spec", "source", "persistentVolumeClaimName") == claim {
			c.snapshot = runtimeCopy(snapshot.Object)
			c.use("VolumeSnapshot", snapshot.Name(), snapshot)
			break
		}
	}
	if c.snapshotClass == nil {
		c.snapshotClass = madeUpSnapshotClass(p.Name)
		c.notef("no VolumeSnapshotClass was given: %q was made up, with no parameters", p.Name)
	}
	if c.snapshot == nil {
		c.snapshot = madeUpSnapshot(namespace, "snapshot", claim)
		c.notef("no VolumeSnapshot was given: %q in namespace %q was made up", "snapshot", namespace)
	}
	stored(c.snapshotClass, false)
	stored(c.snapshot, true)
	set(c.snapshot, text(c.snapshotClass, "metadata", "name"), "spec", "volumeSnapshotClassName")
}

// madeUpSnapshotClass returns a VolumeSnapshotClass of a driver.
func madeUpSnapshotClass(driver string) map[string]any {
	return map[string]any{
		"apiVersion": snapshotv1.SchemeGroupVersion.String(), "kind": "VolumeSnapshotClass", "metadata": map[string]any{"name": driver},
		"driver": driver, "deletionPolicy": string(snapshotv1.VolumeSnapshotContentDelete),
	}
}

// madeUpSnapshot returns a VolumeSnapshot of a claim.
func madeUpSnapshot(namespace, name, claim string) map[string]any {
	return map[string]any{
		"apiVersion": snapshotv1.SchemeGroupVersion.String(), "kind": "VolumeSnapshot", "metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}},
	}
}

// contentOf returns the VolumeSnapshotContent that the snapshot-controller makes for a VolumeSnapshot of a volume.
func contentOf(driver string, snapshot, class map[string]any, volumeHandle string) map[string]any {
	id := text(snapshot, "metadata", "uid")
	content := map[string]any{
		"apiVersion": snapshotv1.SchemeGroupVersion.String(), "kind": "VolumeSnapshotContent",
		"metadata": map[string]any{"name": protocol.SnapshotContentName(types.UID(id))},
		"spec": map[string]any{
			"driver": driver, "deletionPolicy": text(class, "deletionPolicy"),
			"source":                  map[string]any{"volumeHandle": volumeHandle},
			"volumeSnapshotClassName": text(class, "metadata", "name"),
			"volumeSnapshotRef": map[string]any{
				"apiVersion": snapshotv1.SchemeGroupVersion.String(), "kind": "VolumeSnapshot", "uid": id,
				"namespace": text(snapshot, "metadata", "namespace"), "name": text(snapshot, "metadata", "name"),
			},
		},
	}
	stored(content, false)
	return content
}

// snapshots renders the creation and the deletion of a snapshot of the volume.
func (r *rendering) snapshots(ctx context.Context) {
	spec := &r.provisioner.Spec
	creates, deletes := r.wanted(snapshotCreation, spec.SnapshotCreation != nil), r.wanted(snapshotDeletion, spec.SnapshotDeletion != nil && spec.SnapshotDeletion.PodTemplate != nil)
	if r.volume == nil || r.snapshot == nil || !creates && !deletes {
		return
	}
	record, err := r.snapshotRecord()
	if err != nil {
		r.fail(snapshotCreation, err)
		return
	}
	request := podplan.SnapshotRequest{
		Provisioner: r.provisioner.UID, Generation: r.provisioner.Generation, Record: record,
		Templates: r.templates, GetPVC: r.getPVC, Allowed: spec.AllowedClaimNamespaces,
	}
	plan, err := request.Create(ctx, spec.SnapshotCreation, "")
	record.Status.Handle = record.Name
	if err == nil && plan.Handle != "" {
		record.Status.Handle = plan.Handle
	}
	switch {
	case !creates:
	case err != nil:
		r.fail(snapshotCreation, err)
	default:
		phase := Phase{Phase: snapshotCreation, Notes: []string{"the handle of the snapshot is " + record.Status.Handle}}
		if plan.Handle == "" {
			phase.Notes = append(phase.Notes, "if the pod writes /pav/snapshotHandle, that is the handle")
		}
		r.buildSnapshot(phase, record, pavv1.WorkflowSnapshotCreation, plan.Pod, 1)
	}
	if !deletes {
		return
	}
	pod, err := request.Delete(ctx, spec.SnapshotDeletion, record.Status.Handle)
	switch {
	case err != nil:
		r.fail(snapshotDeletion, err)
	case pod == nil:
		r.show(Phase{Phase: snapshotDeletion}, nil)
	default:
		r.buildSnapshot(Phase{Phase: snapshotDeletion}, record, pavv1.WorkflowSnapshotDeletion, pod, 2)
	}
}

// buildSnapshot shows a pod of the snapshot.
func (r *rendering) buildSnapshot(phase Phase, record *pavv1.PavSnapshot, kind string, rendered map[string]any, number int32) {
	pod, err := podplan.SnapshotPod(record, kind, rendered, podplan.Placement{Within: podplan.SnapshotWithinReach(record)}, workflow.Defaults{}, number)
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	r.show(phase, pod)
}

// snapshotRecord returns the PavSnapshot that the controller agent writes for the VolumeSnapshot.
func (r *rendering) snapshotRecord() (*pavv1.PavSnapshot, error) {
	content := contentOf(r.provisioner.Name, r.snapshot, r.snapshotClass, text(r.volume, "spec", "csi", "volumeHandle"))
	class := &snapshotv1.VolumeSnapshotClass{}
	if _, err := convert(r.snapshotClass, class); err != nil {
		return nil, err
	}
	if err := podplan.CheckSnapshotClass(r.provisioner.Name, class); err != nil {
		return nil, err
	}
	id := types.UID(text(r.snapshot, "metadata", "uid"))
	name := protocol.SnapshotName(id)
	record := &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid("PavSnapshot", "", name)},
		Spec: pavv1.PavSnapshotSpec{
			Provisioner:    r.provisioner.Name,
			ContentRef:     pavv1.SnapshotContentReference{Name: text(content, "metadata", "name"), UID: types.UID(text(content, "metadata", "uid"))},
			SnapshotRef:    pavv1.SnapshotReference{Namespace: text(r.snapshot, "metadata", "namespace"), Name: text(r.snapshot, "metadata", "name"), UID: id},
			VolumeName:     text(r.volume, "metadata", "name"),
			VolumeHandle:   text(r.volume, "spec", "csi", "volumeHandle"),
			DeletionPolicy: pavv1.SnapshotDeletionPolicy(class.DeletionPolicy),
		},
	}
	if r.ledger != nil {
		record.Status.AccessibleTopology = r.ledger.Status.AccessibleTopology
	}
	recorded := &record.Spec.Objects
	for _, object := range []struct {
		plain map[string]any
		into  **apiextensionsv1.JSON
	}{
		{r.snapshot, &recorded.Snapshot}, {content, &recorded.SnapshotContent}, {r.snapshotClass, &recorded.SnapshotClass},
		{r.volume, &recorded.PersistentVolume}, {r.claim, &recorded.Claim},
	} {
		raw, err := convert(object.plain, &map[string]any{})
		if err != nil {
			return nil, err
		}
		*object.into = &raw
	}
	return record, nil
}
