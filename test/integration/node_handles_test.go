package integration

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/kubelet"
)

// pathLike are handles that would lead elsewhere where they are taken for paths, or lose a byte where they are
// cleaned, decoded or cut.
var pathLike = []string{"../x", "/", "..", "a//b", "/etc/./passwd/", "%2e%2e", strings.Repeat("é", 64)}

// seeing is the template of a pod that has an annotation of the handle that it sees.
func seeing(variable string) string {
	return `{
		"metadata": {"annotations": {"sees": "{{ ` + variable + ` }}"}},
		"spec": {"containers": [{"name": "main", "image": "none", "securityContext": {"privileged": true}}]}
	}`
}

// wantSeen fails the test unless a pod saw a handle, byte for byte.
func wantSeen(t *testing.T, pod *corev1.Pod, handle string) {
	t.Helper()
	if seen, noted := pod.Annotations["sees"], pod.Annotations[pavv1.HandleAnnotation]; seen != handle || noted != handle {
		t.Errorf("pod %s sees the handle %q and is annotated with %q, want %q", pod.Name, seen, noted, handle)
	}
}

// Handles that look like paths are not used as paths: a volume is created, staged twice and deleted, each pod sees the
// handle as the creation pod wrote it, and nothing on the node is named after it.
func TestNode_HandlesThatLookLikePaths(t *testing.T) {
	n := newNode(t, sighted(t), func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeCreation.PodTemplate = field(`{"spec": {"containers": [{"name": "main", "image": "none"}]}}`)
		p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: field(seeing("volumeHandle"))}
		p.Spec.VolumeStaging.PodTemplate, p.Spec.VolumeUnstaging.PodTemplate = *field(seeing("handle")), field(seeing("handle"))
	})
	class := mustCreate(t, n.c, classOf(n.provisioner))
	t.Cleanup(func() { // Nobody else does what the controller agent does when it has ended.
		mustDeleteLasting(t, n.c, class)
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
		if err := n.c.Admin.Patch(lasting(t), &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.provisioner}}, free); err != nil {
			t.Error(err)
		}
		_ = n.c.Admin.Delete(lasting(t), csiDriver(n.provisioner))
	})
	n.run(t)
	controller := agent.Launch(t, n.c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() { controller.Stop(t) })

	for i, handle := range pathLike {
		t.Run(strconv.Quote(handle), func(t *testing.T) {
			claim := mustCreate(t, n.c, claimOf(n.provisioner, "path-like-"+strconv.Itoa(i)))
			creation, _ := podOf(t, n.c, claim, pavv1.WorkflowCreation)
			end(t, n.c, creation, workflow.Result{Handle: handle}, 0)
			pv, volume := bound(t, n.c, claim)
			if pv.Spec.CSI.VolumeHandle != handle || volume.Status.Handle != handle {
				t.Fatalf("the PersistentVolume has the handle %q, and the record %q, want %q", pv.Spec.CSI.VolumeHandle, volume.Status.Handle, handle)
			}

			v := kubelet.Volume{Driver: n.provisioner, Handle: handle, Name: pv.Name}
			user := clientOf(v, 1)
			for range 2 {
				n.stage(t, v)
				n.publish(t, v, user)
				n.wantRead(t, v, user)
				n.wantNamesWithout(t, v)
				n.unpublish(t, v, user)
				n.unstage(t, v)
				n.checkLeft(t)
			}
			n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowUnstaging: 2})

			mustDelete(t, n.c, claim)
			deletion, _ := podOf(t, n.c, claim, pavv1.WorkflowDeletion)
			wantSeen(t, deletion, handle)
			end(t, n.c, deletion, workflow.Result{}, 0)
			gone(t, n.c, volume)
			gone(t, n.c, pv)
		})
	}
}

// sighted is the script of workers that look at the handle that they see.
func sighted(t *testing.T) kubelet.Script {
	t.Helper()
	work := workers(t, nil)
	return func(ctx context.Context, pod *kubelet.Pod) int32 {
		wantSeen(t, pod.Pod, pod.Handle())
		return work(ctx, pod)
	}
}

// wantNamesWithout fails the test unless the only stage on the node has one directory, of the name of its PavStage, and
// PaV's own directory has no others.
func (n *node) wantNamesWithout(t *testing.T, v kubelet.Volume) {
	t.Helper()
	stages := n.stages(t)
	if len(stages) != 1 || stages[0].Spec.VolumeHandle != v.Handle {
		t.Fatalf("there are %d stages, the first %+v", len(stages), stages)
	}
	own := filepath.Join(n.Dir, "plugins", pavv1.Driver)
	for directory, want := range map[string][]string{own: {"csi", "stages"}, filepath.Join(own, "stages"): {stages[0].Name}} {
		entries, err := os.ReadDir(directory)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			if entry.Type()&fs.ModeSocket == 0 {
				names = append(names, entry.Name())
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s has %q, want %q", directory, names, want)
		}
	}
}
