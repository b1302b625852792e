package integration

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// kinds are the volumes that tests of a node's agent are about, each by the name that its handle begins with.
var kinds = []string{"made", "served", "block"}

func scopePod(p *pavv1.PavProvisioner) { p.Spec.VolumeStaging.Scope = pavv1.StagingScopePod }
func scopeNode(*pavv1.PavProvisioner)  {}

var scopes = map[string]func(*pavv1.PavProvisioner){"scope Node": scopeNode, "scope Pod": scopePod}

// onManyNodes lets many nodes have a volume at once.
func onManyNodes(v *corev1.PersistentVolume) {
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
}

// One volume in two pods, one of which may only read it, and every call twice. One that is served may be
// on many nodes.
func TestNode_LifeOfAVolume(t *testing.T) {
	for scope, change := range scopes {
		for _, kind := range kinds {
			t.Run(scope+", "+kind, func(t *testing.T) {
				n := newNode(t, workers(t, newDevices(t)), change)
				n.run(t)
				var v kubelet.Volume
				if kind == "served" {
					v = n.volume(t, kind, onManyNodes)
					v.Access = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
				} else {
					v = n.volume(t, kind)
				}
				writer, reader := clientOf(v, 1), clientOf(v, 2)
				reader.ReadOnly = true
				for range 2 {
					n.stage(t, v)
				}
				for range 2 {
					n.publish(t, v, writer)
					n.publish(t, v, reader)
				}
				n.wantRead(t, v, writer)
				n.wantRead(t, v, reader)
				for range 2 {
					n.unpublish(t, v, writer)
				}
				n.wantRead(t, v, reader)
				n.unpublish(t, v, reader)
				for range 2 {
					n.unstage(t, v)
				}
				want := runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging)
				if scope == "scope Pod" {
					want = runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging, pavv1.WorkflowStaging, pavv1.WorkflowUnstaging)
				}
				n.wantRuns(t, v, want)
				n.checkLeft(t)
			})
		}
	}
}
