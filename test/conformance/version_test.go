package conformance_test

import (
	"os"
	"testing"

	"golang.org/x/mod/modfile"
)

// The suite must have the same version as the cluster, and the names of its images depend on that version.
func TestSuite_IsOfTheVersionOfTheCluster(t *testing.T) {
	required := func(file string) string {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		module, err := modfile.ParseLax(file, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, require := range module.Require {
			if require.Mod.Path == "k8s.io/kubernetes" {
				return require.Mod.Version
			}
		}
		t.Fatalf("%s requires no Kubernetes", file)
		return ""
	}
	suite, cluster := required("go.mod"), required("../cluster/components/kubernetes/go.mod")
	if suite != cluster {
		t.Errorf("the suite is of %s, the cluster of %s", suite, cluster)
	}
}
