package uninstall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestJudge_WaitsForReadyNodesOnly(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	with := func(name string, drivers ...string) storagev1.CSINode {
		csi := storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, driver := range drivers {
			csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: driver})
		}
		return csi
	}
	ready, unreachable := judge(
		[]storagev1.CSINode{with("up", "other", pavv1.Driver), with("done", "other"), with("down", pavv1.Driver), with("silent", pavv1.Driver), with("gone", pavv1.Driver)},
		[]corev1.Node{node("up", corev1.ConditionTrue), node("done", corev1.ConditionTrue), node("down", corev1.ConditionFalse), node("silent", corev1.ConditionUnknown)},
	)
	if diff := cmp.Diff([][]string{{"up"}, {"down", "silent", "gone"}}, [][]string{ready, unreachable}); diff != "" {
		t.Errorf("ready and unreachable nodes (-want +got):\n%s", diff)
	}
}
