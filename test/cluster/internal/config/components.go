package config

import (
	"net"
	"path/filepath"

	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/logind"
	"github.com/albertofaria/pav/test/cluster/internal/pki"
	"github.com/albertofaria/pav/test/cluster/internal/sshd"
)

// Names of the components. The log files have the same names.
const (
	Etcd               = "etcd"
	APIServer          = "kube-apiserver"
	ControllerManager  = "kube-controller-manager"
	Scheduler          = "kube-scheduler"
	SnapshotController = "snapshot-controller"
	Proxy              = "kube-proxy"
	Containerd         = "containerd"
	Kubelet            = "kubelet"
	SSHD               = "sshd"
	Logind             = "logind"
)

// Component returns the command line of one component of a node.
func (n Node) Component(name string) control.Component {
	arguments := map[string]func() []string{
		Etcd: n.etcd, APIServer: n.apiServer, ControllerManager: n.controllerManager,
		Scheduler: n.scheduler, SnapshotController: n.snapshotController,
		Proxy: n.proxy, Containerd: n.containerd, Kubelet: n.kubelet, SSHD: n.sshd,
		Logind: func() []string { return []string{logind.Subcommand} },
	}[name]()
	program := n.program(name)
	if name == SSHD || name == Logind {
		program = sshd.Program
	}
	return control.Component{
		Name:    name,
		Command: append([]string{program}, arguments...),
		// The caller's environment is not inherited, in particular no proxy variables.
		Environment: n.Environment(),
		Log:         n.Files().Log(name),
	}
}

// Environment returns the environment of every program that a node starts. GOGC is raised because a sixth of the API
// server's time was garbage collection, and there is more memory than time.
func (n Node) Environment() []string {
	return []string{"PATH=" + n.Bin + ":" + SystemPath, "HOME=/root", "TMPDIR=/tmp", "LANG=C.UTF-8", "GOGC=300"}
}

// SystemPath is the search path of the machine's programs. It does not depend on the caller's PATH.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (n Node) etcd() []string {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return []string{
		"--name=" + n.Name(), "--data-dir=" + filepath.Join(n.Files().Disk(), "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + n.Name() + "=" + peer,
		// Data loss after a power failure is acceptable in a test cluster.
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func (n Node) apiServer() []string {
	return []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--advertise-address=" + ServerAddress().String(),
		"--secure-port=6443",
		"--tls-cert-file=" + n.secret(pki.APIServer+".crt"),
		"--tls-private-key-file=" + n.secret(pki.APIServer+".key"),
		"--client-ca-file=" + n.secret(pki.AuthorityFile),
		"--service-account-key-file=" + n.secret(pki.SigningPublicFile),
		"--service-account-signing-key-file=" + n.secret(pki.SigningKeyFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + n.secret(pki.APIServerClient+".crt"),
		"--kubelet-client-key=" + n.secret(pki.APIServerClient+".key"),
		"--kubelet-certificate-authority=" + n.secret(pki.AuthorityFile),
		// The API server connects to the pods of webhooks and aggregated APIs directly, without kube-proxy.
		"--enable-aggregator-routing=true",
	}
}

func (n Node) controllerManager() []string {
	return []string{
		"--kubeconfig=" + n.State.Kubeconfig(pki.ControllerManager),
		"--service-account-private-key-file=" + n.secret(pki.SigningKeyFile),
		"--root-ca-file=" + n.secret(pki.AuthorityFile),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		// With the default limits, volumes proceed at only a few per second.
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

func (n Node) scheduler() []string {
	return []string{
		"--kubeconfig=" + n.State.Kubeconfig(pki.Scheduler), "--leader-elect=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

func (n Node) snapshotController() []string {
	return []string{
		"--kubeconfig=" + n.State.Kubeconfig(pki.SnapshotController), "--leader-election=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
		// The cluster has no CRDs of group snapshots. With this feature, the controller would wait for them for 30 s.
		"--feature-gates=CSIVolumeGroupSnapshot=false",
	}
}

func (n Node) proxy() []string { return []string{"--config=" + n.file(proxyFile)} }

func (n Node) containerd() []string { return []string{"--config=" + n.file(containerdFile)} }

func (n Node) kubelet() []string {
	return []string{
		"--config=" + n.file(kubeletFile),
		"--kubeconfig=" + n.State.Kubeconfig(pki.Kubelet(n.Name())),
		"--root-dir=" + KubeletRoot,
		"--hostname-override=" + n.Name(),
		"--node-ip=" + n.Address().String(),
		"--v=2",
	}
}

// sshd returns the arguments of the SSH server. It listens only on the address that the other nodes use.
func (n Node) sshd() []string {
	return []string{
		sshd.Subcommand,
		"--address=" + net.JoinHostPort(n.Address().String(), "22"),
		"--key=" + n.secret(pki.SSHPublicFile),
	}
}
