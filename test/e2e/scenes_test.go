package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/scenes"
)

// The simulated kubelet, scheduler and node are held to the real ones: all objects of a scene look the same in both worlds,
// at each look.
func TestScenes_LookAsInTheSimulatedWorld(t *testing.T) {
	t.Parallel()
	for _, scene := range scenes.Mounted {
		t.Run(scene.Name, func(t *testing.T) {
			looks := scenes.Simulate(t, scene)
			h := &scenes.Hands{Scene: scene.Name, Kube: kube, Node: "node2", Namespace: beside(t)}
			t.Cleanup(func() { // what a failed scene has left
				name := "scene-" + scene.Name
				remove(t, &corev1.PersistentVolume{ObjectMeta: objectMeta("", name)})
				remove(t, &storagev1.StorageClass{ObjectMeta: objectMeta("", name)})
				remove(t, &pavv1.PavProvisioner{ObjectMeta: objectMeta("", name)})
			})
			h.Exit = func(ctx context.Context, pod *corev1.Pod) error {
				_, err := inPod(ctx, pod.Namespace, pod.Name, "touch /tmp/exit")
				return err
			}
			h.Evict = func(ctx context.Context, pod *corev1.Pod) error { // it exceeds the limit of its volume
				_, err := inPod(ctx, pod.Namespace, pod.Name, "dd if=/dev/zero of=/scratch/large bs=1M count=2")
				return err
			}
			looked := 0
			h.Look = func(_ context.Context, name string, text func(context.Context) (string, error)) error {
				looked++
				//nolint:contextcheck // it has its own deadline
				eventually(t, name, func(ctx context.Context) error {
					now, err := text(ctx)
					if err == nil && now != looks[name] {
						err = errors.New("it looks otherwise in the simulated world (-simulated +real):\n" + cmp.Diff(looks[name], now))
					}
					return err
				})
				return nil
			}
			must(t, scene.Play(t.Context(), h))
			if looked != len(looks) {
				t.Errorf("there were %d looks, and %d in the simulated world", looked, len(looks))
			}
		})
	}
}
