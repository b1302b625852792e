package compile

import (
	"strings"
)

const (
	containerdModule = "components/containerd"
	cniPlugins       = "github.com/containernetworking/plugins/plugins/"
	snapshotsModule  = "components/snapshots"
	snapshotter      = "github.com/kubernetes-csi/external-snapshotter/"
)

// Program describes how one program is compiled.
type Program struct {
	// Name is the name of the resulting file.
	Name string
	// Module is the directory of the module in which the program is compiled, below test/cluster.
	Module  string
	Package string
	// Variables are set by the linker, each in the form package.name=value.
	Variables []string
	Tags      string
	CGO       bool
}

// Selection selects optional programs.
type Selection struct {
	// Kubectl is needed if the machine has no kubectl.
	Kubectl bool
	// Agnhost is the program of an image that Kubernetes' own end-to-end tests use.
	Agnhost bool
}

// Plan returns the programs of a cluster of that version in the order of their compilation. The large programs come
// first, because they compile the packages that the others share.
func Plan(version Version, selected Selection) []Program {
	var programs []Program
	kubernetes := []string{"kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
	if selected.Kubectl {
		kubernetes = append(kubernetes, "kubectl")
	}
	for _, name := range kubernetes {
		programs = append(programs, version.program(name, "cmd/"+name))
	}
	if selected.Agnhost {
		programs = append(programs, Present.program("agnhost", "test/images/agnhost"))
	}
	programs = append(programs,
		Program{Name: "etcd", Module: Present.Module, Package: "go.etcd.io/etcd/server/v3"},
		Program{Name: "snapshot-controller", Module: snapshotsModule, Package: snapshotter + "v8/cmd/snapshot-controller"},
	)
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		programs = append(programs, Program{
			Name: name, Module: containerdModule, Package: "github.com/containerd/containerd/v2/cmd/" + name,
		})
	}
	for _, plugin := range []string{"main/bridge", "ipam/host-local"} {
		_, name, _ := strings.Cut(plugin, "/")
		programs = append(programs, Program{Name: name, Module: containerdModule, Package: cniPlugins + plugin})
	}
	return append(programs,
		// Without seccomp support, which needs cgo, runc rejects every pod sandbox.
		Program{
			Name: "runc", Module: containerdModule, Package: "github.com/opencontainers/runc",
			Tags: "seccomp", CGO: true,
		},
		Program{Name: "pause", Module: ".", Package: "./pause"},
	)
}

// arguments returns the arguments of the go command.
func (p Program) arguments(output string) []string {
	linker := []string{"-s", "-w"}
	for _, variable := range p.Variables {
		linker = append(linker, "-X", variable)
	}
	arguments := []string{"build", "-trimpath", "-ldflags", strings.Join(linker, " "), "-o", output}
	if p.Tags != "" {
		arguments = append(arguments, "-tags", p.Tags)
	}
	return append(arguments, p.Package)
}

// environment returns the variables that the go command needs in addition to the caller's environment.
func (p Program) environment() []string {
	cgo := "CGO_ENABLED=0"
	if p.CGO {
		cgo = "CGO_ENABLED=1"
	}
	// A Go workspace of the caller would replace the pinned versions.
	return []string{cgo, "GOWORK=off"}
}
