package stage

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// scoped is a Catalogue with one volume, whose provisioner has a scope; or there is none.
type scoped struct {
	nodetest.Provisioners

	scope   pavv1.StagingScope
	volumes []string
	looks   int
}

// Provisioner implements Catalogue.
func (s *scoped) Provisioner(context.Context, string) (*pavv1.PavProvisioner, error) {
	if s.scope == "" {
		return nil, nil
	}
	return &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{Scope: s.scope}}}, nil
}

// VolumeNames implements Catalogue.
func (s *scoped) VolumeNames(context.Context, string, string) ([]string, error) {
	s.looks++
	return s.volumes, nil
}

var expectedVolume = Expected{Volume: Volume{Driver: "driver", Handle: "handle"}, Name: "pv"}

func TestStageAhead_IsForScopeNode(t *testing.T) {
	for name, test := range map[string]struct {
		scope pavv1.StagingScope
		want  int
	}{
		"all pods of a node share the volume": {pavv1.StagingScopeNode, 1},
		"each pod has a stage":                {pavv1.StagingScopePod, 0},
		"the provisioner is gone":             {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			catalogue := &scoped{scope: test.scope}
			n.stager.catalogue = catalogue
			err := n.stager.StageAhead(t.Context(), expectedVolume)
			if catalogue.looks != test.want || err != nil {
				t.Errorf("it looked for the volume %d times, want %d: %v", catalogue.looks, test.want, err)
			}
			if len(n.ended) > 0 {
				t.Errorf("it counts as a call of kubelet for %v", n.ended)
			}
		})
	}
}

// What is left of an earlier use, or another node has, is for kubelet's call.
func TestStageAhead_LeavesWhatExists(t *testing.T) {
	n := newNode(t)
	catalogue := &scoped{scope: pavv1.StagingScopeNode}
	n.stager.catalogue = catalogue
	_, name := podplan.StageNames(expectedVolume.Driver, expectedVolume.Handle, "node")
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Name = name
		n.API.Stages[name] = stage
	})
	before := n.API.Stages[name].DeepCopy()
	if err := n.stager.StageAhead(t.Context(), expectedVolume); err != nil || catalogue.looks > 0 {
		t.Errorf("it looked for the volume %d times: %v", catalogue.looks, err)
	}
	if diff := cmp.Diff(before, n.API.Stages[name]); diff != "" {
		t.Errorf("the PavStage was changed (-before +after):\n%s", diff)
	}
}

// A call that is under way does the same.
func TestStageAhead_YieldsToACall(t *testing.T) {
	n := newNode(t)
	n.stager.catalogue = &scoped{scope: pavv1.StagingScopeNode}
	release, err := n.stager.Lock(Subject{Volume: expectedVolume.Volume})
	must(t, err)
	defer release()
	if err := n.stager.StageAhead(t.Context(), expectedVolume); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
}

// awaitedWorld has the objects by which a volume is awaited on a node.
type awaitedWorld struct {
	scope   pavv1.StagingScope
	volumes []string
	pv      *corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	node    *corev1.Node
	pod     *corev1.Pod
}

