package config

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

func nodes() []Node {
	var nodes []Node
	for index := 1; index <= MaxNodes; index++ {
		nodes = append(nodes, Node{Index: index, Bin: "/bin-directory", State: paths.State{Directory: "/state"}})
	}
	return nodes
}

func TestPodRangesAreApartAndHoldNoNodeAddress(t *testing.T) {
	_, network, err := net.ParseCIDR(PodNetwork)
	if err != nil {
		t.Fatal(err)
	}
	last := net.IP(nil)
	for _, node := range nodes() {
		first, end := node.podRange()
		if !network.Contains(first) || !network.Contains(end) {
			t.Errorf("%s: %s to %s is not in %s", node.Name(), first, end, network)
		}
		if slices.Compare(first.To4(), end.To4()) >= 0 || last != nil && slices.Compare(last.To4(), first.To4()) >= 0 {
			t.Errorf("%s: %s to %s overlaps what ends at %s", node.Name(), first, end, last)
		}
		for _, other := range nodes() {
			if slices.Compare(other.Address().To4(), first.To4()) >= 0 {
				t.Errorf("the address %s of %s is not before the range of %s", other.Address(), other.Name(), node.Name())
			}
		}
		last = end
	}
}

func TestComponentsStartOurProgramsWithNothingOfTheCallersEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	for _, name := range []string{
		Etcd, APIServer, ControllerManager, Scheduler, SnapshotController, Proxy, Containerd, Kubelet, SSHD, Logind,
	} {
		component := nodes()[0].Component(name)
		program := "/bin-directory/" + name
		if name == SSHD || name == Logind {
			program = "/proc/1/exe"
		}
		if component.Name != name || component.Command[0] != program {
			t.Errorf("%s: command is %q", name, component.Command[0])
		}
		if !strings.HasPrefix(component.Log, "/state/nodes/node1/") {
			t.Errorf("%s: log is %q", name, component.Log)
		}
		if slices.ContainsFunc(component.Environment, func(variable string) bool { return strings.Contains(variable, "PROXY") }) {
			t.Errorf("%s: environment is %v", name, component.Environment)
		}
	}
}

func TestWrittenFilesAreWhatCommandLinesAndMountsName(t *testing.T) {
	node := Node{Index: 2, Bin: "/bin-directory", State: paths.State{Directory: t.TempDir()}}
	if err := node.Write(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Proxy, Containerd, Kubelet} {
		for _, argument := range node.Component(name).Command {
			path, found := strings.CutPrefix(argument, "--config=")
			if !found {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if filepath.Ext(path) == ".json" && !json.Valid(content) {
				t.Errorf("%s: %s is no JSON", name, path)
			}
		}
	}
	replaced := node.Replaced()
	for _, path := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/proc/sys/kernel/panic"} {
		if _, err := os.Stat(replaced[path]); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if content, err := os.ReadFile(replaced["/etc/hostname"]); string(content) != "node2\n" {
		t.Errorf("the host name is %q, %v", content, err)
	}
}
