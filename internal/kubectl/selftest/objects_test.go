package selftest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/internal/template"
)

func newRun(t *testing.T, yaml string, change func(*options)) *run {
	t.Helper()
	in, err := parse(t, yaml, "")
	if err != nil {
		t.Fatal(err)
	}
	o := &options{Name: "mine-test-1", Size: "64Mi", size: resource.MustParse("64Mi"), FSGroup: -1, Image: defaultImage}
	if change != nil {
		change(o)
	}
	return &run{options: o, input: in, name: o.Name, templates: template.NewEvaluator(template.DefaultLimits()), report: &Report{}}
}

func TestCopy_HasAllButTheName(t *testing.T) {
	r := newRun(t, provisionerYAML, nil)
	object := r.copyOf()
	if object.GetName() != "mine-test-1" || object.GetLabels()["team"] != "storage" || object.GetLabels()[instanceLabel] != "mine-test-1" {
		t.Errorf("the copy is %v", object.Object["metadata"])
	}
	if diff := cmp.Diff(r.input.document.Object["spec"], object.Object["spec"]); diff != "" {
		t.Errorf("the spec: -want +got:\n%s", diff)
	}
	if r.input.provisioner() != "mine" {
		t.Error("what was read was changed")
	}
}

func TestPatterns(t *testing.T) {
	r := newRun(t, provisionerYAML+usageYAML, func(o *options) { o.Parameters = map[string]string{"size": "large"} })
	class := r.class()
	if class.Name != "mine-test-1" || class.Provisioner != "mine-test-1" || *class.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("the class is %+v", class)
	}
	if diff := cmp.Diff(map[string]string{"colour": "green", "size": "large"}, class.Parameters); diff != "" {
		t.Errorf("the parameters: -want +got:\n%s", diff)
	}
	v := volume{mode: corev1.PersistentVolumeBlock, access: corev1.ReadWriteMany}
	claim := r.claim(v)
	if claim.Name != "block" || *claim.Spec.StorageClassName != "mine-test-1" || *claim.Spec.VolumeMode != v.mode ||
		claim.Spec.AccessModes[0] != v.access || claim.Annotations["base"] != "other" {
		t.Errorf("the claim is %+v", claim)
	}
	if size := claim.Spec.Resources.Requests.Storage().String(); size != "7Mi" {
		t.Errorf("the claim requests %s, want what the files say", size)
	}
	r.options.sizeGiven = true
	if size := r.claim(v).Spec.Resources.Requests.Storage().String(); size != "64Mi" {
		t.Errorf("the claim requests %s, want what the command line says", size)
	}
}

func TestVolumes(t *testing.T) {
	both := strings.Replace(provisionerYAML, "[Dynamic]", "[Dynamic, Static]", 1)
	tests := map[string]struct {
		validation string
		yaml       string
		change     func(*options)
		want       []string
		err        string
	}{
		"by default":            {want: []string{"Filesystem, ReadWriteMany"}},
		"both modes":            {validation: "volumeModes: [Filesystem, Block]", want: []string{"Filesystem, ReadWriteMany", "Block, ReadWriteMany"}},
		"no sharing":            {validation: "accessModes: [ReadWriteOnce]", want: []string{"Filesystem, ReadWriteOnce"}},
		"for reading":           {validation: "accessModes: [ReadOnlyMany]", want: []string{"Filesystem, ReadOnlyMany"}},
		"by a template":         {validation: `accessModes: ["{{ 'ReadWriteOnce' if requestedVolumeMode == 'Block' else 'ReadWriteMany' }}"], volumeModes: [Filesystem, Block]`, want: []string{"Filesystem, ReadWriteMany", "Block, ReadWriteOnce"}},
		"one mode of two":       {validation: "volumeModes: [Filesystem, Block]", change: func(o *options) { o.VolumeMode = "Block" }, want: []string{"Block, ReadWriteMany"}},
		"one access mode":       {change: func(o *options) { o.AccessMode = "ReadWriteOncePod" }, want: []string{"Filesystem, ReadWriteOncePod"}},
		"one that exists":       {yaml: both, change: func(o *options) { o.Handle = "h" }, want: []string{"Filesystem, ReadWriteMany", "Filesystem, ReadWriteMany, static"}},
		"none that exists":      {yaml: both, want: []string{"Filesystem, ReadWriteMany"}},
		"too large":             {validation: "maxCapacity: 1Mi", err: "the claim requests a capacity of 64Mi, but the provisioner's volumes have at most 1Mi"},
		"not supported":         {change: func(o *options) { o.VolumeMode = "Block" }, err: "the claim asks for volume mode Block"},
		"a template that fails": {validation: `volumeModes: ["{{ nothing.at_all }}"]`, err: "'nothing' is undefined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			yaml := provisionerYAML
			if test.yaml != "" {
				yaml = test.yaml
			}
			yaml = strings.Replace(yaml, "spec:\n", "spec:\n  volumeValidation: {"+test.validation+"}\n", 1)
			volumes, err := newRun(t, yaml, test.change).volumes(t.Context())
			var got []string
			for _, v := range volumes {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}

func TestPods_UserWhoIsNotRoot_PassesTheRestrictedProfile(t *testing.T) {
	r := newRun(t, provisionerYAML, func(o *options) { o.User, o.FSGroup = 1000, 2000 })
	pod := r.pod(clientPod{name: "p", volume: volume{mode: corev1.PersistentVolumeFilesystem}, holds: true})
	if s := pod.Spec.SecurityContext; *s.RunAsUser != 1000 || !*s.RunAsNonRoot || *s.FSGroup != 2000 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", s)
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("the security context of container %s is %+v", c.Name, s)
		}
	}
	if level := r.namespace().Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("the namespace enforces %s", level)
	}
}

func TestMadeUp(t *testing.T) {
	for given, want := range map[string]string{"mine": "mine-test-", strings.Repeat("a", 63): strings.Repeat("a", 52) + "-test-", "Not a label": "pav-test-"} {
		got := madeUp(given)
		if !strings.HasPrefix(got, want) || len(got) != len(want)+5 {
			t.Errorf("madeUp(%q) is %q", given, got)
		}
	}
}

func TestReaches(t *testing.T) {
	on := func(expressions ...corev1.NodeSelectorRequirement) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {MatchExpressions: expressions}}},
		}}}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a", "host": "1"}}}
	tests := map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"from everywhere":      {&corev1.PersistentVolume{}, true},
		"from here":            {on(in("zone", "b", "a")), true},
		"from elsewhere":       {on(in("zone", "b")), false},
		"from here, but for":   {on(in("zone", "a"), in("host", "2")), false},
		"by a label not there": {on(in("rack", "")), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reaches(test.pv, node); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A claim as "kubectl get -o yaml" shows it is bound: the test's must get a volume of its own.
func TestClaim_PatternIsBound_IsNot(t *testing.T) {
	r := newRun(t, provisionerYAML+usageYAML, nil)
	r.input.claim.Spec.VolumeName = "pvc-1"
	r.input.claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	r.input.claim.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	claim := r.claim(volume{mode: corev1.PersistentVolumeFilesystem, access: corev1.ReadWriteOnce})
	if claim.Spec.VolumeName != "" || claim.Spec.Selector != nil || claim.Annotations["pv.kubernetes.io/bind-completed"] != "" {
		t.Errorf("the claim is %+v", claim)
	}
}
