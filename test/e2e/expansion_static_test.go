package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A volume that an administrator wrote grows, on its node too, and is the administrator's after that.
func TestVolumeGrows_ThatAnAdministratorWrote(t *testing.T) {
	const name = "growing-static"
	namespace := beside(t)
	expansion := `
  volumeExpansion:
    podTemplate:` + container(`[ "{{ params.pool }} {{ handle }}" = "silver growing-static-handle" ]; echo {{ newCapacity }} > /pav/capacity`) + `
    nodePodTemplate:` + container("mount -o remount,size={{ newCapacity }} /pav/volume") + `
  volumeStaging:`
	definition := strings.Replace(provisioner(name, "mkdir /pav/volume; mount -t tmpfs -o size={{ capacity }} pav-e2e /pav/volume", "umount /pav/volume"), "\n  volumeStaging:", expansion, 1)
	apply(t, namespace, documents(definition, storageClass(name)+"allowVolumeExpansion: true\n"))
	apply(t, namespace, edited(staticVolume(name, name, namespace, "pool: silver"),
		replacing(`storageClassName: ""`, "storageClassName: "+name), replacing("  claimRef:", "  storageClassName: "+name+"\n  claimRef:")))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "data")}
	apply(t, namespace, clientPod("user", "data", "node1"))
	waitRunning(t, namespace, "user")

	request(t, claim, "2Mi")
	wantClaimEvent(t, claim, "FileSystemResizeRequired", "the volume has grown to 2Mi")
	pavSays(t, []string{"describe", "pvc/data", "-n", namespace}, 0, "a node has to make the new capacity available")
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "user")})
	apply(t, namespace, clientPod("next", "data", "node1")) // The volume grows before it starts, not when kubelet next looks at a running pod.
	waitRunning(t, namespace, "next")
	awaitCapacity(t, claim, "2Mi")
	if got, err := inPod(t.Context(), namespace, "next", "df -k /data | awk 'NR == 2 {print $2}'"); err != nil || strings.TrimSpace(got) != "2048" {
		t.Errorf("the pod sees %q KiB (%v)", got, err)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(namespace, "next")})

	remove(t, claim)
	eventually(t, "the record is gone", func(ctx context.Context) error {
		return gone(ctx, &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	eventually(t, "the PersistentVolume is the administrator's", func(ctx context.Context) error {
		pv := &corev1.PersistentVolume{}
		err := kube.Get(ctx, client.ObjectKey{Name: name}, pv)
		if err == nil && (pv.Status.Phase != corev1.VolumeReleased || pv.Spec.Capacity.Storage().Cmp(resource.MustParse("2Mi")) != 0 || len(pv.OwnerReferences) > 0) {
			err = fmt.Errorf("it is %s, with %s", pv.Status.Phase, pv.Spec.Capacity.Storage())
		}
		return err
	})
}
