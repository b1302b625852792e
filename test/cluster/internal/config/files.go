package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/albertofaria/pav/test/cluster/internal/pki"
)

const (
	kubeletFile      = "kubelet.json"
	proxyFile        = "kube-proxy.json"
	containerdFile   = "containerd.toml"
	networkDirectory = "cni"
)

// kernelSettings are the values that kubelet requires for files in /proc/sys. A node sees these values instead of the
// machine's, because a node must not change the machine's settings.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// PauseImage is the name under which the pause image is loaded. The pause program is the first process of each pod.
const PauseImage = "localhost/pav-cluster/pause:1"

type object map[string]any

// Write writes the configuration files of a node.
func (n Node) Write() error {
	files := map[string][]byte{
		containerdFile: []byte(n.containerdConfig()),
	}
	for name, content := range map[string]object{
		kubeletFile: n.kubeletConfig(), proxyFile: n.proxyConfig(),
		filepath.Join(networkDirectory, "10-pav.conflist"): n.networkConfig(),
	} {
		encoded, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
		files[name] = encoded
	}
	for path, content := range n.replacements() {
		files[replacement(path)] = []byte(content)
	}
	for name, content := range files {
		path := n.file(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a directory of configuration: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing configuration: %w", err)
		}
	}
	return nil
}

// replacements returns the contents of files that replace files of the machine on the node, by the paths of the
// replaced files.
func (n Node) replacements() map[string]string {
	contents := map[string]string{
		// There is no DNS server. A resolver that fails at once is better than one that times out.
		resolver:        "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n",
		"/etc/hosts":    hosts(),
		"/etc/hostname": n.Name() + "\n",
	}
	for name, value := range kernelSettings {
		contents["/proc/sys/"+name] = value + "\n"
	}
	return contents
}

const resolver = "/etc/resolv.conf"

// replacement returns the name of the file that replaces another file.
func replacement(path string) string { return "replaced" + path }

// Replaced returns the files with which Write replaces files of the machine on the node, by the paths of the replaced
// files.
func (n Node) Replaced() map[string]string {
	files := map[string]string{}
	for path := range n.replacements() {
		files[path] = n.file(replacement(path))
	}
	return files
}

func hosts() string {
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for index := 1; index <= MaxNodes; index++ {
		node := Node{Index: index}
		fmt.Fprintf(&text, "%s %s\n", node.Address(), node.Name())
	}
	return text.String()
}

func (n Node) kubeletConfig() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"authentication": object{
			"x509":      object{"clientCAFile": n.secret(pki.AuthorityFile)},
			"anonymous": object{"enabled": false},
		},
		"authorization":     object{"mode": "Webhook"},
		"tlsCertFile":       n.secret(pki.Kubelet(n.Name()) + ".crt"),
		"tlsPrivateKeyFile": n.secret(pki.Kubelet(n.Name()) + ".key"),
		"cgroupDriver":      "cgroupfs",
		// Kubernetes 1.30 does not know this field, and logs a warning.
		"failCgroupV1": false,
		"failSwapOn":   false,
		// On some machines, root does not have all capabilities. With this feature gate, kubelet tolerates that.
		"featureGates":           object{"KubeletInUserNamespace": true},
		"enforceNodeAllocatable": []string{},
		// The disk is the machine's. The cluster must not react to its usage.
		"imageGCHighThresholdPercent": 100,
		"evictionHard": object{
			"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
			"imagefs.inodesFree": "0%", "memory.available": "0%",
		},
		// Kubelet evicts a pod that exceeds the limit of an emptyDir when it has measured that. The default is a minute.
		"volumeStatsAggPeriod": "15s",
		"maxPods":              500,
		"serializeImagePulls":  false,
		"kubeAPIQPS":           100,
		"kubeAPIBurst":         200,
		"resolvConf":           n.file(replacement(resolver)),
		"clusterDomain":        "cluster.local",
		// The default is in a directory that the node shares with the machine.
		"volumePluginDir": filepath.Join(KubeletRoot, "volume-plugins"),
	}
}

func (n Node) proxyConfig() object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection": object{"kubeconfig": n.State.Kubeconfig(pki.Proxy)},
		"mode":             "iptables",
		// All pods share one subnet, so an answer would go directly to the client. It would bypass the node that
		// translated the address of the request. With a translated source address, the answer returns to that node.
		"iptables":         object{"masqueradeAll": true},
		"clusterCIDR":      PodNetwork,
		"hostnameOverride": n.Name(),
		"conntrack":        object{"maxPerCore": 0},
	}
}

// networkConfig returns the CNI configuration. Each node has its own range of addresses in the subnet that all nodes
// share. Pods get no ports of their node, which would take another plugin for each pod.
func (n Node) networkConfig() object {
	first, last := n.podRange()
	return object{
		"cniVersion": "1.0.0", "name": "pav",
		"plugins": []object{
			{
				"type": "bridge", "bridge": Bridge, "isGateway": true, "ipMasq": false, "hairpinMode": true,
				"ipam": object{
					"type": "host-local",
					"ranges": [][]object{{{
						"subnet": PodNetwork, "gateway": n.Address().String(),
						"rangeStart": first.String(), "rangeEnd": last.String(),
					}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
		},
	}
}

func (n Node) containerdConfig() string {
	return fmt.Sprintf(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = %q

[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
use_internal_loopback = true
bin_dirs = [%q]
conf_dir = %q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`, ContainerdSocket, PauseImage, n.Bin, n.file(networkDirectory), n.program("runc"))
}
