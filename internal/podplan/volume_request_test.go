package podplan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

func field(text string) *pavv1.Template { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func requestOf(claim map[string]any) VolumeRequest {
	return VolumeRequest{
		Claim:     claim,
		Class:     map[string]any{"parameters": map[string]any{"pool": "gold"}},
		Templates: template.NewEvaluator(template.DefaultLimits()),
		GetPVC:    func(context.Context, string, string) (map[string]any, error) { return nil, template.ErrNoClaim },
	}
}

// volumeOf returns the outcome for a definition without pods.
func volumeOf(t *testing.T, r VolumeRequest, validation *pavv1.VolumeValidation, creation *pavv1.VolumeCreation) (VolumeOutcome, error) {
	t.Helper()
	if _, err := r.Validate(t.Context(), validation); err != nil {
		return VolumeOutcome{}, err
	}
	c, err := r.Create(t.Context(), creation)
	if err != nil {
		return VolumeOutcome{}, err
	}
	return c.Outcome(nil)
}

func claimFor(mode string, accessModes []any, request, limit string) map[string]any {
	resources := map[string]any{"requests": map[string]any{"storage": request}}
	if limit != "" {
		resources["limits"] = map[string]any{"storage": limit}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "data", "namespace": "apps", "uid": "u1"},
		"spec":     map[string]any{"volumeMode": mode, "accessModes": accessModes, "resources": resources},
	}
}

