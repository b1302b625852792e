package compile

import (
	"fmt"
	"strings"
)

// VersionVariable is the environment variable with the version of Kubernetes of a cluster.
const VersionVariable = "PAV_KUBERNETES"

// Version is a version of Kubernetes that a cluster can run. The programs that are not of Kubernetes are the same for
// all versions.
type Version struct {
	// Name has the form v1.36.3. The linker sets it in the programs. Programs that are built from modules have no version
	// by default, and version checks of clients and of the control plane would fail.
	Name string
	// Module is the directory of the module that pins the version, below test/cluster.
	Module string
}

// Present is the version that a cluster runs by default, and the one whose module also pins etcd and agnhost.
var Present = Version{Name: "v1.36.3", Module: "components/kubernetes"}

// Versions are all versions: the present one, one between, and the oldest one that PaV supports.
var Versions = []Version{
	Present,
	{Name: "v1.33.13", Module: "components/kubernetes-1.33"},
	{Name: "v1.30.14", Module: "components/kubernetes-1.30"},
}

// FindVersion returns the version of that name. Without a name, it returns the present version.
func FindVersion(name string) (Version, error) {
	if name == "" {
		return Present, nil
	}
	var names []string
	for _, version := range Versions {
		if version.Name == name {
			return version, nil
		}
		names = append(names, version.Name)
	}
	return Version{}, fmt.Errorf("no cluster can run Kubernetes %q: %s is one of %s", name, VersionVariable, strings.Join(names, ", "))
}

// program returns a program of Kubernetes in this version.
func (v Version) program(name, pkg string) Program {
	return Program{Name: name, Module: v.Module, Package: "k8s.io/kubernetes/" + pkg, Variables: v.variables()}
}

func (v Version) variables() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(v.Name, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	var variables []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		variables = append(variables,
			pkg+".gitVersion="+v.Name, pkg+".gitMajor="+major, pkg+".gitMinor="+minor, pkg+".gitTreeState=clean")
	}
	return variables
}
