package podplan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// References are the references of a pod that could give it more rights than its node has: Secrets, ConfigMaps,
// claims, tokens, volumes of other drivers, service accounts, and affinity to pods. Each is the path of a field in
// the pod's spec, without the indexes of lists, with its value.
//
// An unknown field is a reference as well, so that a new kind of volume is not overlooked. Fields that the API server
// fills in are not. The webhook's configuration has the same rules for pods without references.
type References map[string]bool

// PodReferences returns the references of a pod.
func PodReferences(pod *corev1.Pod) (References, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	if err != nil {
		return nil, fmt.Errorf("reading the spec of a pod: %w", err)
	}
	return ReferencesOf(spec), nil
}

// hasNoReferences reports whether a pod certainly has no references, and gets none for its service account's token.
// Only the API server knows which others it gets, such as pull secrets.
func hasNoReferences(pod *corev1.Pod) bool {
	references, err := PodReferences(pod)
	return err == nil && len(references) == 0 && !ptr.Deref(pod.Spec.AutomountServiceAccountToken, false)
}

// ReferencesOf returns the references of a pod's spec, as the API server sends it.
func ReferencesOf(spec map[string]any) References {
	r := References{}
	for _, volume := range objects(spec["volumes"]) {
		r.addVolume(volume)
	}
	for _, kind := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range objects(spec[kind]) {
			r.addContainer(container)
		}
	}
	account, _ := spec["serviceAccountName"].(string)
	former, _ := spec["serviceAccount"].(string) // which the API server treats as the same
	if account = cmp.Or(account, former); account != "" && account != defaultAccount {
		r.add("serviceAccountName", account)
	}
	for _, field := range []string{"imagePullSecrets", "resourceClaims", "schedulingGroup", "workloadRef"} {
		if value, found := spec[field]; found {
			r.walk(field, value)
		}
	}
	r.addAffinity(object(spec["affinity"]))
	return r
}

// DefaultReferences returns the references that pods have by the defaults of all workflow pods. Since they are the
// administrator's, every pod may have them, also that of a volume which was staged before the defaults were set.
func DefaultReferences(defaults workflow.Defaults) References {
	r := References{}
	for _, secret := range defaults.ImagePullSecrets {
		r.add("imagePullSecrets.name", secret.Name)
	}
	return r
}

// Without returns the references that others does not have, sorted.
func (r References) Without(others ...References) []string {
	var missing []string
	for _, reference := range slices.Sorted(maps.Keys(r)) {
		if !slices.ContainsFunc(others, func(o References) bool { return o[reference] }) {
			missing = append(missing, reference)
		}
	}
	return missing
}

// Account looks up a service account; it returns nil if there is none.
type Account func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)

// plan adds the references of a planned pod, and those that the API server adds when the pod is created: the pull
// secrets of its service account, if the pod has none, and its token, if the pod requests it.
func (r References) plan(ctx context.Context, pod *corev1.Pod, lookUp Account) error {
	own, err := PodReferences(pod)
	if err != nil {
		return err
	}
	maps.Copy(r, own)
	if ptr.Deref(pod.Spec.AutomountServiceAccountToken, false) {
		for _, token := range []string{"volumes.projected", projectedSources + ".serviceAccountToken", projectedSources + ".configMap"} {
			r[token] = true
		}
		r.add(projectedSources+".configMap.name", "kube-root-ca.crt")
	}
	if len(pod.Spec.ImagePullSecrets) > 0 {
		return nil
	}
	account, err := lookUp(ctx, pod.Namespace, cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, defaultAccount))
	if err != nil || account == nil {
		return err
	}
	for _, secret := range account.ImagePullSecrets {
		r.add("imagePullSecrets.name", secret.Name)
	}
	return nil
}

const (
	defaultAccount   = "default"
	projectedSources = "volumes.projected.sources"
)

// ofTheNode are sources of volumes that give a pod only what its node has.
var ofTheNode = []string{"hostPath", "emptyDir", "downwardAPI"}

// choices are fields that choose a part of what is referred to, refer to the pod itself, or say how much of a new
// claim's storage there is to be, by what the path begins with.
var choices = map[string][]string{
	"env.":               {"key", "optional", "fieldRef", "resourceFieldRef", "fileKeyRef"},
	"envFrom":            {"prefix", "optional"},
	"volumes.secret":     {"items", "optional"},
	"volumes.configMap":  {"items", "optional"},
	"volumes.projected":  {"items", "optional", "path", "keyPath", "certificateChainPath", "credentialBundlePath"},
	"volumes.image":      {"pullPolicy"},
	"volumes.ephemeral.": {"accessModes", "resources", "creationTimestamp"},
}

