package credentials

import (
	"crypto/hpke"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// The suite is a hybrid: who records ciphertexts today cannot open them when X25519 is broken.
var (
	kem  = hpke.MLKEM768X25519()
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
)

// Key is the pair of keys of one attempt.
type Key struct {
	// Private opens what Public has sealed. It is kept in a Secret of the controller agent until the attempt is over.
	Private []byte

	// Public is text, for an annotation of the grant pod.
	Public string
}

// NewKey makes the keys of an attempt.
func NewKey() (Key, error) {
	private, err := kem.GenerateKey()
	if err != nil {
		return Key{}, fmt.Errorf("making a key: %w", err)
	}
	secret, err := private.Bytes()
	if err != nil {
		return Key{}, fmt.Errorf("encoding a key: %w", err)
	}
	return Key{Private: secret, Public: base64.StdEncoding.EncodeToString(private.PublicKey().Bytes())}, nil
}

// PublicOf returns the public half of a private key.
func PublicOf(private []byte) (string, error) {
	key, err := kem.NewPrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("reading a private key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}

// Purpose says what sealed credentials are for: they cannot be opened for anything else.
type Purpose struct {
	// Access is the UID of the PavBucketAccess.
	Access types.UID

	// Pod is the UID of the grant pod.
	Pod types.UID
}

func (p Purpose) info() []byte {
	return []byte("pav credentials v1|" + string(p.Access) + "|" + string(p.Pod))
}

// Seal seals credentials with a public key. It fails if they exceed a limit.
func Seal(public string, purpose Purpose, c Credentials) ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding credentials: %w", err)
	}
	defer clear(plain)
	return sealRaw(public, purpose, plain)
}

func sealRaw(public string, purpose Purpose, plain []byte) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		return nil, fmt.Errorf("decoding a public key: %w", err)
	}
	key, err := kem.NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("reading a public key: %w", err)
	}
	sealed, err := hpke.Seal(key, kdf, aead, purpose.info(), plain)
	if err != nil {
		return nil, fmt.Errorf("sealing credentials: %w", err)
	}
	return sealed, nil
}

var errForm = errors.New("the credentials are not in the form of this version of PaV")

// Open opens sealed credentials, and checks them: a node that was taken over may have sealed anything.
func Open(private []byte, purpose Purpose, sealed []byte) (Credentials, error) {
	key, err := kem.NewPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("reading a private key: %w", err)
	}
	plain, err := hpke.Open(key, kdf, aead, purpose.info(), sealed)
	if err != nil {
		return nil, fmt.Errorf("opening credentials: %w", err)
	}
	defer clear(plain)
	c := Credentials{}
	if err := json.Unmarshal(plain, &c); err != nil {
		// The error of the decoder may quote what it decodes.
		return nil, errForm
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c, nil
}
