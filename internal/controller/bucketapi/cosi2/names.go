package cosi2

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// The kinds of objects that tenants write.
const (
	kindClaim  = "BucketClaim"
	kindAccess = "BucketAccess"
)

// Definitions of kinds list the values that fields can have, but others than PaV's may list more.
var (
	protocols           = []pavv1.BucketProtocol{pavv1.ProtocolS3, pavv1.ProtocolAzure, pavv1.ProtocolGCS}
	modes               = []pavv1.BucketAccessMode{pavv1.AccessReadWrite, pavv1.AccessReadOnly, pavv1.AccessWriteOnly}
	reclaimPolicies     = []pavv1.BucketReclaimPolicy{pavv1.BucketRetain, pavv1.BucketDelete}
	authenticationTypes = []pavv1.AuthenticationType{pavv1.AuthenticationKey, pavv1.AuthenticationServiceAccount}
)

// known returns a value as a record has it; "" if it is not one of those that PaV knows. Both have the same names for them.
func known[R, V ~string](all []R, value V) R {
	if r := R(value); slices.Contains(all, r) {
		return r
	}
	return ""
}

// protocolsOf returns the protocols of a list, each once, and the first name of the list that is not known, or "".
func protocolsOf(names []cosiv2.Protocol) (list []pavv1.BucketProtocol, unknown string) {
	for _, name := range names {
		p := known(protocols, name)
		if p == "" {
			return nil, string(name)
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list, ""
}

// namesOf returns what COSI calls protocols; nil for none.
func namesOf(list []pavv1.BucketProtocol) []cosiv2.Protocol {
	var names []cosiv2.Protocol
	for _, p := range list {
		names = append(names, cosiv2.Protocol(p))
	}
	return names
}

// unknownProtocol is what users are told of a protocol that is not known.
func unknownProtocol(name string) string {
	return fmt.Sprintf("the protocol %q is none of S3, Azure and GCS", name)
}

// errorOf returns what objects show of a failure that is recorded; nil for none.
func errorOf(failure *pavv1.WorkflowFailure) *cosiv2.TimestampedError {
	if failure == nil {
		return nil
	}
	return errorAt(failure.Time, failure.Message)
}

// errorAt returns an error. The time is in seconds, as it is written.
func errorAt(at metav1.Time, message string) *cosiv2.TimestampedError {
	return &cosiv2.TimestampedError{Time: new(at.Rfc3339Copy()), Message: observability.Clip(strings.TrimSpace(message), observability.MaxCondition)}
}
