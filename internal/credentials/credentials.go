package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Limits of what a grant pod may leave, in bytes and files.
const (
	MaxValue = 16 << 10
	MaxAll   = 48 << 10
	MaxFiles = 64
)

// Credentials are the contents of files by name: the path below /pav/credentials.
type Credentials map[string][]byte

// The names of credentials.
const (
	AccessKeyID     = "accessKeyId"
	AccessSecretKey = "accessSecretKey"

	AccessToken = "accessToken"

	AccessID       = "accessId"
	AccessSecret   = "accessSecret"
	PrivateKeyName = "privateKeyName"
	ServiceAccount = "serviceAccount"

	// CertificateAuthority is what clients check the store's certificate with. It is no secret.
	CertificateAuthority = "certificateAuthority"

	// Extra begins the names of credentials that become keys of the Secret as they are.
	Extra = "extra/"
)

var names = []string{
	AccessKeyID, AccessSecretKey, AccessToken, AccessID, AccessSecret, PrivateKeyName, ServiceAccount, CertificateAuthority,
}

// needed are the credentials of which each protocol needs one list.
var needed = map[pavv1.BucketProtocol][][]string{
	pavv1.ProtocolS3:    {{AccessKeyID, AccessSecretKey}},
	pavv1.ProtocolAzure: {{AccessToken}},
	pavv1.ProtocolGCS:   {{AccessID, AccessSecret}, {PrivateKeyName, ServiceAccount}},
}

// extraKey is a key that a Secret may have.
var extraKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// CheckName returns why there is no credential of a name, or nil.
func CheckName(name string) error {
	if key, extra := strings.CutPrefix(name, Extra); extra {
		if !extraKey.MatchString(key) || key == "." || strings.HasPrefix(key, "..") {
			return fmt.Errorf("%.100q is no key of a Secret", key)
		}
		return nil
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("%.100q is none of the credentials %s, and not below %s", name, strings.Join(names, ", "), Extra)
	}
	return nil
}

var (
	errTooMany  = fmt.Errorf("there are more than %d credentials", MaxFiles)
	errTooLarge = fmt.Errorf("the credentials have more than %d bytes together", MaxAll)
)

// Check returns why credentials exceed a limit or have a wrong name, or nil. The error has no credential.
func (c Credentials) Check() error {
	if len(c) > MaxFiles {
		return errTooMany
	}
	all := 0
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if err := CheckName(name); err != nil {
			return err
		}
		if len(c[name]) > MaxValue {
			return fmt.Errorf("%s has more than %d bytes", name, MaxValue)
		}
		all += len(c[name])
	}
	if all > MaxAll {
		return errTooLarge
	}
	return nil
}

// CheckFor returns which credential is missing that clients of a protocol need, or nil.
func (c Credentials) CheckFor(protocol pavv1.BucketProtocol) error {
	alternatives, known := needed[protocol]
	if !known {
		return fmt.Errorf("the protocol %q is not known", protocol)
	}
	var missing []string
	for _, alternative := range alternatives {
		var empty []string
		for _, name := range alternative {
			if len(bytes.TrimSpace(c[name])) == 0 {
				empty = append(empty, "/pav/credentials/"+name)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		missing = append(missing, strings.Join(empty, " and "))
	}
	return errors.New("the protocol " + string(protocol) + " needs " + strings.Join(missing, ", or "))
}
