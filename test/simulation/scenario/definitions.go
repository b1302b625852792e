// Package scenario has the people and the disturbances of the simulated world. Administrators define provisioners.
// Tenants claim, use and delete volumes. The disturber injects faults.
package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// definitions are the definitions of PavProvisioners, by name. Each covers a different set of features.
var definitions = map[string]string{
	"plain": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}", "ready") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}`,
	"named": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", byNote, "write-handle", "ready") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}`,
	"planned": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, handle: "{{ pvc.metadata.namespace }}-{{ pvc.metadata.name }}", podTemplate: ` +
		podWith(privileged, "create", "{{ pvc.metadata.namespace }}-{{ pvc.metadata.name }}") + `}
  volumeDeletion: {podTemplate: ` + podWith(privileged, "delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}`,
	"keyed": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + podWith(key, "stage", "{{ handle }}", "serve") + `}
  volumeUnstaging: {podTemplate: ` + podWith(key, "unstage", "{{ handle }}") + `}`,
	"growing": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}`,
	"validated": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeValidation: {podTemplate: ` + pod("validate") + `}
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}", "write-handle", "ready") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}`,
	"private": `
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {scope: Pod, podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}`,
	"local": `
spec:
  provisioningModes: [Dynamic]
  volumeCreation:
    capacity: 1Gi
    accessibleTopology: [{kubernetes.io/hostname: "{{ selectedNode.metadata.labels['kubernetes.io/hostname'] if selectedNode is defined else 'n1' }}"}]
    podTemplate: ` + pod("create", "{{ defaultHandle }}") + `
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}") + `}`,
	"raw": `
spec:
  provisioningModes: [Dynamic]
  volumeValidation: {volumeModes: [Block]}
  volumeCreation: {capacity: 1Gi, podTemplate: ` + pod("create", "{{ defaultHandle }}") + `}
  volumeDeletion: {podTemplate: ` + pod("delete", "{{ volumeHandle }}") + `}
  volumeStaging: {podTemplate: ` + podWith(privileged, "stage", "{{ handle }}", "serve", "block") + `}
  volumeUnstaging: {podTemplate: ` + pod("unstage", "{{ handle }}") + `}`,
	"light": `
spec:
  provisioningModes: [Dynamic]
  volumeCreation: {capacity: 1Gi}
  volumeStaging: {podTemplate: ` + pod("stage", "{{ handle }}", "serve") + `}`,
}

// byNote is the template of a handle that depends on the annotation "note" of the claim. The tenant changes the
// annotation between attempts. Claims with an odd value share a handle.
const byNote = "{{ pvc.metadata.namespace }}-{{ 'shared' if pvc.metadata.annotations is defined and pvc.metadata.annotations.get('note', '0') | int % 2 == 1 else pvc.metadata.name }}"

// provisioners are the names of these definitions, in alphabetical order.
var provisioners = []string{"growing", "keyed", "light", "local", "named", "plain", "planned", "private", "raw", "validated"}

// Additional fields of containers: rights on the node, or a reference to a Secret in the claim's namespace. Each
// version of a definition refers to another Secret.
const (
	privileged = "securityContext: {privileged: true}, "
	key        = "envFrom: [{secretRef: {name: '{{ pvc.metadata.namespace }}-key-0'}}], "
)

var versions = regexp.MustCompile(`-key-\d+`)

// pod returns the template of a pod. Its container has these arguments.
func pod(arguments ...string) string { return podWith("", arguments...) }

// podWith returns the template of a pod. Its container has these arguments and additional fields.
func podWith(more string, arguments ...string) string {
	quoted := make([]string, len(arguments))
	for i, argument := range arguments {
		quoted[i] = strconv.Quote(argument)
	}
	text := strings.Join(quoted, ", ")
	return `{metadata: {annotations: {simulation/driver: DRIVER}}, spec: {containers: [{name: main, image: none, ` + more + `args: [` + text + `]}]}}`
}

// newProvisioner returns a PavProvisioner in one of its versions. Versions differ in annotations and Secrets; only
// those of "growing" differ in their workflows.
func newProvisioner(name string, version int) *pavv1.PavProvisioner {
	p := &pavv1.PavProvisioner{}
	if err := yaml.Unmarshal([]byte(definitions[name]+copying[name]), p); err != nil {
		panic(err)
	}
	p.Name = name
	edit(p, version)
	return p
}

// grown is the template of the unstaging pod that only odd versions of the definition "growing" have. So a volume that
// was staged without an unstaging pod may get one later.
var grown = podWith(key, "unstage", "{{ handle }}")

// edit changes a definition to a version. It writes the version to all pod templates.
func edit(p *pavv1.PavProvisioner, version int) {
	if p.Name == "growing" {
		p.Spec.VolumeUnstaging = nil
		if version%2 == 1 {
			p.Spec.VolumeUnstaging = &pavv1.VolumeUnstaging{PodTemplate: &pavv1.Template{Raw: []byte(grown)}}
		}
	}
	for _, t := range templates(p) {
		raw := map[string]any{}
		if err := yaml.Unmarshal(t.Raw, &raw); err != nil {
			panic(err)
		}
		raw["metadata"] = map[string]any{"annotations": map[string]any{"simulation/driver": p.Name, "simulation/version": fmt.Sprint(version)}}
		text, err := yaml.Marshal(raw)
		if err != nil {
			panic(err)
		}
		if t.Raw, err = yaml.YAMLToJSON(versions.ReplaceAll(text, fmt.Appendf(nil, "-key-%d", version))); err != nil {
			panic(err)
		}
	}
}

func templates(p *pavv1.PavProvisioner) []*pavv1.Template {
	all := []*pavv1.Template{&p.Spec.VolumeStaging.PodTemplate}
	if c := p.Spec.VolumeCreation; c != nil && c.PodTemplate != nil {
		all = append(all, c.PodTemplate)
	}
	if v := p.Spec.VolumeValidation; v != nil && v.PodTemplate != nil {
		all = append(all, v.PodTemplate)
	}
	if u := p.Spec.VolumeUnstaging; u != nil && u.PodTemplate != nil {
		all = append(all, u.PodTemplate)
	}
	if d := p.Spec.VolumeDeletion; d != nil && d.PodTemplate != nil {
		all = append(all, d.PodTemplate)
	}
	if e := p.Spec.VolumeExpansion; e != nil {
		for _, template := range []*pavv1.Template{e.PodTemplate, e.NodePodTemplate} {
			if template != nil {
				all = append(all, template)
			}
		}
	}
	if m := p.Spec.VolumeModification; m != nil {
		all = append(all, m.PodTemplate)
	}
	if s := p.Spec.SnapshotCreation; s != nil {
		all = append(all, s.PodTemplate)
	}
	if s := p.Spec.SnapshotDeletion; s != nil {
		all = append(all, s.PodTemplate)
	}
	return all
}

// classes returns the StorageClasses: one for each provisioner, binding mode and reclaim policy.
func classes(provisioners []string) []*storagev1.StorageClass {
	var all []*storagev1.StorageClass
	for _, name := range provisioners {
		for _, mode := range []storagev1.VolumeBindingMode{storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer} {
			for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
				suffix := "-now"
				if mode == storagev1.VolumeBindingWaitForFirstConsumer {
					suffix = "-late"
				}
				if policy == corev1.PersistentVolumeReclaimRetain {
					suffix += "-kept"
				}
				all = append(all, &storagev1.StorageClass{
					ObjectMeta: metav1.ObjectMeta{Name: name + suffix}, Provisioner: name, VolumeBindingMode: new(mode), ReclaimPolicy: new(policy),
				})
			}
		}
	}
	return all
}
