package admission

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// blocks returns the certificates of a PEM text, one by one.
func blocks(text []byte) [][]byte {
	var all [][]byte
	for {
		block, left := pem.Decode(text)
		if block == nil {
			return all
		}
		all, text = append(all, pem.EncodeToMemory(block)), left
	}
}

// artifacts returns the authority of a Secret, as cert-controller takes it.
func artifacts(secret keys) (*rotator.KeyPairArtifacts, error) {
	certificate, block := parse(secret[keyCA]), firstBlock(secret[keyCAKey])
	if certificate == nil || block == nil {
		return nil, errors.New("the Secret has no authority")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the authority: %w", err)
	}
	return &rotator.KeyPairArtifacts{Cert: certificate, Key: key, CertPEM: secret[keyCA], KeyPEM: secret[keyCAKey]}, nil
}

func firstBlock(text []byte) *pem.Block {
	block, _ := pem.Decode(text)
	return block
}
