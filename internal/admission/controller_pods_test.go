package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestUnplannedRights(t *testing.T) {
	privileged := func(container string) corev1.PodSpec {
		return corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{Name: container, Image: container, SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	}
	on := func(node string) corev1.PodSpec { return corev1.PodSpec{NodeName: node} }
	plan := func(spec corev1.PodSpec) *corev1.Pod { return &corev1.Pod{Spec: spec} }
	other := privileged("main")
	other.HostPID, other.Containers[0].Image = false, "another"
	sidecar := privileged("main")
	sidecar.Containers = append(sidecar.Containers, corev1.Container{Name: "sidecar"})
	for name, tt := range map[string]struct {
		pod     corev1.PodSpec
		planned *corev1.Pod
		want    []string
	}{
		"what is planned":                           {pod: privileged("main"), planned: plan(privileged("main"))},
		"less than is planned, in another image":    {pod: other, planned: plan(privileged("main"))},
		"a sidecar without rights":                  {pod: sidecar, planned: plan(privileged("main"))},
		"another container than the privileged one": {pod: privileged("other"), planned: plan(privileged("main")), want: []string{"spec.containers[other].securityContext.privileged"}},
		"a pod where none is planned":               {pod: privileged("main"), want: []string{"spec.containers[main].securityContext.privileged", "spec.hostPID"}},
		"a pod where a modest one is planned":       {pod: on("a"), planned: plan(corev1.PodSpec{}), want: []string{"spec.nodeName=a"}},
		"another node":                              {pod: on("a"), planned: plan(on("b")), want: []string{"spec.nodeName=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, unplanned(workflow.NodeRights(&tt.pod), tt.planned), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rights that are not planned (-want +got):\n%s", diff)
			}
		})
	}
}

// A snapshot's pods are judged with the copies in its PavSnapshot, and the definition as it is.
func TestJudge_PodsOfSnapshots(t *testing.T) {
	json := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	const hostPath = `{"spec": {"volumes": [{"name": "base", "hostPath": {"path": "/srv/{{ %s }}"}}], "containers": [{"name": "main", "image": "none"}]}}`
	inDirectory := func(variable string) *pavv1.Template { return json(strings.Replace(hostPath, "%s", variable, 1)) }
	scheme := runtime.NewScheme()
	if err := pavv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := &ControllerPodHandler{
		Templates: template.NewEvaluator(template.DefaultLimits()),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			&pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: pavv1.PavProvisionerSpec{
				SnapshotCreation: &pavv1.SnapshotCreation{PodTemplate: inDirectory("snapshot.metadata.namespace")},
				SnapshotDeletion: &pavv1.SnapshotDeletion{PodTemplate: inDirectory("snapshotHandle")},
			}},
			&pavv1.PavSnapshot{
				ObjectMeta: metav1.ObjectMeta{Name: "snapshot-1", UID: "u1"},
				Spec: pavv1.PavSnapshotSpec{Provisioner: "demo", Objects: pavv1.SnapshotObjects{
					Snapshot: json(`{"metadata": {"namespace": "team"}}`),
				}},
				Status: pavv1.PavSnapshotStatus{Handle: "cut"},
			},
			&pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snapshot-2", UID: "u2"}, Spec: pavv1.PavSnapshotSpec{Provisioner: "none"}},
		).Build(),
	}
	for name, tt := range map[string]struct {
		kind, path string
		change     func(*metav1.OwnerReference)
		refusal    string // words of it; none where the pod is admitted
	}{
		"a creation pod":                       {kind: "snapshot", path: "/srv/team"},
		"a deletion pod":                       {kind: "unsnapshot", path: "/srv/cut"},
		"a creation pod with another path":     {kind: "snapshot", path: "/srv/cut", refusal: "does not plan"},
		"a pod of a workflow of volumes":       {kind: "delete", path: "/srv/cut", refusal: "does not plan"},
		"a pod of a snapshot that is gone":     {kind: "snapshot", path: "/srv/team", change: func(o *metav1.OwnerReference) { o.Name = "gone" }, refusal: `PavSnapshot "gone" does not exist`},
		"a pod of a former snapshot":           {kind: "snapshot", path: "/srv/team", change: func(o *metav1.OwnerReference) { o.UID = "u0" }, refusal: "another one by now"},
		"a pod of a provisioner that is none":  {kind: "snapshot", path: "/srv/team", change: func(o *metav1.OwnerReference) { o.Name, o.UID = "snapshot-2", "u2" }, refusal: `PavProvisioner "none" does not exist`},
		"a pod of a PavStage":                  {kind: "snapshot", path: "/srv/team", change: func(o *metav1.OwnerReference) { o.Kind = "PavStage" }, refusal: "is a PavStage, not a PavVolume or a PavSnapshot or a PavBucket or a PavBucketAccess"},
		"a pod of another group's PavSnapshot": {kind: "snapshot", path: "/srv/team", change: func(o *metav1.OwnerReference) { o.APIVersion = "example.org/v1" }, refusal: "not a PavVolume"},
	} {
		t.Run(name, func(t *testing.T) {
			owner := metav1.OwnerReference{APIVersion: pavv1.GroupVersion.String(), Kind: "PavSnapshot", Name: "snapshot-1", UID: "u1"}
			if tt.change != nil {
				tt.change(&owner)
			}
			err := handler.judge(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pavv1.WorkflowLabel: tt.kind}, OwnerReferences: []metav1.OwnerReference{owner}},
				Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "base", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: tt.path}}}}},
			})
			var refused *RefusalError
			switch {
			case tt.refusal == "" && err != nil:
				t.Errorf("it is not admitted: %v", err)
			case tt.refusal != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.refusal)):
				t.Errorf("got %v, want a refusal with %q", err, tt.refusal)
			}
		})
	}
}
