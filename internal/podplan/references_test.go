package podplan

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// variant is a value in which only one string is set.
type variant struct {
	path  string
	value reflect.Value
}

// variants returns a value of the type for each string that it can contain, with only that string set.
func variants(of reflect.Type, path string) []variant {
	var all []variant
	inner := func(t reflect.Type, path string, wrap func(reflect.Value) reflect.Value) {
		for _, v := range variants(t, path) {
			all = append(all, variant{v.path, wrap(v.value)})
		}
	}
	switch {
	case of == reflect.TypeFor[resource.Quantity](), of == reflect.TypeFor[metav1.Time](), of == reflect.TypeFor[corev1.EphemeralContainer](),
		of == reflect.TypeFor[metav1.FieldsV1]():
		return nil
	case of.Kind() == reflect.String:
		value := reflect.New(of).Elem()
		value.SetString("text")
		return []variant{{path, value}}
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" {
				name = "." + name
			}
			inner(of.Field(i).Type, path+name, func(v reflect.Value) reflect.Value {
				value := reflect.New(of).Elem()
				value.Field(i).Set(v)
				return value
			})
		}
	case of.Kind() == reflect.Pointer:
		inner(of.Elem(), path, func(v reflect.Value) reflect.Value {
			value := reflect.New(of.Elem())
			value.Elem().Set(v)
			return value
		})
	case of.Kind() == reflect.Slice:
		inner(of.Elem(), path, func(v reflect.Value) reflect.Value { return reflect.Append(reflect.MakeSlice(of, 0, 1), v) })
	case of.Kind() == reflect.Map:
		inner(of.Elem(), path, func(v reflect.Value) reflect.Value {
			value := reflect.MakeMap(of)
			value.SetMapIndex(reflect.ValueOf("key").Convert(of.Key()), v)
			return value
		})
	}
	return all
}

// The lists say of each string in the spec of a pod whether it is a reference. The test fails if a new version of the
// Kubernetes types has more strings. Then someone has to decide for each whether it is a reference. The conditions of
// the webhook that judges pods may need it, too.
func TestReferences_KnowEveryTextOfAPodsSpec(t *testing.T) {
	lists := map[bool][]string{}
	for _, v := range variants(reflect.TypeFor[corev1.PodSpec](), "spec") {
		spec, _ := reflect.TypeAssert[corev1.PodSpec](v.value)
		references, err := PodReferences(&corev1.Pod{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		isOne := false
		for reference := range references {
			isOne = isOne || strings.Contains(reference, "text")
		}
		lists[isOne] = append(lists[isOne], v.path)
	}
	for isOne, file := range map[bool]string{true: "testdata/references.txt", false: "testdata/no-references.txt"} {
		got := strings.Join(lists[isOne], "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func references(t *testing.T, spec string) References {
	t.Helper()
	value := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &value); err != nil {
		t.Fatal(err)
	}
	return ReferencesOf(value)
}

func TestReferences(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"what the node has": {spec: `
serviceAccountName: default
volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {medium: Memory}}, {name: c, downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.name}}]}}, {name: pav, csi: {driver: pav.albertofaria.github.io}}]
containers: [{name: a, env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}]}]`},
		"a Secret":            {spec: `{volumes: [{name: a, secret: {secretName: s, items: [{key: k, path: p}]}}]}`, want: []string{"volumes.secret", "volumes.secret.secretName=s"}},
		"a projected one":     {spec: `{volumes: [{name: a, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}]}}]}`, want: []string{"volumes.projected", "volumes.projected.sources.secret", "volumes.projected.sources.secret.name=s"}},
		"a token":             {spec: `{volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: p}}]}}]}`, want: []string{"volumes.projected", "volumes.projected.sources.serviceAccountToken"}},
		"in the environment":  {spec: `{initContainers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}], envFrom: [{prefix: p, configMapRef: {name: c}}]}]}`, want: []string{"env.valueFrom.secretKeyRef.name=s", "envFrom", "envFrom.configMapRef.name=c"}},
		"another driver":      {spec: `{volumes: [{name: a, csi: {driver: d, volumeAttributes: {path: p}, nodePublishSecretRef: {name: s}}}]}`, want: []string{"volumes.csi", "volumes.csi.driver=d", "volumes.csi.nodePublishSecretRef.name=s", "volumes.csi.volumeAttributes.path=p"}},
		"PaV's with a Secret": {spec: `{volumes: [{name: pav, csi: {driver: pav.albertofaria.github.io, nodePublishSecretRef: {name: s}}}]}`, want: []string{"volumes.csi", "volumes.csi.driver=pav.albertofaria.github.io", "volumes.csi.nodePublishSecretRef.name=s"}},
		"an unknown volume":   {spec: `{volumes: [{name: a, marvel: {secretRef: {name: s}}}]}`, want: []string{"volumes.marvel", "volumes.marvel.secretRef.name=s"}},
		"a volume of nothing": {spec: `{volumes: [{name: a}]}`, want: []string{"volumes"}},
		"an unknown variable": {spec: `{containers: [{name: a, env: [{name: A, valueFrom: {}}]}]}`, want: []string{"env.valueFrom"}},
		"what is filled in":   {spec: `{volumes: [{name: a, rbd: {monitors: [m], image: i, pool: rbd, user: admin, keyring: /etc/ceph/keyring}}]}`, want: []string{"volumes.rbd", "volumes.rbd.image=i", "volumes.rbd.monitors=m"}},
		"a new claim":         {spec: `{volumes: [{name: a, ephemeral: {volumeClaimTemplate: {metadata: {creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, storageClassName: c, resources: {requests: {storage: 1Gi}}}}}}]}`, want: []string{"volumes.ephemeral", "volumes.ephemeral.volumeClaimTemplate.spec.storageClassName=c"}},
		"other pods": {spec: `{affinity: {nodeAffinity: {}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, matchLabelKeys: [m], labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: m, operator: In, values: [added]}]}}]}}}`,
			want: []string{`affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution={"labelSelector":{"matchLabels":{"a":"b"}},"matchLabelKeys":["m"],"topologyKey":"k"}`}},
		"the others": {spec: `{serviceAccountName: s, imagePullSecrets: [{name: p}], resourceClaims: [{name: r, resourceClaimName: c}]}`, want: []string{"imagePullSecrets.name=p", "resourceClaims.name=r", "resourceClaims.resourceClaimName=c", "serviceAccountName=s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, references(t, test.spec).Without()); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}
