package pki

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Names of files in the directory that Write fills; those of pairs end in .crt and .key.
const (
	AuthorityFile     = "ca.crt"
	SigningKeyFile    = "service-account.key"
	SigningPublicFile = "service-account.pub"
	SSHKeyFile        = "ssh.key"
	SSHPublicFile     = "ssh.pub"
	APIServer         = "kube-apiserver"
	APIServerClient   = "kube-apiserver-kubelet-client"
	Admin             = "admin"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
)

// Kubelet is the name of a node's pair and kubeconfig.
func Kubelet(node string) string { return "kubelet-" + node }

// Cluster says what certificates have to be valid for.
type Cluster struct {
	// Server is the address that all kubeconfigs name.
	Server string
	// ServerAddresses are those that the API server's certificate is valid for.
	ServerAddresses []net.IP
	// Nodes are the nodes' addresses by name.
	Nodes map[string]net.IP
}

// subjects returns whom a cluster needs certificates for.
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
	}
	for node, address := range c.Nodes {
		subjects[Kubelet(node)] = Subject{
			User: "system:node:" + node, Groups: []string{"system:nodes"},
			Names: []string{node}, Addresses: []net.IP{address},
		}
	}
	return subjects
}

// Write makes everything again in a directory: for each subject a pair and a kubeconfig, the key of service
// account tokens and that of the SSH servers.
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

// Kubeconfig returns a kubeconfig file that needs no further file. JSON is valid YAML.
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