// A tenant who writes the annotation of the scheduler must not have volumes staged on nodes where its pods cannot run.
func TestIsAwaited(t *testing.T) {
	tests := map[string]struct {
		change func(*awaitedWorld)
		want   bool
	}{
		"a pod waits":                    {func(*awaitedWorld) {}, true},
		"no volume is known":             {func(w *awaitedWorld) { w.volumes = nil }, false},
		"the volume has another name":    {func(w *awaitedWorld) { w.volumes = []string{"other"} }, false},
		"two volumes have the handle":    {func(w *awaitedWorld) { w.volumes = []string{"pv", "pv-2"} }, false},
		"the volume was replaced":        {func(w *awaitedWorld) { w.pv.Spec.CSI.VolumeHandle = "other" }, false},
		"many nodes can have it":         {func(w *awaitedWorld) { w.pv.Spec.AccessModes[0] = corev1.ReadWriteMany }, false},
		"the volume is bound to nothing": {func(w *awaitedWorld) { w.pv.Spec.ClaimRef = nil }, false},
		"the volume is of other nodes":   {func(w *awaitedWorld) { w.pv.Spec.NodeAffinity = zoneB() }, false},
		"the claim was replaced":         {func(w *awaitedWorld) { w.claim.UID = "other" }, false},
		"the claim is bound to another":  {func(w *awaitedWorld) { w.claim.Spec.VolumeName = "other" }, false},
		"the claim is not bound yet":     {func(w *awaitedWorld) { w.claim.Status.Phase = corev1.ClaimPending }, false},
		"the pod has ended":              {func(w *awaitedWorld) { w.pod.Status.Phase = corev1.PodFailed }, false},
		"the claim is being deleted": {func(w *awaitedWorld) {
			w.claim.DeletionTimestamp, w.claim.Finalizers = new(metav1.Now()), []string{"a/b"}
		}, false},
		"another node was chosen":         {func(w *awaitedWorld) { w.claim.Annotations[protocol.SelectedNode] = "other" }, false},
		"no pod uses the claim":           {func(w *awaitedWorld) { w.pod.Spec.Volumes = nil }, false},
		"the pod is on a node":            {func(w *awaitedWorld) { w.pod.Spec.NodeName = "other" }, false},
		"the pod is in another namespace": {func(w *awaitedWorld) { w.pod.Namespace = "other" }, false},
		"the pod is being deleted":        {func(w *awaitedWorld) { w.pod.DeletionTimestamp, w.pod.Finalizers = new(metav1.Now()), []string{"a/b"} }, false},
		"the pod is not to be scheduled":  {func(w *awaitedWorld) { w.pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }, false},
		"the pod selects other nodes":     {func(w *awaitedWorld) { w.pod.Spec.NodeSelector = map[string]string{"zone": "b"} }, false},
		"the pod selects this node":       {func(w *awaitedWorld) { w.pod.Spec.NodeSelector = map[string]string{"zone": "a"} }, true},
		"the node is cordoned":            {func(w *awaitedWorld) { w.node.Spec.Unschedulable = true }, false},
		"the node is for others": {func(w *awaitedWorld) {
			w.node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, false},
		"the node is rather for others": {func(w *awaitedWorld) {
			w.node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, true},
		"the pod tolerates the taint": {func(w *awaitedWorld) {
			w.node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoExecute}}
			w.pod.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAwaitedWorld()
			test.change(w)
			s := w.stager()
			if got, err := s.IsAwaited(t.Context(), expectedVolume); err != nil || got != test.want {
				t.Errorf("got %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

// A pod that has come must be one that kubelet starts, with a volume that it mounts there.
func TestIsAwaited_ByAPodThatHasCome(t *testing.T) {
	tests := map[string]struct {
		change func(*awaitedWorld)
		want   bool
	}{
		"a pod starts":            {func(*awaitedWorld) {}, true},
		"another node was chosen": {func(w *awaitedWorld) { w.claim.Annotations = nil }, true},
		"many nodes can have it":  {func(w *awaitedWorld) { w.pv.Spec.AccessModes[0] = corev1.ReadWriteMany }, false},
		"the node is cordoned":    {func(w *awaitedWorld) { w.node.Spec.Unschedulable = true }, true},
		"the node is shutting down": {func(w *awaitedWorld) {
			w.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, false},
		"the node is being drained": {func(w *awaitedWorld) {
			w.node.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoExecute}}
		}, false},
		"the node is for others": {func(w *awaitedWorld) {
			w.node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, true},
		"the pod selects other nodes":  {func(w *awaitedWorld) { w.pod.Spec.NodeSelector = map[string]string{"zone": "b"} }, false},
		"no container mounts it":       {func(w *awaitedWorld) { w.pod.Spec.Containers = nil }, false},
		"it is a block volume":         {func(w *awaitedWorld) { w.claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, false},
		"the pod wants a block volume": {func(w *awaitedWorld) { wantsBlock(w.pod) }, false},
		"both are of block volumes": {func(w *awaitedWorld) {
			wantsBlock(w.pod)
			w.claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		}, true},
		"the pod's own, ephemeral volume": {func(w *awaitedWorld) {
			isEphemeral(w)
			w.claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: w.pod.Name, UID: w.pod.UID, Controller: new(true)}}
		}, true},
		"a claim that has the name of the pod's ephemeral volume": {isEphemeral, false},
		"the pod runs":                   {func(w *awaitedWorld) { w.pod.Status.Phase = corev1.PodRunning }, false},
		"kubelet has refused the pod":    {func(w *awaitedWorld) { w.pod.Status.Phase = corev1.PodFailed }, false},
		"the pod is on another node":     {func(w *awaitedWorld) { w.pod.Spec.NodeName = "other" }, false},
		"the pod is on no node":          {func(w *awaitedWorld) { w.pod.Spec.NodeName = "" }, false},
		"the pod is being deleted":       {func(w *awaitedWorld) { w.pod.DeletionTimestamp, w.pod.Finalizers = new(metav1.Now()), []string{"a/b"} }, false},
		"another pod":                    {func(w *awaitedWorld) { w.pod.Spec.Volumes = nil }, false},
		"two volumes have the handle":    {func(w *awaitedWorld) { w.volumes = []string{"pv", "pv-2"} }, false},
		"the volume was replaced":        {func(w *awaitedWorld) { w.pv.Spec.CSI.VolumeHandle = "other" }, false},
		"the volume is bound to nothing": {func(w *awaitedWorld) { w.pv.Spec.ClaimRef = nil }, false},
		"the claim was replaced":         {func(w *awaitedWorld) { w.claim.UID = "other" }, false},
		"the claim is not bound yet":     {func(w *awaitedWorld) { w.claim.Status.Phase = corev1.ClaimPending }, false},
		"the claim is being deleted": {func(w *awaitedWorld) {
			w.claim.DeletionTimestamp, w.claim.Finalizers = new(metav1.Now()), []string{"a/b"}
		}, false},
		"the volume is of other nodes": {func(w *awaitedWorld) { w.pv.Spec.NodeAffinity = zoneB() }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAwaitedWorld()
			w.pod.Spec.NodeName = "node"
			test.change(w)
			arrived := expectedVolume
			arrived.Arrived = true
			if got, err := w.stager().IsAwaited(t.Context(), arrived); err != nil || got != test.want {
				t.Errorf("got %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

func TestVolumeOf(t *testing.T) {
	arrived := expectedVolume
	arrived.Arrived = true
	tests := map[string]struct {
		change func(*awaitedWorld)
		want   bool
	}{
		"PaV's volume":            {func(*awaitedWorld) {}, true},
		"another driver's volume": {func(w *awaitedWorld) { w.scope = "" }, false},
		"no driver's volume":      {func(w *awaitedWorld) { w.pv.Spec.CSI = nil }, false},
		"the volume is gone":      {func(w *awaitedWorld) { w.pv.Name = "other" }, false},
		"the claim is gone":       {func(w *awaitedWorld) { w.claim.Name = "other" }, false},
		"the claim has no volume": {func(w *awaitedWorld) { w.claim.Spec.VolumeName = "" }, false},
		"of a claim of that name": {func(w *awaitedWorld) { w.claim.Namespace = "other" }, false},
		"for each pod by itself":  {func(w *awaitedWorld) { w.scope = pavv1.StagingScopePod }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAwaitedWorld()
			test.change(w)
			got, is, err := w.stager().VolumeOf(t.Context(), types.NamespacedName{Namespace: "default", Name: "claim"})
			if err != nil || is != test.want || is && got != arrived {
				t.Errorf("got %+v, %t, %v; want %t", got, is, err, test.want)
			}
		})
	}
}

// wantsBlock makes a pod want its volume as a block device.
func wantsBlock(pod *corev1.Pod) {
	pod.Spec.Containers[0].VolumeMounts, pod.Spec.Containers[0].VolumeDevices = nil, []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}
}

// isEphemeral makes the pod's volume an ephemeral one, whose claim has the name of the claim.
func isEphemeral(w *awaitedWorld) {
	w.pod.Name, w.claim.Name, w.pv.Spec.ClaimRef.Name = "client", "client-data", "client-data"
	w.pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
}

// zoneB is what a volume has that only nodes of another zone can use.
func zoneB() *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}},
	}}}}
}

// stager returns a Stager of the node that sees the world.
func (w *awaitedWorld) stager() *Stager {
	return &Stager{node: "node", catalogue: &scoped{scope: w.scope, volumes: w.volumes}, client: fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithObjects(w.pv, w.claim, w.node, w.pod).Build()}
}

func newAwaitedWorld() *awaitedWorld {
	return &awaitedWorld{
		scope: pavv1.StagingScopeNode, volumes: []string{"pv"},
		pv: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				ClaimRef:    &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "u"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"},
				},
			},
		},
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "u", Annotations: map[string]string{protocol.SelectedNode: "node"}},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"zone": "a"}}},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "client", UID: "pod"},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
				}}},
			},
		},
	}
}

