package reconcile

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// The indexes. Each is of one kind, which its name begins with.
const (
	// ClaimsByProvisioner finds unbound claims by the provisioner that they wait for.
	ClaimsByProvisioner = "claim.provisioner"

	// ClaimsByClass finds unbound claims by their StorageClass.
	ClaimsByClass = "claim.class"

	// ClaimsByAttributesClass finds claims by the VolumeAttributesClass that they name, and whose attributes their volume is not
	// known to have.
	ClaimsByAttributesClass = "claim.attributesclass"

	// ClaimsBySource finds unbound claims by the buckets of the keys of the snapshot or claim that they name as their source, and of the
	// ReferenceGrants that decide whether they may use it.
	ClaimsBySource = "claim.source"

	// ClaimsByVolume finds claims by the bucket of spec.volumeName.
	ClaimsByVolume = "claim.volume"

	// ClaimsInfeasible finds the claims for which protocol.IsInfeasibleOnNode holds, by "true".
	ClaimsInfeasible = "claim.infeasible"

	// HeldPVsByDriver finds PersistentVolumes that PaV's finalizer keeps from being deleted, by spec.csi.driver.
	HeldPVsByDriver = "pv.held"

	// StaticPVsByDriver finds PersistentVolumes for which IsStaticInUse holds, by spec.csi.driver.
	StaticPVsByDriver = "pv.static"

	// UnlabelledPVsByDriver finds PersistentVolumes without the labels of a volume of PaV, by spec.csi.driver.
	UnlabelledPVsByDriver = "pv.unlabelled"

	// PVsByStorage finds PersistentVolumes by the bucket of Storage.
	PVsByStorage = "pv.storage"

	// VolumesByProvisioner finds PavVolumes by spec.provisioner.
	VolumesByProvisioner = "pavvolume.provisioner"

	// VolumesByBucket finds PavVolumes by the name of the PavBucket that they are.
	VolumesByBucket = "pavvolume.bucket"

	// volumesBySource finds PavVolumes by the bucket of Storage with the key of the source that they are created from.
	volumesBySource = "pavvolume.source"

	// volumesByStorage finds PavVolumes by the bucket of Storage.
	volumesByStorage = "pavvolume.storage"

	// volumesByConflict finds PavVolumes by the bucket of the Storage that they wait for another object to give up.
	volumesByConflict = "pavvolume.conflict"

	// StagesByProvisioner finds PavStages by spec.provisioner.
	StagesByProvisioner = "pavstage.provisioner"

	// SnapshotsByProvisioner finds PavSnapshots by spec.provisioner.
	SnapshotsByProvisioner = "pavsnapshot.provisioner"

	// StagesByVolume finds PavStages by the bucket of spec.volumeName.
	StagesByVolume = "pavstage.volume"

	// stagesByStorage finds PavStages by the bucket of Storage.
	stagesByStorage = "pavstage.storage"

	// StagesByNode finds PavStages by spec.nodeName.
	StagesByNode = "pavstage.node"

	// SnapshotsByVolume finds PavSnapshots by the buckets of spec.volumeName and of the Storage of the volume.
	SnapshotsByVolume = "pavsnapshot.volume"

	// SnapshotsByStorage finds PavSnapshots by the bucket of StorageOfSnapshot.
	SnapshotsByStorage = "pavsnapshot.storage"

	// PodsByVolume finds workflow pods by the name of the PavVolume that controls them.
	PodsByVolume = "pod.volume"

	// PodsBySnapshot finds workflow pods by the name of the PavSnapshot that controls them.
	PodsBySnapshot = "pod.snapshot"

	// PodsByBucket finds workflow pods by the name of the PavBucket that controls them, and PodsByAccess by that of the
	// PavBucketAccess.
	PodsByBucket = "pod.bucket"
	PodsByAccess = "pod.access"

	// BucketsByProvisioner finds PavBuckets by their provisioner, and BucketsByStorage by what StorageOfBucket returns, in a Bucket.
	BucketsByProvisioner = "bucket.provisioner"
	BucketsByStorage     = "bucket.storage"

	// AccessesByBucket finds PavBucketAccesses by the names of their PavBuckets, and AccessesByProvisioner by their provisioner.
	AccessesByBucket      = "access.bucket"
	AccessesByProvisioner = "access.provisioner"
)

