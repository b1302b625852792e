package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/eviction"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// static is the class of PersistentVolumes for the administrators' own storage.
const static = "static"

// Admins are the administrators of the cluster. They change reclaim policies and definitions, create static
// PersistentVolumes, and clean up.
type Admins struct {
	World   *world.World
	Storage *storage.System

	// Leaving makes the administrators delete all PersistentVolumes that are not bound, restore all definitions, and
	// create no volumes.
	Leaving bool

	// Copies says that the world has the provisioners of copies, too.
	Copies bool

	version int
}

// Choices implements world.Actor.
func (a *Admins) Choices(add func(world.Choice)) {
	pvs := world.Objects[*corev1.PersistentVolume](a.World.Store)
	if len(pvs) > 0 {
		add(world.Choice{What: "an administrator does something to a PersistentVolume", Do: func() { a.reclaim(pvs[a.World.Rand.IntN(len(pvs))]) }})
	}
	if !a.Leaving {
		add(world.Choice{What: "an administrator offers a volume", Do: a.offer})
	}
	volumes := world.Objects[*pavv1.PavVolume](a.World.Store)
	if len(volumes) > 0 {
		add(world.Choice{What: "an administrator does something to a PavVolume", Do: func() { a.record(volumes[a.World.Rand.IntN(len(volumes))]) }})
	}
	if stages := world.Objects[*pavv1.PavStage](a.World.Store); len(stages) > 0 {
		add(world.Choice{What: "an administrator retries a PavStage", Do: func() { retry(a.World.Store, stages[a.World.Rand.IntN(len(stages))]) }})
	}
	if pods := workflowPods(a.World.Store); len(pods) > 0 && !a.Leaving {
		add(world.Choice{What: "an administrator does something to a workflow pod", Do: func() { a.remove(pods[a.World.Rand.IntN(len(pods))]) }})
	}
	if len(a.unrecorded()) > 0 {
		add(world.Choice{What: "an administrator accepts PavStages", Do: a.Accept})
	}
	if a.Leaving {
		add(world.Choice{What: "an administrator restores all PavProvisioners", Do: a.Restore})
	} else {
		add(world.Choice{What: "an administrator does something to a PavProvisioner", Do: a.define})
		add(world.Choice{What: "an administrator opens or closes a namespace", Do: a.open})
	}
}

// unrecorded returns the stages whose unstaging fails because PaV has no record to verify them.
func (a *Admins) unrecorded() []*pavv1.PavStage {
	return slices.DeleteFunc(world.Objects[*pavv1.PavStage](a.World.Store), func(s *pavv1.PavStage) bool {
		failure := s.Status.UnstagingFailure
		return failure == nil || !strings.Contains(failure.Message, "the stage has no record that one did")
	})
}

// Accept annotates these stages, as docs/troubleshooting.md tells administrators to do.
func (a *Admins) Accept() {
	for _, stage := range a.unrecorded() {
		_ = world.Change(a.World.Store, people, stage, func(s *pavv1.PavStage) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, pavv1.AdmittedAnnotation, `{"copies":true}`)
		})
	}
}

func (a *Admins) reclaim(pv *corev1.PersistentVolume) {
	n := a.World.Rand.IntN(8)
	switch {
	case a.Leaving && pv.Status.Phase != corev1.VolumeBound, n == 0 && pv.Status.Phase == corev1.VolumeReleased:
		_ = a.World.Store.Delete(people, a.World.Store.KeyOf(pv), nil, nil)
	case n == 1:
		a.policy(pv, corev1.PersistentVolumeReclaimRetain)
	case n == 2:
		a.policy(pv, corev1.PersistentVolumeReclaimDelete)
	case n == 3 && !a.Leaving:
		a.adopt(pv)
	case n == 4 && !a.Leaving && a.World.Rand.IntN(4) == 0:
		force(a.World.Store, pv, nil)
	}
}

// workflowPods returns PaV's workflow pods.
func workflowPods(store *world.Store) []*corev1.Pod {
	return slices.DeleteFunc(world.Objects[*corev1.Pod](store), func(pod *corev1.Pod) bool { return pod.Labels[pavv1.WorkflowLabel] == "" })
}

// remove sometimes deletes a workflow pod. Sometimes it removes a pod of a stage by force, with its finalizers, while
// the container is still running.
func (a *Admins) remove(pod *corev1.Pod) {
	switch n := a.World.Rand.IntN(16); {
	case n == 0:
		a.World.Counts["workflow pods deleted"]++
		_ = a.World.Store.Delete(people, a.World.Store.KeyOf(pod), nil, nil)
	case n == 1 && pod.Labels[pavv1.StageLabel] != "":
		a.World.Counts["workflow pods removed by force"]++
		force(a.World.Store, pod, new(int64(0)))
	}
}

