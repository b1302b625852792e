package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func write(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	cluster := Cluster{
		Server:          "https://10.88.0.1:6443",
		ServerAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 88, 0, 1)},
		Nodes:           map[string]net.IP{"node1": net.IPv4(10, 88, 0, 1), "node2": net.IPv4(10, 88, 0, 2)},
	}
	if err := cluster.Write(directory); err != nil {
		t.Fatal(err)
	}
	return directory
}

func load(t *testing.T, directory, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, name+".crt"), filepath.Join(directory, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestCertificatesAreValidForTheirSubjects(t *testing.T) {
	directory := write(t)
	authority, err := os.ReadFile(filepath.Join(directory, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	for name, test := range map[string]struct {
		user, group string
		server      string
	}{
		Admin:              {user: "admin", group: "system:masters"},
		APIServerClient:    {user: "kube-apiserver-kubelet-client", group: "system:masters"},
		ControllerManager:  {user: "system:kube-controller-manager"},
		Scheduler:          {user: "system:kube-scheduler"},
		Proxy:              {user: "system:kube-proxy"},
		SnapshotController: {user: "snapshot-controller", group: "system:masters"},
		APIServer:          {user: "kube-apiserver", server: "10.88.0.1"},
		Kubelet("node1"):   {user: "system:node:node1", group: "system:nodes", server: "10.88.0.1"},
		Kubelet("node2"):   {user: "system:node:node2", group: "system:nodes", server: "node2"},
	} {
		t.Run(name, func(t *testing.T) {
			certificate := load(t, directory, name)
			if certificate.Subject.CommonName != test.user {
				t.Errorf("user is %q, want %q", certificate.Subject.CommonName, test.user)
			}
			if test.group != "" && (len(certificate.Subject.Organization) != 1 || certificate.Subject.Organization[0] != test.group) {
				t.Errorf("groups are %v, want %q", certificate.Subject.Organization, test.group)
			}
			for _, at := range []time.Time{time.Now(), time.Now().Add(300 * 24 * time.Hour)} {
				_, err := certificate.Verify(x509.VerifyOptions{
					Roots: roots, CurrentTime: at, DNSName: test.server,
					KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
				})
				if err != nil {
					t.Errorf("at %s: %v", at, err)
				}
			}
		})
	}
}

func TestKubeconfigContainsAllThatAClientNeeds(t *testing.T) {
	directory := write(t)
	content, err := os.ReadFile(filepath.Join(directory, Admin+".kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Clusters []struct {
			Cluster struct {
				Server    string
				Authority []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	if err := json.Unmarshal(content, &parsed); err != nil {
		t.Fatal(err)
	}
	if got := parsed.Clusters[0].Cluster.Server; got != "https://10.88.0.1:6443" {
		t.Errorf("server is %q", got)
	}
	if block, _ := pem.Decode(parsed.Clusters[0].Cluster.Authority); block == nil {
		t.Error("the authority is not in PEM")
	}
	if _, err := tls.X509KeyPair(parsed.Users[0].User.Certificate, parsed.Users[0].User.Key); err != nil {
		t.Errorf("the client's pair: %v", err)
	}
}

func TestSigningKeyMatchesItsPublicHalf(t *testing.T) {
	public, private, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	publicBlock, _ := pem.Decode(public)
	privateBlock, _ := pem.Decode(private)
	parsed, err := x509.ParsePKIXPublicKey(publicBlock.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParseECPrivateKey(privateBlock.Bytes)
	if err != nil || !key.PublicKey.Equal(parsed) {
		t.Errorf("the halves differ (%v)", err)
	}
}

func TestSSHKeyMatchesItsPublicHalf(t *testing.T) {
	directory := write(t)
	private, privateError := os.ReadFile(filepath.Join(directory, SSHKeyFile))
	public, publicError := os.ReadFile(filepath.Join(directory, SSHPublicFile))
	if err := errors.Join(privateError, publicError); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _, _, _, err := ssh.ParseAuthorizedKey(public)
	if err != nil || !bytes.Equal(parsed.Marshal(), signer.PublicKey().Marshal()) {
		t.Errorf("the halves differ (%v)", err)
	}
}

func TestKeysAreReadableByTheOwnerOnly(t *testing.T) {
	directory := write(t)
	for _, name := range []string{Admin + ".key", SSHKeyFile} {
		info, err := os.Stat(filepath.Join(directory, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v; want 0600", name, info, err)
		}
	}
}