func isChoice(path, key string) bool {
	for start, keys := range choices {
		if strings.HasPrefix(path, start) && slices.Contains(keys, key) {
			return true
		}
	}
	return key == "fsType" && strings.Count(path, ".") == 1
}

// defaults are what the API server fills in, by the paths of the fields.
var defaults = map[string]string{
	"volumes.rbd.pool":                                      "rbd",
	"volumes.rbd.user":                                      "admin",
	"volumes.rbd.keyring":                                   "/etc/ceph/keyring",
	"volumes.iscsi.iscsiInterface":                          "default",
	"volumes.azureDisk.cachingMode":                         "ReadWrite",
	"volumes.azureDisk.kind":                                "Shared",
	"volumes.scaleIO.storageMode":                           "ThinProvisioned",
	"volumes.ephemeral.volumeClaimTemplate.spec.volumeMode": "Filesystem",
}

func (r References) add(path, value string) { r[path+"="+value] = true }

func (r References) addVolume(volume map[string]any) {
	sources := 0
	for source, value := range volume {
		if source == "name" {
			continue
		}
		sources++
		if slices.Contains(ofTheNode, source) || isPav(source, value) {
			continue
		}
		path := "volumes." + source
		r[path] = true
		if source == "projected" {
			r.addProjected(object(value))
		} else {
			r.walk(path, value)
		}
	}
	if sources == 0 {
		r["volumes"] = true // an unknown kind
	}
}

func (r References) addProjected(projected map[string]any) {
	for _, part := range objects(projected["sources"]) {
		for kind, value := range part {
			if kind != "downwardAPI" {
				r[projectedSources+"."+kind] = true
				r.walk(projectedSources+"."+kind, value)
			}
		}
	}
}

func isPav(source string, value any) bool {
	csi := object(value)
	return source == "csi" && csi["driver"] == pavv1.Driver && csi["nodePublishSecretRef"] == nil
}

func (r References) addContainer(container map[string]any) {
	for _, variable := range objects(container["env"]) {
		if from, found := variable["valueFrom"]; found {
			if len(object(from)) == 0 {
				r["env.valueFrom"] = true // an unknown kind
			}
			r.walk("env.valueFrom", from)
		}
	}
	for _, source := range objects(container["envFrom"]) {
		r["envFrom"] = true
		r.walk("envFrom", source)
	}
}

// addAffinity adds the terms of affinity to pods. What the API server adds to a term's selector, by its
// matchLabelKeys, is left out.
func (r References) addAffinity(affinity map[string]any) {
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		for how, terms := range object(affinity[kind]) {
			for _, term := range objects(terms) {
				text, err := json.Marshal(plainTerm(term)) // with its keys sorted
				if err != nil {
					text = []byte(err.Error())
				}
				r.add("affinity."+kind+"."+how, string(text))
			}
		}
	}
}

func plainTerm(term map[string]any) map[string]any {
	if inner, weighted := term["podAffinityTerm"]; weighted {
		return map[string]any{"weight": term["weight"], "podAffinityTerm": plainTerm(object(inner))}
	}
	selector := object(term["labelSelector"])
	if selector["matchExpressions"] == nil {
		return term
	}
	byKey := append(texts(term["matchLabelKeys"]), texts(term["mismatchLabelKeys"])...)
	kept := []any{}
	for _, expression := range objects(selector["matchExpressions"]) {
		if key, _ := expression["key"].(string); !slices.Contains(byKey, key) {
			kept = append(kept, expression)
		}
	}
	selector, term = maps.Clone(selector), maps.Clone(term)
	delete(selector, "matchExpressions")
	if len(kept) > 0 {
		selector["matchExpressions"] = kept
	}
	delete(term, "labelSelector")
	if len(selector) > 0 {
		term["labelSelector"] = selector
	}
	return term
}

// walk adds the texts below a value.
func (r References) walk(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if !isChoice(path, key) {
				r.walk(path+"."+key, inner)
			}
		}
	case []any:
		for _, inner := range v {
			r.walk(path, inner)
		}
	case string:
		if standard, filled := defaults[path]; v != "" && (!filled || v != standard) {
			r.add(path, v)
		}
	}
}

func object(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

func objects(value any) []map[string]any {
	list, _ := value.([]any)
	all := make([]map[string]any, 0, len(list))
	for _, item := range list {
		all = append(all, object(item))
	}
	return all
}

func texts(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
