package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
)

const edited = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: files}
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation:
    capacity: "{{ requestedMinCapacity }}"
    podTemplate: {spec: {containers: [{name: c, image: "tools:1", args: ["mkdir {{ defaultHandle }}"]}]}}
  volumeDeletion:
    podTemplate: {spec: {containers: [{name: d, image: "tools:1", args: ["rm {{ volumeHandle }}"]}]}}
  volumeStaging:
    podTemplate: {spec: {containers: [{name: s, image: "tools:1", args: ["bind {{ handle }} on {{ node.metadata.name }}"]}]}}
`

// parsed returns a definition after replacements of its text.
func parsed(t *testing.T, replacements ...string) *pavv1.PavProvisioner {
	t.Helper()
	text := strings.NewReplacer(replacements...).Replace(edited)
	if len(replacements) > 0 && text == edited {
		t.Fatalf("%q replaces nothing", replacements)
	}
	plain := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &plain); err != nil {
		t.Fatal(err)
	}
	p, err := definitionOf(plain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dynamic returns a volume that PaV created for a claim, and that is staged nowhere.
func dynamic(t *testing.T, claim, mode string) *existing {
	t.Helper()
	v := bare(claim, mode)
	v.record = &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.name, UID: types.UID("record-" + claim)},
		Spec: pavv1.PavVolumeSpec{
			Provisioner: "files", ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: claim, UID: types.UID(claim)},
			StorageClass: apiextensionsv1.JSON{Raw: []byte("{}")}, Claim: jsonOf(t, v.staging.Claim),
		},
		Status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: v.name, Pods: 3},
	}
	v.class, v.request, v.owner = map[string]any{"parameters": map[string]any{}}, v.staging.Claim, v.staging.Claim
	v.staging.Provisioned = v.request
	return v
}

// static returns a volume that an administrator wrote.
func static(claim, mode string) *existing {
	v := bare(claim, mode)
	v.static = true
	delete(v.staging.Volume["metadata"].(map[string]any), "annotations")
	return v
}

func bare(claim, mode string) *existing {
	name := "pvc-" + claim
	v := &existing{claim: "apps/" + claim, name: name}
	v.staging.Claim = map[string]any{
		"metadata": map[string]any{"namespace": "apps", "name": claim, "uid": claim},
		"spec":     map[string]any{"accessModes": []any{mode}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}},
	}
	v.staging.Volume = map[string]any{
		"metadata": map[string]any{"name": name, "annotations": map[string]any{protocol.ProvisionedBy: "files"}},
		"spec": map[string]any{
			"accessModes": []any{mode}, "capacity": map[string]any{"storage": "1Gi"},
			"csi":      map[string]any{"driver": "files", "volumeHandle": name},
			"claimRef": map[string]any{"namespace": "apps", "name": claim, "uid": claim},
		},
	}
	v.staging.Node = placeholderNode("node-1")
	return v
}

func jsonOf(t *testing.T, value any) apiextensionsv1.JSON {
	t.Helper()
	raw, err := yaml.Marshal(value)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return apiextensionsv1.JSON{Raw: raw}
}

// changed returns how two definitions differ for a volume.
func changed(t *testing.T, before, after *pavv1.PavProvisioner, v *existing) []change {
	t.Helper()
	o := &options{limits: template.DefaultLimits()}
	old := o.renderExisting(t.Context(), before, template.NewEvaluator(o.limits), v)
	return changesOf(old, o.renderExisting(t.Context(), after, template.NewEvaluator(o.limits), v))
}

func TestChangesOf(t *testing.T) {
	const deletion = "  volumeDeletion:\n    podTemplate: {spec: {containers: [{name: d, image: \"tools:1\", args: [\"rm {{ volumeHandle }}\"]}]}}\n"
	rwo, rwx := string(corev1.ReadWriteOnce), string(corev1.ReadWriteMany)
	const begin = "  volumeCreation:"
	one, many := dynamic(t, "data", rwo), dynamic(t, "data", rwx)
	type edit = []string
	modes := edit{begin, "  volumeValidation: {accessModes: [ReadWriteOnce]}\n" + begin}
	validates := edit{begin, "  volumeValidation: {podTemplate: {spec: {containers: [{name: v, image: \"tools:1\"}]}}}\n" + begin}
	fails, images, noStatic := edit{"{{ handle }}", "{{ params.server }}"}, edit{"tools:1", "tools:2"}, edit{"[Dynamic, Static]", "[Dynamic]"}
	copies := edit{begin, begin + "\n    dataSources: [VolumeSnapshot]", "mkdir {{", "{{ source.handle if source else 'mkdir' }} {{"}
	restored := dynamic(t, "data", rwo)
	restored.record.Spec.Source = &pavv1.DataSource{Kind: pavv1.DataSourceSnapshot, Handle: "monday"}
	renamed := edit{"    capacity:", "    handle: new-{{ defaultHandle }}\n    capacity:"}
	tests := map[string]struct {
		before, after edit
		volume        *existing
		want          []string
		err           string
	}{
		"nothing":                         {volume: one},
		"the deletion pod":                {after: edit{"rm {{", "rm -r {{"}, volume: one, want: edit{"the deletion pod changes"}},
		"every pod":                       {after: images, volume: one, want: edit{"the creation pod changes", "the deletion pod changes", "the staging pod changes"}},
		"a static volume is only staged":  {after: images, volume: static("data", rwo), want: edit{"the staging pod changes"}},
		"a pod less":                      {after: edit{deletion, ""}, volume: one, want: edit{"there is no deletion pod any more"}},
		"a pod more":                      {before: edit{deletion, ""}, volume: one, want: edit{"there is a deletion pod now"}},
		"a validation pod renames no pod": {after: validates, volume: one, want: edit{"there is a validation pod now"}},
		"the handle of new volumes":       {after: renamed, volume: one, want: edit{"creation changes"}},
		"sources, for an empty volume":    {after: copies, volume: one},
		"sources, for one of a snapshot":  {before: copies, after: edit{copies[0], copies[1], "mkdir {{", "{{ source.kind if source else 'mkdir' }} {{"}, volume: restored, want: edit{"the creation pod changes"}},
		"no sources any more":             {before: copies, volume: restored, want: edit{"creation is refused"}},
		"a mode that is not supported":    {after: modes, volume: many, want: edit{"validation is refused"}},
		"a mode of a static volume":       {after: modes, volume: static("data", rwx), want: edit{"validation is refused"}},
		"a mode that is supported":        {after: modes, volume: one},
		"a static volume is refused":      {after: noStatic, volume: static("data", rwo), want: edit{"validation is refused"}},
		"a dynamic volume is not":         {after: noStatic, volume: one},
		"the new template fails":          {after: fails, volume: one, want: edit{"staging cannot be rendered"}, err: "has no attribute 'server'"},
		"the old template fails":          {before: fails, volume: one, want: edit{"staging is not refused any more"}},
		"both templates fail":             {before: fails, after: fails, volume: one, want: edit{"staging cannot be rendered"}, err: "has no attribute 'server'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var what []string
			var errs error
			for _, c := range changed(t, parsed(t, test.before...), parsed(t, test.after...), test.volume) {
				what = append(what, c.what())
				errs = errors.Join(errs, c.err)
			}
			if diff := cmp.Diff(test.want, what); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (errs == nil) != (test.err == "") || errs != nil && !strings.Contains(errs.Error(), test.err) {
				t.Errorf("got error %v, want %q", errs, test.err)
			}
		})
	}
}

// reported returns what the command prints for volumes, and its exit status.
func reported(t *testing.T, before, after *pavv1.PavProvisioner, volumes ...*existing) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "")
	r := &report{}
	for _, v := range volumes {
		if err := r.add(v, changed(t, before, after, v)); err != nil {
			t.Fatal(err)
		}
	}
	return shown(t, r, settingsOf(before, after))
}

func shown(t *testing.T, r *report, settings []setting) (stdout, stderr string, code int) {
	t.Helper()
	var out, problems bytes.Buffer
	env := &cli.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &problems}}
	err := r.show(t.Context(), env, object{}, settings)
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), problems.String(), code
}

func TestReport_Golden(t *testing.T) {
	rwo, rwx := string(corev1.ReadWriteOnce), string(corev1.ReadWriteMany)
	before := parsed(t)
	after := parsed(t, "rm {{", "rm -r {{", "{{ handle }}", "{{ {'ReadWriteOnce': handle}[accessModes[0]] }}", "Staging:\n", "Staging:\n    recovery: None\n")
	volumes := []*existing{dynamic(t, "data", rwo), dynamic(t, "logs", rwo), dynamic(t, "shared", rwx), static("disk", rwx)}
	stdout, stderr, code := reported(t, before, after, volumes...)
	golden(t, "volumes", fmt.Sprintf("%s\n==== standard error\n%s==== exit status %d\n", stdout, stderr, code))
}

func TestReport_ExitStatus(t *testing.T) {
	v := dynamic(t, "data", "ReadWriteOnce")
	for name, test := range map[string]struct {
		edit []string
		code int
		want string
	}{
		"nothing":           {nil, 0, "0 of 1 volumes: nothing changes\n"},
		"a pod":             {[]string{"rm {{", "rm -r {{"}, 1, "1 of 1 volumes: the deletion pod changes; it takes effect at once, "},
		"a setting":         {[]string{"Staging:\n", "Staging:\n    scope: Pod\n"}, 1, "all volumes: spec.volumeStaging.scope changes from Node to Pod; "},
		"kinds of sources":  {[]string{"  volumeCreation:", "  volumeCreation:\n    dataSources: [VolumeSnapshot]"}, 1, "all volumes: spec.volumeCreation.dataSources changes from [] to [VolumeSnapshot]; it takes effect for new claims"},
		"needed sources":    {[]string{"  volumeCreation:", "  volumeCreation:\n    dependsOnSource: true"}, 1, "all volumes: spec.volumeCreation.dependsOnSource changes from false to true; it takes effect at once"},
		"a failing pod":     {[]string{"rm {{", "rm {{ x }}{{"}, 2, "1 of 1 volumes: deletion cannot be rendered\n"},
		"a failure and one": {[]string{"rm {{", "rm {{ x }}{{", "mkdir", "mkdir -p"}, 2, "1 of 1 volumes: the creation pod changes; "},
	} {
		t.Run(name, func(t *testing.T) {
			if stdout, _, code := reported(t, parsed(t), parsed(t, test.edit...), v); code != test.code || !strings.Contains(stdout, test.want) {
				t.Errorf("exit status %d, want %d; got %q, want %q", code, test.code, stdout, test.want)
			}
		})
	}
}

// However many volumes there are, and however they differ, the report is short.
func TestReport_IsBounded(t *testing.T) {
	r := &report{}
	const volumes = 3 * maxGroups
	for i := range volumes {
		v := bare(fmt.Sprintf("claim-%d", i), "ReadWriteOnce")
		same := change{phase: deletion, before: &Phase{Phase: deletion, Handle: v.name}, after: &Phase{Phase: deletion, Handle: v.name + " now"}}
		other := change{phase: staging, after: &Phase{Phase: staging, Handle: fmt.Sprintf("unlike the other %d", i)}}
		unread := change{err: fmt.Errorf("reading the claim of %s failed", v.name)}
		if err := r.add(v, []change{same, other, unread}); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.groups) != 2+maxGroups || len(r.groups[0].volumes) != maxNamed || r.groups[0].count != volumes {
		t.Errorf("got %d groups, the first with %d names of %d volumes", len(r.groups), len(r.groups[0].volumes), r.groups[0].count)
	}
	stdout, stderr, code := shown(t, r, nil)
	for text, in := range map[string]string{
		fmt.Sprintf("staging differs in still other ways for %d volumes\n", volumes-maxGroups): stdout,
		fmt.Sprintf("  and %d more\n", volumes-maxNamed):                                       stdout,
		fmt.Sprintf("it cannot be read, for %d volumes:\n", volumes):                           stderr,
		"error: reading: reading the claim of pvc-claim-0 failed\n":                            stderr,
	} {
		if !strings.Contains(in, text) {
			t.Errorf("%q is not in:\n%s", text, in)
		}
	}
	if code != 2 {
		t.Errorf("exit status %d", code)
	}
}

func TestMasked(t *testing.T) {
	for name, test := range map[string]struct {
		a, b           string
		wordsA, wordsB []string
		same           bool
	}{
		"own handles":               {"rm /srv/one", "rm /srv/two", []string{"one"}, []string{"two"}, true},
		"the longer word first":     {"rm one-more one", "rm two-more two", []string{"one", "one-more"}, []string{"two", "two-more"}, true},
		"other words":               {"rm /srv/one", "rm /srv/two", []string{"x"}, []string{"y"}, false},
		"parts of words":            {"rm ones", "rm twos", []string{"one"}, []string{"two"}, false},
		"words that change places":  {"mv one two", "mv two one", []string{"one", "two"}, []string{"one", "two"}, false},
		"short words mean anything": {"rm -r", "rm -f", []string{"r"}, []string{"f"}, false},
		"twice":                     {"one,one;oneone one", "two,two;twotwo two", []string{"one"}, []string{"two"}, false},
	} {
		if a, b := masked(test.a, test.wordsA), masked(test.b, test.wordsB); (a == b) != test.same {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}
