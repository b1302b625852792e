package pki

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Names of files in the directory that Write fills. The files of a certificate and its key end in .crt and .key.
const (
	AuthorityFile      = "ca.crt"
	SigningKeyFile     = "service-account.key"
	SigningPublicFile  = "service-account.pub"
	SSHKeyFile         = "ssh.key"
	SSHPublicFile      = "ssh.pub"
	APIServer          = "kube-apiserver"
	APIServerClient    = "kube-apiserver-kubelet-client"
	Admin              = "admin"
	ControllerManager  = "kube-controller-manager"
	Scheduler          = "kube-scheduler"
	Proxy              = "kube-proxy"
	SnapshotController = "snapshot-controller"
)

// Kubelet returns the name of a node's certificate, key and kubeconfig.
func Kubelet(node string) string { return "kubelet-" + node }

// Cluster describes the cluster for which certificates are issued.
type Cluster struct {
	// Server is the API server's URL in all kubeconfigs.
	Server string
	// ServerAddresses are the addresses in the API server's certificate.
	ServerAddresses []net.IP
	// Nodes maps the nodes' names to their addresses.
	Nodes map[string]net.IP
}

// subjects returns the subjects of all certificates of a cluster, by the names of their files.
func (c Cluster) subjects() map[string]Subject {
	const masters = "system:masters"
	subjects := map[string]Subject{
		APIServer: {
			User: "kube-apiserver",
			Names: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			Addresses: c.ServerAddresses,
		},
		APIServerClient:   {User: "kube-apiserver-kubelet-client", Groups: []string{masters}},
		Admin:             {User: "admin", Groups: []string{masters}},
		ControllerManager: {User: "system:kube-controller-manager"},
		Scheduler:         {User: "system:kube-scheduler"},
		Proxy:             {User: "system:kube-proxy"},
		// Kubernetes has no role for an add-on.
		SnapshotController: {User: "snapshot-controller", Groups: []string{masters}},
	}
	for node, address := range c.Nodes {
		subjects[Kubelet(node)] = Subject{
			User: "system:node:" + node, Groups: []string{"system:nodes"},
			Names: []string{node}, Addresses: []net.IP{address},
		}
	}
	return subjects
}

// Write creates all files again in a directory: for each subject a certificate, a key and a kubeconfig, the key for
// service account tokens, and the key for the SSH servers.
func (c Cluster) Write(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("making the directory of certificates: %w", err)
	}
	authority, err := NewAuthority("pav-cluster")
	if err != nil {
		return err
	}
	public, private, err := NewSigningKey()
	if err != nil {
		return err
	}
	sshPublic, sshPrivate, err := NewSSHKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		AuthorityFile: authority.Certificate, SigningPublicFile: public, SigningKeyFile: private,
		SSHPublicFile: sshPublic, SSHKeyFile: sshPrivate,
	}
	for name, subject := range c.subjects() {
		pair, err := authority.Issue(subject)
		if err != nil {
			return err
		}
		kubeconfig, err := Kubeconfig(c.Server, authority.Certificate, pair)
		if err != nil {
			return err
		}
		files[name+".crt"], files[name+".key"], files[name+".kubeconfig"] = pair.Certificate, pair.Key, kubeconfig
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return fmt.Errorf("writing certificates: %w", err)
		}
	}
	return nil
}

// Kubeconfig returns a kubeconfig that refers to no other file. It is JSON, which is valid YAML.
func Kubeconfig(server string, authority []byte, client Pair) ([]byte, error) {
	type object map[string]any
	const name = "pav"
	content, err := json.MarshalIndent(object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": object{
			"server": server, "certificate-authority-data": authority,
		}}},
		"users": []object{{"name": name, "user": object{
			"client-certificate-data": client.Certificate, "client-key-data": client.Key,
		}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return append(content, '\n'), nil
}
