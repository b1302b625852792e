package scenes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Mounted has all scenes with clients.
var Mounted = []Scene{
	{Name: "shared", Play: onNode(served, storagev1.VolumeBindingImmediate, shared), mounted: true},
	{Name: "completes", Play: onNode(completes, storagev1.VolumeBindingImmediate, clientEnds), mounted: true},
	{Name: "late", Play: onNode(served, storagev1.VolumeBindingWaitForFirstConsumer, late), mounted: true},
	{Name: "per-pod", Play: onNode(perPod, storagev1.VolumeBindingImmediate, shared), mounted: true},
	{Name: "forced", Play: onNode(completes, storagev1.VolumeBindingImmediate, forced), mounted: true},
	{Name: "evicted", Play: onNode(served, storagev1.VolumeBindingImmediate, evicted), mounted: true},
	{Name: "mounted-static", Play: onNode(completes, storagev1.VolumeBindingImmediate, mountedStatic), mounted: true},
}

// sceneAnnotation is the annotation of clients with the driver of their scene.
const sceneAnnotation = "scene/driver"

// script does in a real container what the simulated one does for the same arguments.
const script = `case $1 in
create) printf %s "$2" >/pav/handle ;;
stage) mkdir /pav/volume; mount -t tmpfs none /pav/volume ;;
unstage) umount /pav/volume ;;
esac
if [ "${3-}" = serve ]; then touch /pav/ready; trap 'umount /pav/volume; exit 0' TERM; sleep infinity & wait; fi
`

// workflowPod returns the template of a workflow pod with these arguments.
func workflowPod(driver string, arguments ...string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"simulation/driver": driver}},
		"spec": map[string]any{"terminationGracePeriodSeconds": 1, "containers": []any{map[string]any{
			"name": "main", "image": image, "command": []string{"bash", "-uec", script, "scene"}, "args": arguments,
			"securityContext": map[string]any{"privileged": true},
		}}},
	}
}

// image is the image of all containers.
const image = "busybox:1.37.0"

// Definitions of the staging and the unstaging of a scene's provisioner.
func served(driver string) map[string]any {
	return map[string]any{"volumeStaging": map[string]any{"podTemplate": workflowPod(driver, "stage", "{{ handle }}", "serve")}}
}

func completes(driver string) map[string]any {
	return map[string]any{
		"volumeStaging":   map[string]any{"podTemplate": workflowPod(driver, "stage", "{{ handle }}")},
		"volumeUnstaging": map[string]any{"podTemplate": workflowPod(driver, "unstage", "{{ handle }}")},
	}
}

func perPod(driver string) map[string]any {
	return map[string]any{"volumeStaging": map[string]any{"scope": "Pod", "podTemplate": workflowPod(driver, "stage", "{{ handle }}", "serve")}}
}

// onNode returns a Play that creates the provisioner and the class of a scene, plays it, and deletes them.
func onNode(define func(driver string) map[string]any, binding storagev1.VolumeBindingMode, play func(context.Context, *Hands) error) func(context.Context, *Hands) error {
	return func(ctx context.Context, h *Hands) error {
		driver := driverOf(h.Scene)
		spec := define(driver)
		spec["provisioningModes"] = []string{"Dynamic", "Static"}
		spec["volumeCreation"] = map[string]any{"capacity": "1Gi", "podTemplate": workflowPod(driver, "create", "{{ defaultHandle }}", "write-handle")}
		spec["volumeDeletion"] = map[string]any{"podTemplate": workflowPod(driver, "delete", "{{ volumeHandle }}")}
		text, err := yaml.Marshal(map[string]any{"spec": spec})
		if err != nil {
			return err
		}
		provisioner := &pavv1.PavProvisioner{}
		if err := yaml.Unmarshal(text, provisioner); err != nil {
			return err
		}
		provisioner.Name = driver
		class := &storagev1.StorageClass{
			ObjectMeta: objectMeta(driver), Provisioner: driver, ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: new(binding),
		}
		return one(
			func() error { return h.Kube.Create(ctx, provisioner) },
			func() error { return h.Kube.Create(ctx, class) },
			func() error { return play(ctx, h) },
			func() error { return h.look(ctx, "in the end") },
			func() error { return h.Kube.Delete(ctx, class) },
			func() error { return h.Kube.Delete(ctx, provisioner) },
			func() error { return h.gone(ctx, class, provisioner) },
		)
	}
}

// use creates a client of a claim, and waits until it runs.
func (h *Hands) use(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: "scene-" + h.Scene + "-" + name, Annotations: map[string]string{sceneAnnotation: driverOf(h.Scene)}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: h.Node}, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{
				Name: "main", Image: image, Command: []string{"sh", "-c", "until [ -e /tmp/exit ]; do sleep 0.1; done"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "scratch", MountPath: "/scratch"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: quantity("1Mi")}}},
			},
		},
	}
	if err := h.Kube.Create(ctx, pod); err != nil {
		return nil, err
	}
	return pod, h.phase(ctx, pod, corev1.PodRunning)
}

