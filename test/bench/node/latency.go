package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// example is the provisioner whose volumes clients wait for.
const (
	example      = "examples/1-hello-world/provisioner.yaml"
	exampleClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: hello-world}
provisioner: hello-world
parameters: {greeting: "Hello,"}`
)

// measureLatency measures the time from the creation of a client pod until it runs. Each round measures all kinds of
// pods, one after the other.
func measureLatency(ctx context.Context, w *world, s settings, out io.Writer) error {
	if err := useExample(ctx, w); err != nil {
		return err
	}
	for _, name := range []string{"staged", "unstaged"} {
		if err := w.create(ctx, claim(name, "hello-world")); err != nil {
			return err
		}
	}
	if _, err := w.running(ctx, w.client("holder", claimed("staged")), time.Now()); err != nil {
		return err
	}
	kinds := []struct {
		name    string
		volume  corev1.VolumeSource
		claimed bool // with a new claim in each round
	}{
		{"an emptyDir", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false},
		{"a volume that another pod of the node has", claimed("staged"), false},
		{"a volume that no pod of the node has", claimed("unstaged"), false},
		{"a new claim, made just before", claimed("new"), true},
	}
	took := make([]figures, len(kinds))
	for round := range s.runs + 1 {
		for i, kind := range kinds {
			seconds, err := latencyOf(ctx, w, kind.volume, kind.claimed)
			if err != nil {
				return fmt.Errorf("a pod with %s: %w", kind.name, err)
			}
			if round > 0 { // The first round fills caches.
				took[i] = append(took[i], seconds)
			}
		}
	}

	table := newTable(out)
	table.rowf("\nClient pod: created to Running, medians of %d\t\tratio\tmiddle half", s.runs)
	for i, kind := range kinds {
		ratios := took[i].over(took[0])
		median := took[i].median() / took[0].median()
		table.rowf("  with %s\t%.2f s\t%.2f\t%s", kind.name, took[i].median(), median, ratios.middle())
	}
	return table.end()
}

// useExample creates the provisioner of the first example, and a StorageClass for it.
func useExample(ctx context.Context, w *world) error {
	provisioner, err := os.ReadFile(example)
	if err != nil {
		return err
	}
	if err := w.apply(ctx, strings.TrimSpace(string(provisioner))+"\n---"+exampleClass); err != nil {
		return err
	}
	return w.registered(ctx, 1, time.Minute)
}

// latencyOf creates one client pod, waits until it runs, and deletes it. Then it waits until a stage that was made for
// the pod is gone.
func latencyOf(ctx context.Context, w *world, volume corev1.VolumeSource, newClaim bool) (float64, error) {
	began, made := time.Now(), 1
	if newClaim {
		if err := w.create(ctx, claim(volume.PersistentVolumeClaim.ClaimName, "hello-world")); err != nil {
			return 0, err
		}
		made = 2
	}
	took, err := w.running(ctx, w.client("client", volume), began)
	if err != nil {
		return 0, err
	}
	if err := w.remove(ctx, made); err != nil {
		return 0, err
	}
	return took.Seconds(), eventually(ctx, time.Minute, "only the holder's stage is left", func(ctx context.Context) error {
		stages := &pavv1.PavStageList{}
		if err := w.kube.List(ctx, stages); err != nil {
			return err
		}
		if len(stages.Items) > 1 {
			return fmt.Errorf("%d stages exist", len(stages.Items))
		}
		return nil
	})
}

// client returns a pod on the node that has these volumes and does nothing.
func (w *world) client(name string, volumes ...corev1.VolumeSource) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: w.node},
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{{Name: "client", Image: "busybox:1.37.0", Command: []string{"sleep", "infinity"}}},
		},
	}
	for i, volume := range volumes {
		volumeName := fmt.Sprintf("volume-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeName, VolumeSource: volume})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volumeName, MountPath: "/" + volumeName})
	}
	return pod
}

func claimed(claim string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// claim returns a claim for 1 MiB of a class, with the access mode ReadWriteMany.
func claim(name, class string) *corev1.PersistentVolumeClaim {
	made := &corev1.PersistentVolumeClaim{}
	text := fmt.Sprintf("{metadata: {namespace: %s, name: %s}, spec: {storageClassName: %s, accessModes: [ReadWriteMany], resources: {requests: {storage: 1Mi}}}}", namespace, name, class)
	if err := yaml.Unmarshal([]byte(text), made); err != nil {
		panic(err) // the text is constant, except for names
	}
	return made
}
