package scenario

import (
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Copiers are tenants who copy their volumes, and the administrators of the copies.
type Copiers struct {
	World   *world.World
	Storage *storage.System

	// Most is the maximum number of VolumeSnapshots at a time. Lives is the number of copies claimed so far.
	Most, Lives int

	// Leaving makes the copiers delete all copies and make no new ones.
	Leaving bool
}

// names is how many names VolumeSnapshots have in each namespace.
const names = 4

// Choices implements world.Actor.
func (c *Copiers) Choices(add func(world.Choice)) {
	snapshots := world.Objects[*snapshotv1.VolumeSnapshot](c.World.Store)
	claims := world.Objects[*corev1.PersistentVolumeClaim](c.World.Store)
	if len(snapshots) < c.Most && len(claims) > 0 && !c.Leaving {
		add(world.Choice{What: "a tenant takes a snapshot", Weight: 3, Do: func() { c.take(claims[c.World.Rand.IntN(len(claims))]) }})
	}
	if len(claims) < 2*c.Most && !c.Leaving {
		if len(snapshots) > 0 {
			add(world.Choice{What: "a tenant restores a snapshot", Weight: 2, Do: func() { c.restore(snapshots[c.World.Rand.IntN(len(snapshots))]) }})
		}
		if len(claims) > 0 {
			add(world.Choice{What: "a tenant clones a volume", Weight: 2, Do: func() { c.clone(claims[c.World.Rand.IntN(len(claims))]) }})
		}
	}
	if bound := slices.DeleteFunc(slices.Clone(claims), func(o *corev1.PersistentVolumeClaim) bool { return !canGrow(o) }); len(bound) > 0 && !c.Leaving {
		add(world.Choice{What: "a tenant wants another capacity", Weight: 3, Do: func() { c.grow(bound[c.World.Rand.IntN(len(bound))]) }})
		add(world.Choice{What: "a tenant wants other attributes", Weight: 3, Do: func() { c.modify(bound[c.World.Rand.IntN(len(bound))]) }})
	}
	if !c.Leaving {
		add(world.Choice{What: "an administrator replaces a VolumeAttributesClass", Do: c.redefine})
	}
	if len(snapshots) > 0 {
		add(world.Choice{What: "a tenant does something to a VolumeSnapshot", Weight: 2, Do: func() { c.disturb(snapshots[c.World.Rand.IntN(len(snapshots))]) }})
	}
	if all := c.Storage.AllSnapshots(); len(all) > 0 && !c.Leaving {
		add(world.Choice{What: "an administrator imports a snapshot", Do: func() { c.offer(all[c.World.Rand.IntN(len(all))]) }})
	}
	if contents := world.Objects[*snapshotv1.VolumeSnapshotContent](c.World.Store); len(contents) > 0 {
		add(world.Choice{What: "an administrator does something to a VolumeSnapshotContent", Do: func() { c.manage(contents[c.World.Rand.IntN(len(contents))]) }})
	}
	if records := world.Objects[*pavv1.PavSnapshot](c.World.Store); len(records) > 0 {
		add(world.Choice{What: "an administrator does something to a PavSnapshot", Do: func() { c.record(records[c.World.Rand.IntN(len(records))]) }})
	}
}

// take creates a VolumeSnapshot of a claim. Sometimes its class is that of another provisioner.
func (c *Copiers) take(claim *corev1.PersistentVolumeClaim) {
	name, _, _ := strings.Cut(*claim.Spec.StorageClassName, "-")
	if copying[name] == "" || c.World.Rand.IntN(12) == 0 {
		name = copyingNames[c.World.Rand.IntN(len(copyingNames))]
	}
	if c.World.Rand.IntN(4) == 0 {
		name += "-kept"
	}
	c.World.Counts["VolumeSnapshots"]++
	_ = c.World.Store.Create(people, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: c.name()},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim.Name}, VolumeSnapshotClassName: &name,
		},
	})
}

func (c *Copiers) name() string { return fmt.Sprintf("s%d", c.World.Rand.IntN(names)) }

// restore claims a volume that is made from a snapshot.
func (c *Copiers) restore(snapshot *snapshotv1.VolumeSnapshot) {
	driver, _ := strings.CutSuffix(ptr.Deref(snapshot.Spec.VolumeSnapshotClassName, "snapped"), "-kept")
	c.World.Counts["volumes restored"]++
	c.claim(snapshot.Namespace, driver, corev1.TypedLocalObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: protocol.KindSnapshot, Name: snapshot.Name})
}

// clone claims a volume that is made from that of another claim.
func (c *Copiers) clone(claim *corev1.PersistentVolumeClaim) {
	driver, _, _ := strings.Cut(*claim.Spec.StorageClassName, "-")
	c.World.Counts["volumes cloned"]++
	c.claim(claim.Namespace, driver, corev1.TypedLocalObjectReference{Kind: protocol.KindClaim, Name: claim.Name})
}

// claim claims a copy. Sometimes it is smaller than its source, or of another provisioner.
func (c *Copiers) claim(namespace, driver string, source corev1.TypedLocalObjectReference) {
	if copying[driver] == "" || c.World.Rand.IntN(12) == 0 {
		driver = copyingNames[c.World.Rand.IntN(len(copyingNames))]
	}
	class := driver + [...]string{"-now", "-now", "-late", "-now-kept"}[c.World.Rand.IntN(4)]
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d", c.World.Rand.IntN(names))},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: new(corev1.PersistentVolumeFilesystem),
			Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: c.size()}},
			DataSource: &source, DataSourceRef: &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name},
		},
	}
	if name := c.attributesFor(class); name != "" && c.World.Rand.IntN(3) == 0 {
		claim.Spec.VolumeAttributesClassName = &name
	}
	if c.World.Store.Create(people, claim) == nil {
		c.Lives++
	}
}