// phase waits until a pod is in a phase.
func (h *Hands) phase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	return until(ctx, fmt.Sprintf("pod %s is %s", pod.Name, phase), func() (bool, error) {
		err := h.Kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == phase, err
	})
}

// leave deletes clients, and then their claim with its volume.
func (h *Hands) leave(ctx context.Context, claim *corev1.PersistentVolumeClaim, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := h.Kube.Delete(ctx, pod); err != nil {
			return err
		}
		if err := h.gone(ctx, pod); err != nil {
			return err
		}
	}
	return one(
		func() error { return h.look(ctx, "the volume has no client") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim, pvOf(claim), volumeOf(claim)) },
	)
}

// claimAndUse creates a claim and a client of it, and waits until the client runs.
func claimAndUse(ctx context.Context, h *Hands) (*corev1.PersistentVolumeClaim, *corev1.Pod, error) {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return nil, nil, err
	}
	pod, err := h.use(ctx, claim, "client")
	return claim, pod, err
}

func shared(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	var first, second *corev1.Pod
	return one(
		func() (err error) { first, err = h.use(ctx, claim, "first"); return err },
		func() error { return h.look(ctx, "a client runs") },
		func() (err error) { second, err = h.use(ctx, claim, "second"); return err },
		func() error { return h.look(ctx, "two clients run") },
		func() error { return h.Kube.Delete(ctx, first) },
		func() error { return h.gone(ctx, first) },
		func() error { return h.look(ctx, "one client is left") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.look(ctx, "the claim is deleted, and has a client") },
		func() error { return h.Kube.Delete(ctx, second) },
		func() error { return h.gone(ctx, second, claim, pvOf(claim), volumeOf(claim)) },
	)
}

func clientEnds(ctx context.Context, h *Hands) error {
	claim, pod, err := claimAndUse(ctx, h)
	if err != nil {
		return err
	}
	return one(
		func() error { return h.look(ctx, "a client runs") },
		func() error { return h.Exit(ctx, pod) },
		func() error { return h.phase(ctx, pod, corev1.PodSucceeded) },
		func() error { return h.look(ctx, "the client has ended") },
		func() error { return h.leave(ctx, claim, pod) },
	)
}

func late(ctx context.Context, h *Hands) error {
	claim, err := h.claim(ctx, "data")
	if err != nil {
		return err
	}
	var pod *corev1.Pod
	return one(
		func() error { return h.look(ctx, "the claim waits for its first consumer") },
		func() (err error) { pod, err = h.use(ctx, claim, "client"); return err },
		func() error { return h.look(ctx, "a client runs") },
		func() error { return h.leave(ctx, claim, pod) },
	)
}

func forced(ctx context.Context, h *Hands) error {
	claim, pod, err := claimAndUse(ctx, h)
	if err != nil {
		return err
	}
	return one(
		func() error { return h.Kube.Delete(ctx, pod, client.GracePeriodSeconds(0)) },
		func() error { return h.look(ctx, "the client was removed by force") },
		func() error { return h.leave(ctx, claim) },
	)
}

func evicted(ctx context.Context, h *Hands) error {
	claim, pod, err := claimAndUse(ctx, h)
	if err != nil {
		return err
	}
	return one(
		func() error { return h.Evict(ctx, pod) },
		func() error { return h.phase(ctx, pod, corev1.PodFailed) },
		func() error { return h.look(ctx, "kubelet has evicted the client") },
		func() error { return h.leave(ctx, claim, pod) },
	)
}

func mountedStatic(ctx context.Context, h *Hands) error {
	pv, claim := h.staticVolume()
	if err := h.Kube.Create(ctx, pv); err != nil {
		return err
	}
	if err := h.Kube.Create(ctx, claim); err != nil {
		return err
	}
	h.claims = map[string]string{string(claim.UID): "data"}
	pod, err := h.use(ctx, claim, "client")
	if err != nil {
		return err
	}
	return one(
		func() error { return h.look(ctx, "a client runs") },
		func() error { return h.Kube.Delete(ctx, pod) },
		func() error { return h.gone(ctx, pod) },
		func() error { return h.look(ctx, "the volume has no client") },
		func() error { return h.Kube.Delete(ctx, claim) },
		func() error { return h.gone(ctx, claim) },
		func() error { return h.look(ctx, "the volume is released") },
		func() error { return h.Kube.Delete(ctx, pv) },
		func() error { return h.gone(ctx, pv) },
	)
}
