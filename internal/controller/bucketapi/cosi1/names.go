package cosi1

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// The kinds of objects that tenants write.
const (
	kindClaim  = "BucketClaim"
	kindAccess = "BucketAccess"
)

// protocolsOf returns the protocols of a list, each once, and the first name of the list that is not known, or "".
func protocolsOf(names []cosiv1.Protocol) (known []pavv1.BucketProtocol, unknown string) {
	for _, name := range names {
		p := protocol.FromCOSI(string(name))
		if p == "" {
			return nil, string(name)
		}
		if !slices.Contains(known, p) {
			known = append(known, p)
		}
	}
	return known, ""
}

// namesOf returns what COSI calls protocols. The list is not nil: COSI demands one, be it empty.
func namesOf(protocols []pavv1.BucketProtocol) []cosiv1.Protocol {
	names := make([]cosiv1.Protocol, len(protocols))
	for i, p := range protocols {
		names[i] = cosiv1.Protocol(protocol.COSIProtocol(p))
	}
	return names
}

// unknownProtocol is what users are told of a protocol that is not known.
func unknownProtocol(name string) string {
	return fmt.Sprintf("the protocol %q is none of S3, Azure and GCP", name)
}

// reclaimPolicy returns what happens to the buckets of a class; "" if its deletionPolicy is not known. Upstream's definitions have the
// default "retain".
func reclaimPolicy(class *cosiv1.BucketClass) pavv1.BucketReclaimPolicy {
	switch {
	case class.DeletionPolicy == "", strings.EqualFold(string(class.DeletionPolicy), string(cosiv1.DeletionPolicyRetain)):
		return pavv1.BucketRetain
	case strings.EqualFold(string(class.DeletionPolicy), string(cosiv1.DeletionPolicyDelete)):
		return pavv1.BucketDelete
	default:
		return ""
	}
}

// authenticationType returns how the clients of a class prove who they are; "" if that is not known.
func authenticationType(class *cosiv1.BucketAccessClass) pavv1.AuthenticationType {
	switch {
	case strings.EqualFold(string(class.AuthenticationType), string(cosiv1.AuthenticationTypeKey)):
		return pavv1.AuthenticationKey
	case strings.EqualFold(string(class.AuthenticationType), string(cosiv1.AuthenticationTypeIAM)):
		return pavv1.AuthenticationServiceAccount
	default:
		return ""
	}
}

// accessMode returns the mode of the accesses of a class; "" if it is not known.
func accessMode(class *cosiv1.BucketAccessClass) pavv1.BucketAccessMode {
	text, found := class.Parameters[cosiv1.AccessModeParameter]
	if !found {
		return pavv1.AccessReadWrite
	}
	mode := pavv1.BucketAccessMode(text)
	if !slices.Contains([]pavv1.BucketAccessMode{pavv1.AccessReadWrite, pavv1.AccessReadOnly, pavv1.AccessWriteOnly}, mode) {
		return ""
	}
	return mode
}

// reference returns the claim that a Bucket names; an empty one if it names none.
func reference(b *cosiv1.Bucket) corev1.ObjectReference {
	if b.Spec.BucketClaim == nil {
		return corev1.ObjectReference{}
	}
	return *b.Spec.BucketClaim
}
