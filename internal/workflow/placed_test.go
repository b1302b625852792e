package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// placed returns the policy for a pod that the scheduler places.
func placed() PodPolicy {
	return PodPolicy{
		Workflow:    pavv1.WorkflowCreation,
		Name:        "create-0123",
		Owner:       metav1.OwnerReference{APIVersion: "v1alpha1", Kind: "PavVolume", Name: "the-volume", UID: "the-uid", Controller: new(true)},
		Annotations: map[string]string{pavv1.AttemptAnnotation: "1"},
	}
}

func TestBuild_ForTheScheduler_IsThisPod(t *testing.T) {
	want := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "create-0123", Namespace: "pav-pods",
			Labels:          map[string]string{pavv1.WorkflowLabel: "create"},
			Annotations:     map[string]string{pavv1.AttemptAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{placed().Owner},
			Finalizers:      []string{pavv1.PodFinalizer},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
			ActiveDeadlineSeconds: new(int64(86400)), NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Containers: []corev1.Container{{
				Name: "main", Image: "some", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{{Name: "pav", MountPath: "/pav"}},
			}},
			Volumes: []corev1.Volume{{Name: "pav", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pavv1.Driver}}}},
		},
	}
	if diff := cmp.Diff(want, mustBuild(t, least, placed())); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

func TestBuild_ForTheScheduler_LeavesPlacementToTheTemplate(t *testing.T) {
	spec := mustBuild(t, `
spec:
  nodeName: some-node
  priorityClassName: low
  nodeSelector: {a: b}
  tolerations: [{key: only, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}
  containers: [{name: main}]
`, placed()).Spec
	want := corev1.PodSpec{
		NodeName: "some-node", PriorityClassName: "low", NodeSelector: map[string]string{"a": "b", "kubernetes.io/os": "linux"},
		Tolerations: []corev1.Toleration{{Key: "only", Operator: corev1.TolerationOpExists}},
		Affinity:    &corev1.Affinity{NodeAffinity: required(corev1.NodeSelectorTerm{})},
	}
	got := corev1.PodSpec{
		NodeName: spec.NodeName, PriorityClassName: spec.PriorityClassName, NodeSelector: spec.NodeSelector,
		Tolerations: spec.Tolerations, Affinity: spec.Affinity,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the placement (-want +got):\n%s", diff)
	}
}

// A deadline would end the daemon that serves a volume, or interrupt its unstaging.
func TestBuild_GivesADeadlineToAllButStagingAndUnstagingPods(t *testing.T) {
	const own = `{spec: {activeDeadlineSeconds: 60, containers: [{name: main, image: some}]}}`
	for workflow, want := range map[string]int64{
		pavv1.WorkflowValidation: 86400, pavv1.WorkflowCreation: 86400, pavv1.WorkflowDeletion: 86400,
		pavv1.WorkflowStaging: 0, pavv1.WorkflowUnstaging: 0,
	} {
		f := placed()
		f.Workflow = workflow
		got := mustBuild(t, least, f).Spec.ActiveDeadlineSeconds
		if want == 0 && got != nil || want > 0 && (got == nil || *got != want) {
			t.Errorf("%s: got a deadline of %v, want %d", workflow, got, want)
		}
		if got := mustBuild(t, own, f).Spec.ActiveDeadlineSeconds; got == nil || *got != 60 {
			t.Errorf("%s: the template's own deadline is %v", workflow, got)
		}
	}
}

func TestBuild_LeavesAnotherOperatingSystemToTheTemplate(t *testing.T) {
	pod := mustBuild(t, `{spec: {nodeSelector: {kubernetes.io/os: plan9}, containers: [{name: main, image: some}]}}`, placed())
	if got := pod.Spec.NodeSelector["kubernetes.io/os"]; got != "plan9" {
		t.Errorf("got %q", got)
	}
}

// The required and preferred terms of the template stay as they are.
func TestBuild_PrefersOtherNodes(t *testing.T) {
	f := placed()
	f.Avoid = []string{"n1", "n2"}
	f.Within = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}
	pod := mustBuild(t, `
spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]
  containers: [{name: main, image: some}]
`, f)
	not := func(node string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}
	}
	want := &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: f.Within.DeepCopy(),
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 5, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}},
			{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{not("n1"), not("n2")}}},
		},
	}
	if diff := cmp.Diff(want, pod.Spec.Affinity.NodeAffinity); diff != "" {
		t.Errorf("the affinity (-want +got):\n%s", diff)
	}

	onNode := fence()
	onNode.Avoid = f.Avoid
	if diff := cmp.Diff(mustBuild(t, least, fence()), mustBuild(t, least, onNode)); diff != "" {
		t.Errorf("a pod that is bound to its node (-want +got):\n%s", diff)
	}
}