// The API server may add references to a pod, so that it is not admitted before its client is on the node. Another node may
// have the volume. Both are reported when kubelet calls, and not before.
func TestAhead_NobodyIsToldBeforeKubeletCalls(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(stage *pavv1.PavStage) { stage.Status.Phase = pavv1.StageStaging })
	ahead := n.stager.newTask(Subject{Volume: expectedVolume.Volume}, "")
	ahead.ahead, ahead.stage = true, n.API.Stages["stage-a"].DeepCopy()
	if err := ahead.failWithoutPod(t.Context(), pavv1.WorkflowStaging, errors.New("its template fails"), true); !errors.Is(err, ErrPending) {
		t.Errorf("a template that fails: got %v, want %v", err, ErrPending)
	}
	for _, answer := range []error{workflow.ErrRefused, workflow.ErrUnjudged} {
		if err := ahead.created(t.Context(), pavv1.WorkflowStaging, answer, true); !errors.Is(err, ErrPending) {
			t.Errorf("%v: got %v, want %v", answer, err, ErrPending)
		}
		if status := n.API.Stages["stage-a"].Status; status.StagingPod != nil || status.Phase != pavv1.StageStaging || status.StagingFailure != nil {
			t.Errorf("%v: the status is %+v", answer, status)
		}
	}
	other := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-b", UID: "other"}, Spec: pavv1.PavStageSpec{NodeName: "other"}}
	if err := ahead.awaitNode(t.Context(), ahead.stage, other); !errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want %v", err, ErrHeld)
	}
	if len(n.Events) > 0 {
		t.Errorf("event %s", <-n.Events)
	}
	called := n.stager.newTask(Subject{Volume: expectedVolume.Volume}, "")
	if err := called.awaitNode(t.Context(), ahead.stage, other); !errors.Is(err, ErrHeld) || len(n.Events) == 0 {
		t.Errorf("kubelet's first call: got %v, and %d events", err, len(n.Events))
	}
}
