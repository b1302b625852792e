package scenes

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var (
	podName = regexp.MustCompile(`\b(create|delete|validate|stage|unstage)-[0-9a-f]{20}\b`)
	// hash matches the hash of the name of a PavVolume or a node, or of storage, in labels.
	hash   = regexp.MustCompile(`(/(?:volume|node|storage): )[0-9a-f]{20}\b`)
	uid    = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// unlike lists the fields that differ between the two worlds.
var unlike = []string{"uid", "resourceVersion", "generation", "observedGeneration", "managedFields", "creationTimestamp", "agentVersion", "recordUID", "bootID", "nodeStart"}

// describe returns all objects of the scene as YAML, without the values that differ between the two worlds.
func (h *Hands) describe(ctx context.Context) (string, error) {
	var texts []string
	for _, kind := range kinds {
		list, _ := kind.list.DeepCopyObject().(client.ObjectList)
		if err := h.Kube.List(ctx, list); err != nil {
			return "", err
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error {
			if kind.driver(object) != driverOf(h.Scene) {
				return nil
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				return err
			}
			delete(content, "kind")
			delete(content, "apiVersion")
			for _, field := range kind.leftOut {
				unstructured.RemoveNestedField(content, field...)
			}
			if pod, ok := object.(*corev1.Pod); ok {
				content["status"] = statusOf(pod)
			}
			strip(content)
			text, err := yaml.Marshal(content)
			texts = append(texts, h.names(kind.name+":\n"+string(text)))
			return err
		}); err != nil {
			return "", err
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "---\n"), nil
}

// kinds are the kinds of objects to compare.
var kinds = []struct {
	name string
	list client.ObjectList

	// driver returns the name of the driver that an object belongs to.
	driver func(runtime.Object) string

	// leftOut lists the fields that are not compared.
	leftOut [][]string
}{
	{name: "PersistentVolumeClaim", list: &corev1.PersistentVolumeClaimList{}, driver: func(object runtime.Object) string {
		claim, _ := object.(*corev1.PersistentVolumeClaim)
		return ptr.Deref(claim.Spec.StorageClassName, "")
	}},
	{name: "PersistentVolume", list: &corev1.PersistentVolumeList{}, driver: func(object runtime.Object) string {
		pv, _ := object.(*corev1.PersistentVolume)
		if pv.Spec.CSI == nil {
			return ""
		}
		return pv.Spec.CSI.Driver
	}},
	// The status of the claim in PaV's copy depends on when PaV read the claim during its binding.
	{name: "PavVolume", list: &pavv1.PavVolumeList{}, leftOut: [][]string{{"spec", "claim", "status"}}, driver: func(object runtime.Object) string {
		volume, _ := object.(*pavv1.PavVolume)
		return volume.Spec.Provisioner
	}},
	{name: "PavStage", list: &pavv1.PavStageList{}, driver: func(object runtime.Object) string {
		stage, _ := object.(*pavv1.PavStage)
		return stage.Spec.Provisioner
	}},
	{name: "Pod", list: &corev1.PodList{}, leftOut: [][]string{{"spec"}}, driver: func(object runtime.Object) string {
		pod, _ := object.(*corev1.Pod)
		return cmp.Or(pod.Labels[pavv1.ProvisionerLabel], pod.Annotations[sceneAnnotation])
	}},
}

// killed is the exit code of a container that was killed.
const killed = 137

// statusOf returns what is compared of a pod's status: its phase, its reason, and how its containers run or ended.
func statusOf(pod *corev1.Pod) map[string]any {
	status := map[string]any{"phase": string(pod.Status.Phase), "reason": pod.Status.Reason}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			status["container "+c.Name] = "runs"
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == killed:
			status["container "+c.Name] = "was killed" // kubelet may lose sight of it then
		case c.State.Terminated != nil:
			status["container "+c.Name] = fmt.Sprintf("exit code %d, %s, with an ID: %v", c.State.Terminated.ExitCode, c.State.Terminated.Reason, c.ContainerID != "")
		}
	}
	return status
}

// strip removes the fields in unlike from a value, at all levels.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range unlike {
			delete(v, key)
		}
		for _, inner := range v {
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// driverOf returns the name of a scene's provisioner and class.
func driverOf(scene string) string { return "scene-" + scene }

// objectMeta returns the metadata of an object with a name.
func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