func TestBuild_LetsMountsOfAllButStagingAndUnstagingPodsBeTheirOwn(t *testing.T) {
	const template = `{spec: {initContainers: [{name: init, securityContext: {privileged: true}}], containers: [{name: main}, {name: privileged, securityContext: {privileged: true}}]}}`
	const none, in, both = "", string(corev1.MountPropagationHostToContainer), string(corev1.MountPropagationBidirectional)
	for workflow, want := range map[string][]string{
		pavv1.WorkflowValidation: {none, none, none},
		pavv1.WorkflowCreation:   {none, none, none},
		pavv1.WorkflowDeletion:   {none, none, none},
		pavv1.WorkflowStaging:    {both, in, both},
		pavv1.WorkflowUnstaging:  {both, in, both},
	} {
		t.Run(workflow, func(t *testing.T) {
			f := placed()
			f.Workflow = workflow
			var got []string
			eachContainer(&mustBuild(t, template, f).Spec, func(container *corev1.Container) {
				propagation := none
				if p := container.VolumeMounts[0].MountPropagation; p != nil {
					propagation = string(*p)
				}
				got = append(got, propagation)
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the propagation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuild_RefusesPodsThatAreAlwaysRestarted_InAllButStagingPods(t *testing.T) {
	for _, workflow := range []string{pavv1.WorkflowValidation, pavv1.WorkflowCreation, pavv1.WorkflowDeletion} {
		f := placed()
		f.Workflow = workflow
		if _, err := build(t, `{spec: {restartPolicy: Always, containers: [{name: main}]}}`, f); err == nil || !strings.Contains(err.Error(), ".spec.restartPolicy: ") {
			t.Errorf("%s: got %v", workflow, err)
		}
	}
}

// label returns a requirement for a label, or a field, of a node.
func label(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

func expressions(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// affine returns a template with these terms of node affinity, in YAML.
func affine(terms string) string {
	return `{spec: {containers: [{name: main}], affinity: {podAffinity: {}, nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + terms + `]}}}}}`
}

func TestBuild_ConfinesThePod(t *testing.T) {
	type terms = []corev1.NodeSelectorTerm
	const a, b = `{matchExpressions: [{key: own, operator: In, values: [a]}]}`, `{matchFields: [{key: metadata.name, operator: In, values: [b]}]}`
	field := label("metadata.name", "b")
	for name, test := range map[string]struct {
		template     string
		within, want terms
	}{
		"a template without affinity":   {least, terms{expressions(label("zone", "x")), expressions(label("zone", "y"))}, terms{expressions(label("zone", "x")), expressions(label("zone", "y"))}},
		"a template without terms":      {affine(""), terms{expressions(label("zone", "x"))}, terms{expressions(label("zone", "x"))}},
		"each of the template's with x": {affine(a + "," + b), terms{expressions(label("zone", "x"))}, terms{expressions(label("own", "a"), label("zone", "x")), {MatchExpressions: []corev1.NodeSelectorRequirement{label("zone", "x")}, MatchFields: []corev1.NodeSelectorRequirement{field}}}},
		"one of the template's with both": {affine(a), terms{expressions(label("zone", "x")), {MatchFields: []corev1.NodeSelectorRequirement{field}}}, terms{
			expressions(label("own", "a"), label("zone", "x")), {MatchExpressions: []corev1.NodeSelectorRequirement{label("own", "a")}, MatchFields: []corev1.NodeSelectorRequirement{field}},
		}},
		"terms that are empty are no nodes": {affine("{}," + a), terms{{}, expressions(label("zone", "x"))}, terms{expressions(label("own", "a"), label("zone", "x"))}},
	} {
		t.Run(name, func(t *testing.T) {
			f := placed()
			f.Within = &corev1.NodeSelector{NodeSelectorTerms: test.within}
			before := f.Within.DeepCopy()
			affinity := mustBuild(t, test.template, f).Spec.Affinity
			if diff := cmp.Diff(required(test.want...), affinity.NodeAffinity); diff != "" {
				t.Errorf("the affinity (-want +got):\n%s", diff)
			}
			if (affinity.PodAffinity != nil) != strings.Contains(test.template, "podAffinity") {
				t.Error("the rest of the affinity is not the template's")
			}
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key = "changed"
			if diff := cmp.Diff(before, f.Within); diff != "" {
				t.Errorf("the fence's nodes (-before +after):\n%s", diff)
			}
		})
	}
}

func TestBuild_ConfinesAPodThatIsBoundToItsNodeAsWell(t *testing.T) {
	f := fence()
	f.Within = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{expressions(label("zone", "x"))}}
	want := required(corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{label("zone", "x")}, MatchFields: []corev1.NodeSelectorRequirement{onNode},
	})
	if diff := cmp.Diff(want, mustBuild(t, least, f).Spec.Affinity.NodeAffinity); diff != "" {
		t.Errorf("the affinity (-want +got):\n%s", diff)
	}
}

func TestBuild_RefusesWhatCannotBeConfined(t *testing.T) {
	const a = `{matchExpressions: [{key: own, operator: Exists}]}`
	some := func(n int) []corev1.NodeSelectorTerm {
		var terms []corev1.NodeSelectorTerm
		for i := range n {
			terms = append(terms, expressions(label("zone", fmt.Sprint(i))))
		}
		return terms
	}
	affineTo := func(n int) string { return affine(strings.Join(slices.Repeat([]string{a}, n), ",")) }
	for name, test := range map[string]struct {
		template string
		within   []corev1.NodeSelectorTerm
		words    string // of the error; empty if the pod is not refused
	}{
		"too many combinations":                       {affineTo(11), some(10), "its 11 terms, confined to the 10 of the allowed nodes, make more than 100"},
		"as many combinations as there may be":        {affineTo(10), some(10), ""},
		"many nodes for a template that has no terms": {least, some(200), ""},
		"a template whose terms are no nodes":         {affine("{}"), some(1), "no node is left"},
		"nodes that are none":                         {affineTo(1), []corev1.NodeSelectorTerm{{}}, "no node is left"},
		"nodes that are none, without terms":          {least, nil, "no node is left"},
	} {
		t.Run(name, func(t *testing.T) {
			f := placed()
			f.Within = &corev1.NodeSelector{NodeSelectorTerms: test.within}
			_, err := build(t, test.template, f)
			if test.words == "" && err != nil || test.words != "" && (err == nil || !strings.HasPrefix(err.Error(), field+".spec.affinity.nodeAffinity: ") || !strings.Contains(err.Error(), test.words)) {
				t.Errorf("got %v, want %q", err, test.words)
			}
		})
	}
}