// force deletes an object and removes its finalizers.
func force[T client.Object](store *world.Store, object T, grace *int64) {
	_ = store.Delete(people, store.KeyOf(object), nil, grace)
	_ = world.Change(store, people, object, func(o T) { o.SetFinalizers(nil) })
}

func (a *Admins) policy(pv *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy) {
	_ = world.Change(a.World.Store, people, pv, func(p *corev1.PersistentVolume) { p.Spec.PersistentVolumeReclaimPolicy = policy })
}

// offer creates a static PersistentVolume for storage that belongs to an administrator. Only administrators may delete
// such storage.
func (a *Admins) offer() {
	with := []string{"plain", "planned", "private", "validated", "keyed", "growing"}
	if a.Copies {
		with = copyingNames
	}
	number := a.World.Rand.IntN(6)
	driver, handle := with[number%len(with)], fmt.Sprintf("own%d", number)
	a.Storage.Make(driver, handle, "")
	_ = a.World.Store.Create(people, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: handle},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode: new(corev1.PersistentVolumeFilesystem), StorageClassName: static,
			PersistentVolumeReclaimPolicy: [...]corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete}[a.World.Rand.IntN(2)],
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
		},
	})
}

// adopt creates a static PersistentVolume for the storage of another PersistentVolume.
func (a *Admins) adopt(pv *corev1.PersistentVolume) {
	if pv.Spec.CSI == nil {
		return
	}
	_ = a.World.Store.Create(people, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("static%d", a.World.Rand.IntN(5))},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: pv.Spec.Capacity, AccessModes: pv.Spec.AccessModes, VolumeMode: pv.Spec.VolumeMode, StorageClassName: "taken",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: pv.Spec.CSI.Driver, VolumeHandle: pv.Spec.CSI.VolumeHandle}},
		},
	})
}

func (a *Admins) record(volume *pavv1.PavVolume) {
	touchRecord(a.World, volume, volume.Status.Phase == pavv1.VolumeRetained, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimDelete })
}

// touchRecord requests a retry for a record, or deletes it. Retained storage is deleted after the policy of its record is changed.
func touchRecord[T client.Object](w *world.World, record T, retained bool, toBeDeleted func(T)) {
	switch n := w.Rand.IntN(6); {
	case n == 0 && retained:
		_ = world.Change(w.Store, people, record, toBeDeleted)
	case n == 1 && (retained || w.Rand.IntN(4) == 0):
		_ = w.Store.Delete(people, w.Store.KeyOf(record), nil, nil)
	case n == 2:
		retry(w.Store, record)
	}
}

// retry requests a retry of a PavVolume or a PavStage.
func retry[T client.Object](store *world.Store, object T) {
	_ = world.Change(store, people, object, func(o T) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[pavv1.RetryAnnotation] = time.Now().UTC().Format(pavv1.RetryFormat)
		o.SetAnnotations(annotations)
	})
}

// define edits, deletes or restores a definition.
func (a *Admins) define() {
	names := namesOf(a.Copies)
	name := names[a.World.Rand.IntN(len(names))]
	p := world.Object[*pavv1.PavProvisioner](a.World.Store, "", name)
	a.version++
	switch {
	case p == nil:
		_ = a.World.Store.Create(people, newProvisioner(name, a.version))
	case a.World.Rand.IntN(4) == 0:
		_ = a.World.Store.Delete(people, a.World.Store.KeyOf(p), nil, nil)
	default:
		_ = world.Change(a.World.Store, people, p, func(p *pavv1.PavProvisioner) { edit(p, a.version) })
	}
}

// open opens a namespace to the pods of templates, or closes it. Sometimes it spoils PaV's PodDisruptionBudget in the
// namespace instead.
func (a *Admins) open() {
	name := [...]string{"a", "b"}[a.World.Rand.IntN(2)]
	if budget := world.Object[*policyv1.PodDisruptionBudget](a.World.Store, name, eviction.BudgetName); budget != nil && a.World.Rand.IntN(3) == 0 {
		_ = world.Change(a.World.Store, people, budget, func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(1)) })
		return
	}
	_ = world.Change(a.World.Store, people, world.Object[*corev1.Namespace](a.World.Store, "", name), func(n *corev1.Namespace) {
		if _, open := n.Labels[pavv1.AllowPodsLabel]; open {
			delete(n.Labels, pavv1.AllowPodsLabel)
			return
		}
		n.Labels = map[string]string{pavv1.AllowPodsLabel: "true"}
	})
}

// Restore recreates all definitions that were deleted.
func (a *Admins) Restore() {
	for _, name := range namesOf(a.Copies) {
		if world.Object[*pavv1.PavProvisioner](a.World.Store, "", name) == nil {
			a.version++
			_ = a.World.Store.Create(people, newProvisioner(name, a.version))
		}
	}
}
