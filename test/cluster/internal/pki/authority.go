package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// validity is the time for which certificates are valid. It is long enough for a cluster that a developer keeps.
const validity = 365 * 24 * time.Hour

// Subject describes the owner of a certificate.
type Subject struct {
	// User and Groups identify a client to Kubernetes.
	User   string
	Groups []string
	// Names and Addresses are the names and addresses of a server.
	Names     []string
	Addresses []net.IP
}

// Pair is a certificate and its private key, in PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Authority signs certificates.
type Authority struct {
	// Certificate is the authority's own certificate, in PEM.
	Certificate []byte

	parsed *x509.Certificate
	key    crypto.Signer
}

// NewAuthority returns an authority with a new key.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority's certificate: %w", err)
	}
	return &Authority{Certificate: encode("CERTIFICATE", der), parsed: parsed, key: key}, nil
}

// Issue returns a new key and a certificate for it. A client and a server can use the certificate.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: subject.User, Organization: subject.Groups})
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = subject.Names, subject.Addresses
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %q: %w", subject.User, err)
	}
	private, err := encodeKey(key)
	return Pair{Certificate: encode("CERTIFICATE", der), Key: private}, err
}

// NewSigningKey returns a new key for signing service account tokens. The first result is the public key.
func NewSigningKey() (public, private []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a public key: %w", err)
	}
	private, err = encodeKey(key)
	return encode("PUBLIC KEY", der), private, err
}

// NewSSHKey returns a new key for clients of the nodes' SSH servers. The public key is a line of an authorized_keys
// file. The private key is in OpenSSH's own format, which all versions of OpenSSH can read.
func NewSSHKey() (public, private []byte, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making an SSH key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("making an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "pav-cluster")
	if err != nil {
		return nil, nil, fmt.Errorf("encoding an SSH key: %w", err)
	}
	return ssh.MarshalAuthorizedKey(signer.PublicKey()), pem.EncodeToMemory(block), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func newTemplate(name pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: name,
		// The certificate stays valid if a clock is set back a little.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}