// buckets is how many keys an index has at most whose keys few objects share. With a key of its own for each object, half of an
// object's memory would be its keys.
const buckets = 1024

// Bucket returns the key of an index for one of its values. Other values have the same: a reader must look at their values, too.
func Bucket(value string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(value)) // it never fails
	return names[h.Sum32()%buckets]
}

// names are the names of the buckets, so that the index of an object takes no memory for its key.
var names = func() (all [buckets]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

// index is one index, with the type of its objects bound.
type index struct {
	object  client.Object
	name    string
	extract client.IndexerFunc
}

func of[T client.Object](object T, name string, extract func(T) string) index {
	return ofMany(object, name, func(typed T) []string {
		if key := extract(typed); key != "" {
			return []string{key}
		}
		return nil
	})
}

// inBucket is of, with the buckets of keys.
func inBucket[T client.Object](object T, name string, extract func(T) string) index {
	return of(object, name, func(typed T) string {
		if value := extract(typed); value != "" {
			return Bucket(value)
		}
		return ""
	})
}

func ofMany[T client.Object](object T, name string, extract func(T) []string) index {
	return index{object: object, name: name, extract: func(o client.Object) []string {
		typed, ok := o.(T)
		if !ok {
			return nil
		}
		return extract(typed)
	}}
}

var indexes = []index{
	of(&corev1.PersistentVolumeClaim{}, ClaimsByProvisioner, func(c *corev1.PersistentVolumeClaim) string {
		return ifUnbound(c, protocol.Provisioner(c))
	}),
	of(&corev1.PersistentVolumeClaim{}, ClaimsByClass, func(c *corev1.PersistentVolumeClaim) string {
		return ifUnbound(c, protocol.ClassName(c))
	}),
	of(&corev1.PersistentVolumeClaim{}, ClaimsByAttributesClass, func(c *corev1.PersistentVolumeClaim) string {
		wanted := protocol.AttributesClass(c)
		if wanted == protocol.CurrentAttributesClass(c) {
			return ""
		}
		return wanted
	}),
	ofMany(&corev1.PersistentVolumeClaim{}, ClaimsBySource, func(c *corev1.PersistentVolumeClaim) (keys []string) {
		for _, key := range []string{protocol.SourceKey(c), protocol.GrantsKey(c)} {
			if ifUnbound(c, key) != "" {
				keys = append(keys, Bucket(key))
			}
		}
		return keys
	}),
	inBucket(&corev1.PersistentVolumeClaim{}, ClaimsByVolume, func(c *corev1.PersistentVolumeClaim) string { return c.Spec.VolumeName }),
	of(&corev1.PersistentVolumeClaim{}, ClaimsInfeasible, func(c *corev1.PersistentVolumeClaim) string {
		if !protocol.IsInfeasibleOnNode(c) {
			return ""
		}
		return strconv.FormatBool(true)
	}),
	of(&corev1.PersistentVolume{}, HeldPVsByDriver, func(pv *corev1.PersistentVolume) string {
		if pv.Spec.CSI == nil || !IsHeld(pv) {
			return ""
		}
		return pv.Spec.CSI.Driver
	}),
	of(&corev1.PersistentVolume{}, StaticPVsByDriver, func(pv *corev1.PersistentVolume) string {
		if !IsStaticInUse(pv) {
			return ""
		}
		return pv.Spec.CSI.Driver
	}),
	of(&corev1.PersistentVolume{}, UnlabelledPVsByDriver, func(pv *corev1.PersistentVolume) string {
		if IsLabelled(pv) {
			return ""
		}
		return pv.Spec.CSI.Driver
	}),
	inBucket(&corev1.PersistentVolume{}, PVsByStorage, storageOfPV),
	of(&pavv1.PavVolume{}, VolumesByProvisioner, func(v *pavv1.PavVolume) string { return v.Spec.Provisioner }),
	of(&pavv1.PavVolume{}, VolumesByBucket, func(v *pavv1.PavVolume) string {
		if v.Spec.BucketRef == nil {
			return ""
		}
		return v.Spec.BucketRef.Name
	}),
	inBucket(&pavv1.PavVolume{}, volumesBySource, func(v *pavv1.PavVolume) string {
		if v.Spec.Source == nil {
			return ""
		}
		return Storage(v.Spec.Provisioner, v.Spec.Source.Key())
	}),
	ofMany(&pavv1.PavVolume{}, volumesByStorage, func(v *pavv1.PavVolume) []string {
		keys := storagesOfVolume(v)
		for i := range keys {
			keys[i] = Bucket(keys[i])
		}
		return keys
	}),
	inBucket(&pavv1.PavVolume{}, volumesByConflict, conflictOfVolume),
	of(&pavv1.PavStage{}, StagesByProvisioner, func(s *pavv1.PavStage) string { return s.Spec.Provisioner }),
	inBucket(&pavv1.PavStage{}, stagesByStorage, storageOfStage),
	inBucket(&pavv1.PavStage{}, StagesByVolume, func(s *pavv1.PavStage) string { return s.Spec.VolumeName }),
	of(&pavv1.PavStage{}, StagesByNode, func(s *pavv1.PavStage) string { return s.Spec.NodeName }),
	of(&pavv1.PavSnapshot{}, SnapshotsByProvisioner, func(s *pavv1.PavSnapshot) string { return s.Spec.Provisioner }),
	ofMany(&pavv1.PavSnapshot{}, SnapshotsByVolume, func(s *pavv1.PavSnapshot) []string {
		if s.Spec.VolumeName == "" {
			return nil
		}
		return []string{Bucket(s.Spec.VolumeName), Bucket(Storage(s.Spec.Provisioner, s.Spec.VolumeHandle))}
	}),
	inBucket(&pavv1.PavSnapshot{}, SnapshotsByStorage, StorageOfSnapshot),
	of(&corev1.Pod{}, PodsByVolume, controlledBy("PavVolume")),
	of(&corev1.Pod{}, PodsBySnapshot, controlledBy("PavSnapshot")),
	of(&corev1.Pod{}, PodsByBucket, controlledBy("PavBucket")),
	of(&corev1.Pod{}, PodsByAccess, controlledBy("PavBucketAccess")),
	of(&pavv1.PavBucket{}, BucketsByProvisioner, func(b *pavv1.PavBucket) string { return b.Spec.Provisioner }),
	inBucket(&pavv1.PavBucket{}, BucketsByStorage, StorageOfBucket),
	inBucket(&pavv1.PavBucket{}, bucketsByClaim, claimOfBucket),
	inBucket(&pavv1.PavBucketAccess{}, accessesByRequester, requesterOfAccess),
	of(&pavv1.PavBucketAccess{}, AccessesByProvisioner, func(a *pavv1.PavBucketAccess) string { return a.Spec.Provisioner }),
	ofMany(&pavv1.PavBucketAccess{}, AccessesByBucket, func(a *pavv1.PavBucketAccess) []string {
		names := make([]string, len(a.Spec.Buckets))
		for i := range a.Spec.Buckets {
			names[i] = a.Spec.Buckets[i].Bucket
		}
		return names
	}),
}

// controlledBy returns the name of a pod's controller, if it is of the kind.
func controlledBy(kind string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == kind {
			return owner.Name
		}
		return ""
	}
}

// IsHeld reports whether a PersistentVolume is being deleted and still has PaV's finalizer.
func IsHeld(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(pv, pavv1.PVFinalizer)
}

// LabelAsItShouldBe is what the cache has in place of a label's value that is as it should be. No label can have this value.
const LabelAsItShouldBe = "="

// IsLabelled reports whether a PersistentVolume has the labels of a volume of PaV, or needs none, as no CSI driver serves it. The
// PersistentVolume may be one of the cache.
func IsLabelled(pv *corev1.PersistentVolume) bool {
	csi := pv.Spec.CSI
	if csi == nil {
		return true
	}
	for label, value := range workflow.VolumeLabels(csi.Driver, csi.VolumeHandle) {
		if got := pv.Labels[label]; got != value && got != LabelAsItShouldBe {
			return false
		}
	}
	return true
}

func ifUnbound(claim *corev1.PersistentVolumeClaim, key string) string {
	if !protocol.Unbound(claim) {
		return ""
	}
	return key
}

// RegisterIndexes adds every index to the cache. It must be called once, before the cache starts.
func RegisterIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, f := range indexes {
		if err := indexer.IndexField(ctx, f.object, f.name, f.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", f.name, err)
		}
	}
	return nil
}