// size returns the size of a new copy.
func (c *Copiers) size() resource.Quantity {
	return resource.MustParse([...]string{"1Gi", "1Gi", "2Gi", "3Gi"}[c.World.Rand.IntN(4)])
}

// grow changes the request of a bound claim, mostly to more. The API server lets it become less only while the volume has not
// grown so far.
func (c *Copiers) grow(claim *corev1.PersistentVolumeClaim) {
	has, requested := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	next := resource.NewQuantity(requested.Value()+1<<30, resource.BinarySI)
	if c.World.Rand.IntN(4) == 0 {
		next = resource.NewQuantity(requested.Value()-1<<29, resource.BinarySI)
	}
	if next.Cmp(has) <= 0 || next.Value() > most {
		return
	}
	c.World.Counts["claims that grow, or change their mind"]++
	_ = world.Change(c.World.Store, people, claim, func(o *corev1.PersistentVolumeClaim) {
		o.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *next}
	})
}

// most is the largest size that tenants ask for.
const most = 6 << 30

// canGrow reports whether the API server lets the request of a claim grow.
func canGrow(claim *corev1.PersistentVolumeClaim) bool {
	name, _, _ := strings.Cut(*claim.Spec.StorageClassName, "-")
	_, has := claim.Status.Capacity[corev1.ResourceStorage]
	return copying[name] != "" && claim.Status.Phase == corev1.ClaimBound && has && claim.DeletionTimestamp == nil
}

// disturb often deletes a VolumeSnapshot.
func (c *Copiers) disturb(snapshot *snapshotv1.VolumeSnapshot) {
	switch n := c.World.Rand.IntN(16); {
	case n == 0 && !c.Leaving:
		c.World.Counts["VolumeSnapshots removed by force"]++
		force(c.World.Store, snapshot, nil)
		c.release(snapshot)
	case n < 8 || c.Leaving:
		_ = c.World.Store.Delete(people, c.World.Store.KeyOf(snapshot), nil, nil)
	}
}

// release ends the protection of a claim whose VolumeSnapshot was removed by force: the snapshot-controller does not.
func (c *Copiers) release(snapshot *snapshotv1.VolumeSnapshot) {
	if snapshot.Spec.Source.PersistentVolumeClaimName == nil {
		return
	}
	claim := world.Object[*corev1.PersistentVolumeClaim](c.World.Store, snapshot.Namespace, *snapshot.Spec.Source.PersistentVolumeClaimName)
	if claim == nil {
		return
	}
	_ = world.Change(c.World.Store, people, claim, func(o *corev1.PersistentVolumeClaim) {
		o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == protocol.SourceProtection })
	})
}

// offer writes a VolumeSnapshotContent and a VolumeSnapshot for a snapshot that exists.
func (c *Copiers) offer(which string) {
	driver, handle, _ := strings.Cut(which, "/")
	namespace, name := [...]string{"a", "b"}[c.World.Rand.IntN(2)], c.name()
	if tenant := c.Storage.FindSnapshot(driver, handle).Data.Tenant; tenant != "" {
		namespace = tenant // an administrator gives nobody the data of others
	}
	content := fmt.Sprintf("static-%d", c.World.Rand.IntN(names))
	policy := [...]snapshotv1.DeletionPolicy{snapshotv1.VolumeSnapshotContentDelete, snapshotv1.VolumeSnapshotContentRetain}[c.World.Rand.IntN(2)]
	c.World.Counts["snapshots imported"]++
	_ = c.World.Store.Create(people, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: content},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: driver, DeletionPolicy: policy, VolumeSnapshotClassName: &driver,
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: namespace, Name: name}, Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
		},
	})
	_ = c.World.Store.Create(people, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}, VolumeSnapshotClassName: &driver},
	})
}

// manage changes the policy of a VolumeSnapshotContent, or deletes it.
func (c *Copiers) manage(content *snapshotv1.VolumeSnapshotContent) {
	switch n := c.World.Rand.IntN(12); {
	case c.Leaving && c.isForsaken(content), n == 0:
		_ = c.World.Store.Delete(people, c.World.Store.KeyOf(content), nil, nil)
	case c.Leaving:
	case n == 1:
		c.policy(content, snapshotv1.VolumeSnapshotContentRetain)
	case n == 2:
		c.policy(content, snapshotv1.VolumeSnapshotContentDelete)
	case n == 3 && c.World.Rand.IntN(4) == 0:
		c.World.Counts["VolumeSnapshotContents removed by force"]++
		force(c.World.Store, content, nil)
	}
}

func (c *Copiers) policy(content *snapshotv1.VolumeSnapshotContent, policy snapshotv1.DeletionPolicy) {
	_ = world.Change(c.World.Store, people, content, func(o *snapshotv1.VolumeSnapshotContent) { o.Spec.DeletionPolicy = policy })
}

// isForsaken reports whether the VolumeSnapshot of a VolumeSnapshotContent does not exist.
func (c *Copiers) isForsaken(content *snapshotv1.VolumeSnapshotContent) bool {
	ref := content.Spec.VolumeSnapshotRef
	snapshot := world.Object[*snapshotv1.VolumeSnapshot](c.World.Store, ref.Namespace, ref.Name)
	return snapshot == nil || ref.UID != "" && snapshot.UID != ref.UID
}

func (c *Copiers) record(record *pavv1.PavSnapshot) {
	touchRecord(c.World, record, record.Status.Phase == pavv1.SnapshotRetained, func(r *pavv1.PavSnapshot) { r.Spec.DeletionPolicy = pavv1.SnapshotPolicyDelete })
}
