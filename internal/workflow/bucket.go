package workflow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID and maxInfo are how many bytes an identifier in a store, and what clients are told of a bucket, may have.
const (
	maxID   = 2048
	maxInfo = 4 << 10
)

// SealPrefix begins the names of the Secrets in which the controller agent keeps the keys of attempts to grant access. No definition
// gets at them.
const SealPrefix = "seal-"

// ExtraInfo begins the names of what clients are told of a bucket that become keys of a ConfigMap as they are.
const ExtraInfo = "extra/"

// InfoPort and InfoAddressingStyle are those names of what clients are told of a bucket whose values are limited.
const (
	InfoPort            = "port"
	InfoAddressingStyle = "addressingStyle"
)

// infoNames are the names of what clients are told of a bucket, besides those that begin with ExtraInfo.
var infoNames = []string{"endpoint", "region", "subRegion", InfoAddressingStyle, "storageAccount", "projectId", "host", InfoPort}

// InfoNames returns the names of what clients are told of a bucket, besides those that begin with ExtraInfo.
func InfoNames() []string { return slices.Clone(infoNames) }

// AddressingStyles are how clients of S3 may name a bucket: in the path, or in the name of the host.
func AddressingStyles() []string { return []string{"path", "virtual"} }

var (
	idForm     = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)
	configKey  = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	errNoID    = errors.New("the identifier is empty")
	errNotText = errors.New("it is not valid UTF-8, or has control characters")
)

// CheckID returns why text cannot identify a bucket or an account in its store, or nil.
//
// COSI, v1alpha2: identifiers have at most 2048 characters, of A to Z, a to z, 0 to 9, '/', '.', '_' and '-'.
func CheckID(text string) error {
	switch {
	case text == "":
		return errNoID
	case len(text) > maxID:
		return fmt.Errorf("the identifier is %d bytes long, and may have %d at most", len(text), maxID)
	case !idForm.MatchString(text):
		return fmt.Errorf("the identifier %.100q has other characters than letters, digits, '/', '.', '_' and '-'", text)
	}
	return nil
}

// CheckInfo returns why clients cannot be told a value of a bucket by a name, or nil.
func CheckInfo(name, value string) error {
	if len(value) > maxInfo {
		return fmt.Errorf("it is %d bytes long, and may have %d at most", len(value), maxInfo)
	}
	if key, extra := strings.CutPrefix(name, ExtraInfo); extra {
		switch {
		case !configKey.MatchString(key) || key == "." || strings.HasPrefix(key, ".."):
			return fmt.Errorf("%.100q is no key of a ConfigMap", key)
		case !utf8.ValidString(value):
			return errNotText
		}
		return nil
	}
	switch {
	case !slices.Contains(infoNames, name):
		return fmt.Errorf("%.100q is none of %s, and not below %s", name, strings.Join(infoNames, ", "), ExtraInfo)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return errNotText
	case name == InfoAddressingStyle && !slices.Contains(AddressingStyles(), value):
		return fmt.Errorf("%.100q is none of %s", value, strings.Join(AddressingStyles(), ", "))
	case name == InfoPort:
		if port, err := strconv.ParseUint(value, 10, 16); err != nil || port == 0 {
			return fmt.Errorf("%.100q is no port, which is a number from 1 to 65535", value)
		}
	}
	return nil
}
