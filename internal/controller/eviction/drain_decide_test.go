package eviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func podOf(apiVersion, kind string) *corev1.Pod {
	pod := &corev1.Pod{}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: new(true)}}
	}
	return pod
}

func TestDecideDrain(t *testing.T) {
	now := metav1.Now()
	daemon, replica, bare := podOf("apps/v1", "DaemonSet"), podOf("apps/v1", "ReplicaSet"), podOf("", "")
	owned := podOf("apps/v1", "DaemonSet")
	owned.OwnerReferences[0].Controller = nil
	leaving := replica.DeepCopy()
	leaving.DeletionTimestamp = &now
	const cordoned, open = true, false
	protected, evictable := &corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pavv1.EvictableLabel: "true"}}}
	tests := map[string]struct {
		cordoned bool
		staging  *corev1.Pod
		clients  []*corev1.Pod
		want     drainAction
	}{
		"a DaemonSet's client on a cordoned node": {cordoned, protected, []*corev1.Pod{daemon}, allowEviction},
		"two of them":                                      {cordoned, protected, []*corev1.Pod{daemon, daemon}, allowEviction},
		"it was exposed before":                            {cordoned, evictable, []*corev1.Pod{daemon}, keepLabel},
		"on a node that is not cordoned":                   {open, protected, []*corev1.Pod{daemon}, keepLabel},
		"the node is not cordoned any more":                {open, evictable, []*corev1.Pod{daemon}, preventEviction},
		"an ordinary client is there, too":                 {cordoned, protected, []*corev1.Pod{daemon, replica}, keepLabel},
		"an ordinary client is terminating":                {cordoned, protected, []*corev1.Pod{leaving, daemon}, keepLabel},
		"a client without a controller is there, too":      {cordoned, protected, []*corev1.Pod{daemon, bare}, keepLabel},
		"a client that a DaemonSet owns, but not controls": {cordoned, protected, []*corev1.Pod{owned}, keepLabel},
		"a DaemonSet of another API":                       {cordoned, protected, []*corev1.Pod{podOf("apps.example.org/v1", "DaemonSet")}, keepLabel},
		"an ordinary client has come since":                {cordoned, evictable, []*corev1.Pod{daemon, replica}, preventEviction},
		"it has no client, or one without a pod":           {cordoned, protected, nil, keepLabel},
		"its last client's pod has gone since":             {cordoned, evictable, nil, preventEviction},
		"it ends already":                                  {cordoned, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, []*corev1.Pod{daemon}, keepLabel},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideDrain(drainSnapshot{cordoned: test.cordoned, staging: test.staging, clients: test.clients}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestClientsOf(t *testing.T) {
	stage := func(client types.UID) *pavv1.PavStage {
		s := &pavv1.PavStage{Spec: pavv1.PavStageSpec{ClaimRef: pavv1.ClaimReference{Namespace: "ns", Name: "data"}}}
		if client != "" {
			s.Spec.Client = &pavv1.StageClient{UID: client}
		}
		return s
	}
	tests := map[string]struct {
		stage     *pavv1.PavStage
		namespace string
		claim     string
		phase     corev1.PodPhase
		want      bool
	}{
		"it runs":                           {stage(""), "ns", "data", corev1.PodRunning, true},
		"it waits for its volume":           {stage(""), "ns", "data", corev1.PodPending, true},
		"its node does not answer":          {stage(""), "ns", "data", corev1.PodUnknown, true},
		"it has completed":                  {stage(""), "ns", "data", corev1.PodSucceeded, false},
		"it has failed":                     {stage(""), "ns", "data", corev1.PodFailed, false},
		"it uses another claim":             {stage(""), "ns", "logs", corev1.PodRunning, false},
		"its namespace is another":          {stage(""), "other", "data", corev1.PodRunning, false},
		"it uses the claim that is bound":   {stage(""), "ns", "bound", corev1.PodRunning, true},
		"the stage is for this pod":         {stage("pod"), "ns", "data", corev1.PodRunning, true},
		"the stage is for another pod only": {stage("another"), "ns", "data", corev1.PodRunning, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "pod", UID: "pod"},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: test.claim},
				}}}},
				Status: corev1.PodStatus{Phase: test.phase},
			}
			bound := &corev1.ObjectReference{Namespace: "ns", Name: "bound"}
			if got := len(clientsOf(test.stage, bound, []corev1.Pod{pod})) == 1; got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestIsCordoned(t *testing.T) {
	tests := map[string]struct {
		spec corev1.NodeSpec
		want bool
	}{
		"it takes pods":                   {corev1.NodeSpec{}, false},
		"it is unschedulable":             {corev1.NodeSpec{Unschedulable: true}, true},
		"it has the taint for it":         {corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable}}}, true},
		"it has a taint for other things": {corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady}}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isCordoned(&corev1.Node{Spec: test.spec}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestNextLook_IsSoonWhileANodeIsDrained(t *testing.T) {
	now := time.Now()
	cordoned := func(before time.Duration) *corev1.Node {
		at := metav1.NewTime(now.Add(-before))
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, TimeAdded: &at}}}}
	}
	leaving := []corev1.Pod{{}, {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}}
	tests := map[string]struct {
		node *corev1.Node
		pods []corev1.Pod
		want time.Duration
	}{
		"it was cordoned just now":               {cordoned(time.Second), []corev1.Pod{{}}, soon},
		"it was cordoned a minute ago":           {cordoned(time.Minute), []corev1.Pod{{}}, soon},
		"it was cordoned an hour ago":            {cordoned(time.Hour), []corev1.Pod{{}}, later},
		"and now pods end there":                 {cordoned(time.Hour), leaving, soon},
		"it has not got the taint yet":           {&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, nil, soon},
		"the taint does not say since when":      {&corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable}}}}, nil, soon},
		"another taint is old, and not this one": {&corev1.Node{Spec: corev1.NodeSpec{Taints: append([]corev1.Taint{{Key: "a"}}, cordoned(0).Spec.Taints...)}}, nil, soon},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextLook(test.node, test.pods, now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
