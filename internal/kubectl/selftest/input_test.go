package selftest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/kubectl/source"
)

const provisionerYAML = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: mine, labels: {team: storage}}
spec:
  provisioningModes: [Dynamic]
  volumeStaging: {podTemplate: {spec: {containers: [{name: a, image: "busybox:1.37.0"}]}}}
---
`

const usageYAML = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: mine
reclaimPolicy: Retain
parameters: {colour: green, size: small}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {base: other}}
spec:
  storageClassName: slow
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 7Mi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: other}
spec: {storageClassName: standard}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  volumes: [{name: a, persistentVolumeClaim: {claimName: data}}]
`

func parse(t *testing.T, yaml, provisioner string) (*input, error) {
	t.Helper()
	documents, err := source.Read("file", strings.NewReader(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return sortOut(documents, provisioner)
}

func TestSortOut(t *testing.T) {
	in, err := parse(t, provisionerYAML+usageYAML, "")
	if err != nil {
		t.Fatal(err)
	}
	if in.provisioner() != "mine" || in.class == nil || in.class.Name != "slow" || in.claim == nil || in.claim.Name != "data" {
		t.Errorf("got provisioner %q, class %v, claim %v", in.provisioner(), in.class, in.claim)
	}
	var others []string
	for _, object := range in.others {
		others = append(others, describeObject(object))
	}
	// The pod uses the claim, which is but a pattern; the other claim may be what the volume is made of.
	if diff := cmp.Diff([]string{"PersistentVolumeClaim other", "Secret key"}, others); diff != "" {
		t.Errorf("other objects: -want +got:\n%s", diff)
	}
}

func TestSortOut_WhichProvisioner(t *testing.T) {
	two := provisionerYAML + strings.Replace(provisionerYAML, "name: mine", "name: yours", 1)
	tests := map[string]struct{ yaml, choice, want, err string }{
		"none":              {yaml: usageYAML, err: "there is no PavProvisioner in the files"},
		"one":               {yaml: provisionerYAML, want: "mine"},
		"several":           {yaml: two, err: "choose one with --provisioner: mine, yours"},
		"several, and one":  {yaml: two, choice: "yours", want: "yours"},
		"one of that name?": {yaml: two, choice: "his", err: `no PavProvisioner "his" in the files, but mine, yours`},
		"of another group": {
			yaml: strings.Replace(provisionerYAML, "pav.albertofaria.github.io", "example.org", 1), err: "there is no PavProvisioner",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, err := parse(t, test.yaml, test.choice)
			switch {
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got error %v, want %q", err, test.err)
			case test.err == "" && (err != nil || in.provisioner() != test.want):
				t.Errorf("got %v (%v), want %s", in, err, test.want)
			}
		})
	}
}
