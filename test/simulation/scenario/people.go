package scenario

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
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

	// Copies says that the tenants of the world copy volumes.
	Copies bool

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
		all := classes(provisioners)
		if t.Copies {
			all = classes(copyingNames)
		}
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
			Containers: []corev1.Container{{Name: "main", Image: "none", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
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