func TestRequest(t *testing.T) {
	once := []any{"ReadWriteOnce"}
	capacity := &pavv1.VolumeCreation{Capacity: field(`"{{ requestedMinCapacity }}"`)}
	creation := func(handle, capacity string) *pavv1.VolumeCreation {
		return &pavv1.VolumeCreation{Handle: field(handle), Capacity: field(capacity)}
	}
	tests := map[string]struct {
		validation *pavv1.VolumeValidation
		creation   *pavv1.VolumeCreation
		claim      map[string]any
		want       VolumeOutcome
		err        string
	}{
		"defaults":                           {creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"handle and capacity are evaluated":  {creation: creation(`"{{ params.pool }}/{{ pvc.metadata.name }}"`, `"2Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"gold/data", 2 << 30}},
		"a capacity may be a number":         {creation: creation(`null`, `1073741824`), claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"the default handle can be used":     {creation: creation(`"x-{{ defaultHandle }}"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"x-pvc-u1", 1 << 30}},
		"no volumeCreation":                  {claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: is required, as there is no creation pod that could write /pav/capacity"},
		"a capacity below the request":       {creation: creation(`null`, `"512Mi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: the volume would have a capacity of 512Mi, but the claim requests 1Gi"},
		"a capacity that is none":            {creation: creation(`null`, `"big"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.capacity: "},
		"an empty handle":                    {creation: creation(`""`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: the handle is empty"},
		"a long handle":                      {creation: creation(`"`+strings.Repeat("x", 129)+`"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: the handle is 129 bytes long, and may have 128 at most"},
		"a handle of 128 bytes":              {creation: creation(`"`+strings.Repeat("x", 128)+`"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{strings.Repeat("x", 128), 1 << 30}},
		"a handle with a newline":            {creation: creation(`"a\nb"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: `spec.volumeCreation.handle: the handle "a\nb" has control characters`},
		"a handle that is a list":            {creation: creation(`["a"]`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: must be a string, not a list"},
		"a template that fails names itself": {creation: creation(`"{{ nope.nope }}"`, `"1Gi"`), claim: claimFor("Filesystem", once, "1Gi", ""), err: "spec.volumeCreation.handle: "},
		"a block volume is not supported":    {creation: capacity, claim: claimFor("Block", once, "1Gi", ""), err: "the claim asks for volume mode Block, but the provisioner supports only Filesystem"},
		"but by provisioners that say so":    {validation: &pavv1.VolumeValidation{VolumeModes: field(`["Block"]`)}, creation: capacity, claim: claimFor("Block", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"a mode that is none":                {validation: &pavv1.VolumeValidation{VolumeModes: field(`["Tape"]`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), err: `spec.volumeValidation.volumeModes[0]: "Tape" is none of Filesystem, Block`},
		"all access modes by default":        {creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"an access mode is not supported":    {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce", "ReadOnlyMany"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteMany"}, "1Gi", ""), err: "the claim asks for access mode ReadWriteMany, but the provisioner supports only ReadWriteOnce, ReadOnlyMany"},
		"one pod where one node is":          {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOncePod"}, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"one pod where one node is not":      {validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadOnlyMany"]`)}, creation: capacity, claim: claimFor("Filesystem", []any{"ReadWriteOncePod"}, "1Gi", ""), err: "access mode ReadWriteOncePod"},
		"a list may be a template":           {validation: &pavv1.VolumeValidation{AccessModes: field(`"{% set yaml = true %}[ReadWriteOnce]"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"a limit below the least capacity":   {validation: &pavv1.VolumeValidation{MinCapacity: field(`"10Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", "2Gi"), err: "the claim limits its capacity to 2Gi, but the provisioner's volumes have at least 10Gi"},
		"no limit":                           {validation: &pavv1.VolumeValidation{MinCapacity: field(`"10Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"a limit of the least capacity":      {validation: &pavv1.VolumeValidation{MinCapacity: field(`"2Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", "2Gi"), want: VolumeOutcome{"pvc-u1", 1 << 30}},
		"a request above the most capacity":  {validation: &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "2Gi", ""), err: "the claim requests a capacity of 2Gi, but the provisioner's volumes have at most 1Gi"},
		"a request of the most capacity":     {validation: &pavv1.VolumeValidation{MaxCapacity: field(`"1Gi"`)}, creation: capacity, claim: claimFor("Filesystem", once, "1Gi", ""), want: VolumeOutcome{"pvc-u1", 1 << 30}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := volumeOf(t, requestOf(test.claim), test.validation, test.creation)
			if text := fmt.Sprint(err); (err == nil) != (test.err == "") || !strings.Contains(text, test.err) && err != nil {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if err != nil && !IsRefusal(err) {
				t.Errorf("%v is not taken for a refusal", err)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	const asked, byDefault = 1 << 30, "pvc-u1"
	given := &Creation{Handle: "given", DefaultHandle: byDefault, Capacity: 2 << 30, Requested: asked}
	open := &Creation{DefaultHandle: byDefault, Requested: asked}
	tests := map[string]struct {
		creation *Creation
		result   *workflow.Result
		want     VolumeOutcome
		err      string
	}{
		"the definition comes first":         {creation: given, result: &workflow.Result{Handle: "pods", Capacity: "3Gi"}, want: VolumeOutcome{"given", 2 << 30}},
		"also before what cannot be read":    {creation: given, result: &workflow.Result{Unreadable: map[string]string{"handle": "is a directory", "capacity": "is a directory"}}, want: VolumeOutcome{"given", 2 << 30}},
		"then comes the pod":                 {creation: open, result: &workflow.Result{Handle: "pods", Capacity: "3Gi"}, want: VolumeOutcome{"pods", 3 << 30}},
		"then the default":                   {creation: open, result: &workflow.Result{Capacity: "1Gi"}, want: VolumeOutcome{byDefault, 1 << 30}},
		"bytes":                              {creation: open, result: &workflow.Result{Capacity: "1073741825"}, want: VolumeOutcome{byDefault, 1<<30 + 1}},
		"no capacity":                        {creation: open, result: &workflow.Result{}, err: "spec.volumeCreation.capacity is not given, and the creation pod wrote no /pav/capacity"},
		"a capacity below the request":       {creation: open, result: &workflow.Result{Capacity: "512Mi"}, err: "the creation pod's /pav/capacity: the volume would have a capacity of 512Mi, but the claim requests 1Gi"},
		"no quantity":                        {creation: open, result: &workflow.Result{Capacity: "NaN"}, err: `the creation pod's /pav/capacity: "NaN": the capacity is neither a quantity`},
		"a huge one":                         {creation: open, result: &workflow.Result{Capacity: "1e30"}, err: `the creation pod's /pav/capacity: "1e30": the capacity is more than 9223372036854775807 bytes`},
		"a negative one":                     {creation: open, result: &workflow.Result{Capacity: "-1"}, err: `the creation pod's /pav/capacity: "-1": the capacity is not above zero`},
		"none at all":                        {creation: open, result: &workflow.Result{Capacity: "0"}, err: `the creation pod's /pav/capacity: "0": the capacity is not above zero`},
		"a capacity that cannot be read":     {creation: open, result: &workflow.Result{Unreadable: map[string]string{"capacity": "is a directory"}}, err: "the creation pod's /pav/capacity: is a directory"},
		"a handle that cannot be read":       {creation: open, result: &workflow.Result{Capacity: "1Gi", Unreadable: map[string]string{"handle": "is a symbolic link"}}, err: "the creation pod's /pav/handle: is a symbolic link"},
		"a handle with a newline":            {creation: open, result: &workflow.Result{Capacity: "1Gi", Handle: "a\nb"}, err: `the creation pod's /pav/handle: the handle "a\nb" has control characters`},
		"a handle that is too long":          {creation: open, result: &workflow.Result{Capacity: "1Gi", Handle: strings.Repeat("x", 129)}, err: "the creation pod's /pav/handle: the handle is 129 bytes long, and may have 128 at most"},
		"a handle that looks like a path":    {creation: open, result: &workflow.Result{Capacity: "1Gi", Handle: "../../etc"}, want: VolumeOutcome{"../../etc", 1 << 30}},
		"no pod, and all in the definition":  {creation: given, want: VolumeOutcome{"given", 2 << 30}},
		"a handle of spaces is stored as is": {creation: open, result: &workflow.Result{Capacity: "1Gi", Handle: " a "}, want: VolumeOutcome{" a ", 1 << 30}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.creation.Outcome(test.result)
			if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || !IsRefusal(err)) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if err == nil && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTopology(t *testing.T) {
	zones := func(values ...any) map[string]any {
		return map[string]any{"allowedTopologies": []any{map[string]any{
			"matchLabelExpressions": []any{map[string]any{"key": "zone", "values": values}},
		}}}
	}
	node := map[string]any{"metadata": map[string]any{"name": "n1", "labels": map[string]any{"zone": "a"}}}
	ofNode := `[{"zone": "{{ selectedNode.metadata.labels.zone }}"}]`
	tests := map[string]struct {
		class, node map[string]any
		topology    string
		want        []pavv1.TopologyLabels
		confined    bool
		err         string
		isNode      bool
	}{
		"everywhere":                           {},
		"that of the node":                     {node: node, topology: ofNode, want: []pavv1.TopologyLabels{{"zone": "a"}}},
		"no node was selected":                 {topology: ofNode, err: "spec.volumeCreation.accessibleTopology[0]"},
		"not the node that was selected":       {node: node, topology: `[{"zone": "b"}]`, err: `the volume can be used from nodes with zone=b, but the scheduler chose node "n1"`, isNode: true},
		"allowed":                              {class: zones("a", "b"), topology: `[{"zone": "b"}]`, want: []pavv1.TopologyLabels{{"zone": "b"}}, confined: true},
		"not allowed":                          {class: zones("a", "b"), topology: `[{"zone": "c"}]`, err: "none of which the allowedTopologies of the StorageClass allow"},
		"only the pod is confined":             {class: zones("a"), confined: true},
		"a node outside the allowed ones":      {class: zones("b"), node: node, err: `the scheduler chose node "n1" for the claim's first consumer, which the allowedTopologies of the StorageClass do not allow`, isNode: true},
		"the scheduler has confined it before": {class: zones("a"), node: node, topology: ofNode, want: []pavv1.TopologyLabels{{"zone": "a"}}},
		"a template that yields a list":        {topology: `"{% set yaml = true %}[{zone: a}]"`, want: []pavv1.TopologyLabels{{"zone": "a"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := requestOf(claimFor("Filesystem", []any{"ReadWriteOnce"}, "1Gi", ""))
			r.Node = test.node
			if test.class != nil {
				r.Class = test.class
			}
			creation := &pavv1.VolumeCreation{Capacity: field(`"1Gi"`)}
			if test.topology != "" {
				creation.AccessibleTopology = field(test.topology)
			}
			got, err := r.Create(t.Context(), creation)
			if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || !IsRefusal(err)) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			var node *NodeError
			if errors.As(err, &node) != test.isNode {
				t.Errorf("another node is said to help: %v", !test.isNode)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, got.Topology); diff != "" || (got.Within != nil) != test.confined {
				t.Errorf("confined to %v, -want +got:\n%s", got.Within, diff)
			}
		})
	}
}

// Errors of the API server are not refusals: the request is retried, and nobody is notified.
func TestLookupsAreNoRefusals(t *testing.T) {
	r := requestOf(claimFor("Filesystem", []any{"ReadWriteOnce"}, "1Gi", ""))
	r.GetPVC = func(context.Context, string, string) (map[string]any, error) {
		return nil, errors.New("the API server is away")
	}
	_, err := r.Validate(t.Context(), &pavv1.VolumeValidation{MaxCapacity: field(`"{{ get_pvc('a', 'b').x }}"`)})
	if err == nil || IsRefusal(err) {
		t.Errorf("got %v", err)
	}
}

func TestPods(t *testing.T) {
	r := requestOf(claimFor(string(corev1.PersistentVolumeFilesystem), []any{"ReadWriteOnce"}, "1Gi", ""))
	pod := func(text string) *pavv1.Template {
		return field(`{"spec": {"containers": [{"name": "` + text + `"}]}}`)
	}
	want := func(name string) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": name}}}}
	}
	got, err := r.Validate(t.Context(), &pavv1.VolumeValidation{PodTemplate: pod("{{ pvc.metadata.name }}")})
	if diff := cmp.Diff(want("data"), got); diff != "" || err != nil {
		t.Errorf("validation (%v): %s", err, diff)
	}
	creation, err := r.Create(t.Context(), &pavv1.VolumeCreation{PodTemplate: pod("{{ defaultHandle }}")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want("pvc-u1"), creation.Pod); diff != "" || creation.Handle != "" || creation.Capacity != 0 {
		t.Errorf("creation (%+v): %s", creation, diff)
	}
	for handle, name := range map[string]string{"h": "h", "": "none"} {
		got, err := r.Deletion(t.Context(), &pavv1.VolumeDeletion{PodTemplate: pod("{{ volumeHandle or 'none' }}")}, handle)
		if diff := cmp.Diff(want(name), got); diff != "" || err != nil {
			t.Errorf("deletion of %q (%v): %s", handle, err, diff)
		}
	}
	if got, err := r.Deletion(t.Context(), nil, "h"); got != nil || err != nil {
		t.Errorf("no deletion: %v, %v", got, err)
	}
	if _, err := r.Validate(t.Context(), &pavv1.VolumeValidation{PodTemplate: field(`"text"`)}); !IsRefusal(err) {
		t.Errorf("a pod template that is none: %v", err)
	}
}
