package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/eviction"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

const people = "people"

// Tenants claim volumes, use them, and change their minds at any time.
type Tenants struct {
	World *world.World
	Nodes []*kubernetes.Node

	// Claims is the maximum number of claims at a time, and Names the number of different names of claims in each
	// namespace. Lives is the number of claims created so far.
	Claims, Names, Lives int

	// Classes are the names of the StorageClasses of new claims.
	Classes []string

	// Leaving makes the tenants delete their claims and create no new ones.
	Leaving bool
}

// Choices implements world.Actor.
func (t *Tenants) Choices(add func(world.Choice)) {
	claims := world.Objects[*corev1.PersistentVolumeClaim](t.World.Store)
	if len(claims) < t.Claims && !t.Leaving {
		add(world.Choice{What: "a tenant claims a volume", Weight: 2, Do: t.claim})
	}
	if len(claims) > 0 {
		add(world.Choice{What: "a tenant does something to a claim", Weight: 1, Do: func() { t.disturb(claims[t.World.Rand.IntN(len(claims))]) }})
	}
	if pods := t.clients(); len(pods) > 0 {
		add(world.Choice{What: "a tenant does something to a client", Weight: 1, Do: func() { t.end(pods[t.World.Rand.IntN(len(pods))]) }})
	}
}

func (t *Tenants) namespace() string { return [...]string{"a", "b"}[t.World.Rand.IntN(2)] }

func (t *Tenants) claim() {
	class := t.Classes[t.World.Rand.IntN(len(t.Classes))]
	mode := corev1.PersistentVolumeFilesystem
	if isBlock, mistaken := strings.HasPrefix(class, "raw"), t.World.Rand.IntN(10) == 0; isBlock != mistaken {
		mode = corev1.PersistentVolumeBlock
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace(), Name: fmt.Sprintf("c%d", t.World.Rand.IntN(t.Names))},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if t.World.Store.Create(people, claim) != nil {
		return
	}
	t.Lives++
	if t.World.Rand.IntN(2) == 0 {
		t.use(claim)
	}
}

// Choose limits the tenants of a run to a few claims and names and, if Classes is empty, to a few classes. Runs differ
// most in these choices.
func (t *Tenants) Choose() {
	if len(t.Classes) == 0 {
		all := classes()
		t.World.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, class := range all[:1+t.World.Rand.IntN(6)] {
			t.Classes = append(t.Classes, class.Name)
		}
		if t.World.Rand.IntN(2) == 0 {
			t.Classes = append(t.Classes, static)
		}
	}
	t.Claims, t.Names = 1+t.World.Rand.IntN(12), 1+t.World.Rand.IntN(6)
}

// use creates a client pod of a claim. Some clients belong to a DaemonSet: they may run on cordoned nodes.
func (t *Tenants) use(claim *corev1.PersistentVolumeClaim) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: fmt.Sprintf("p%d", t.World.Rand.IntN(100))},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			}}},
		},
	}
	if t.World.Rand.IntN(6) == 0 {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet", Name: "daemons", UID: "daemons", Controller: new(true)}}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	_ = t.World.Store.Create(people, pod)
}

func (t *Tenants) disturb(claim *corev1.PersistentVolumeClaim) {
	switch n := t.World.Rand.IntN(6); {
	case t.Leaving || n < 3:
		t.delete(claim, nil)
	case n == 3:
		_ = world.Change(t.World.Store, people, claim, func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "note", fmt.Sprint(t.World.Rand.IntN(1000)))
		})
	default:
		t.use(claim)
	}
}

func (t *Tenants) delete(object client.Object, grace *int64) {
	_ = t.World.Store.Delete(people, t.World.Store.KeyOf(object), nil, grace)
}

func (t *Tenants) clients() []*corev1.Pod {
	var clients []*corev1.Pod
	for _, pod := range world.Objects[*corev1.Pod](t.World.Store) {
		if pod.Labels[pavv1.WorkflowLabel] == "" {
			clients = append(clients, pod)
		}
	}
	return clients
}

// end ends a client: its container exits, or its pod is deleted, sometimes by force.
func (t *Tenants) end(pod *corev1.Pod) {
	switch t.World.Rand.IntN(4) {
	case 0:
		for _, node := range t.Nodes {
			node.LetEnd(pod.UID)
		}
	case 1:
		t.delete(pod, new(int64(0)))
	default:
		t.delete(pod, nil)
	}
}

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
	retained := volume.Status.Phase == pavv1.VolumeRetained
	switch n := a.World.Rand.IntN(6); {
	case n == 0 && retained:
		_ = world.Change(a.World.Store, people, volume, func(v *pavv1.PavVolume) { v.Spec.ReclaimPolicy = corev1.PersistentVolumeReclaimDelete })
	case n == 1 && (retained || a.World.Rand.IntN(4) == 0):
		_ = a.World.Store.Delete(people, a.World.Store.KeyOf(volume), nil, nil)
	case n == 2:
		retry(a.World.Store, volume)
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
	name := provisioners[a.World.Rand.IntN(len(provisioners))]
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
	for _, name := range provisioners {
		if world.Object[*pavv1.PavProvisioner](a.World.Store, "", name) == nil {
			a.version++
			_ = a.World.Store.Create(people, newProvisioner(name, a.version))
		}
	}
}
