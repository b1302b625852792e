package bucketapi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// StepRefuse means that an object cannot be served, or not now, and to tell its user why.
const StepRefuse rule.Step = "Refuse"

// Refuse decides to tell the user of an object why it is not served.
func Refuse(reason, message string) rule.Decision {
	return rule.Decision{Step: StepRefuse, Reason: reason, Message: message, Warning: true}
}

// Refused is Refuse, for functions that may decide nothing.
func Refused(reason, format string, args ...any) *rule.Decision {
	d := Refuse(reason, fmt.Sprintf(format, args...))
	return &d
}

// Wait decides to tell the user of an object what it waits for.
func Wait(reason, message string) rule.Decision {
	return rule.Decision{Step: StepRefuse, Reason: reason, Message: message}
}

// EventType returns the type of the event that reports a decision.
func EventType(d rule.Decision) string {
	if d.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// RefuseClaims returns why a provisioner takes no new claims of buckets, or nil.
func RefuseClaims(p *pavv1.PavProvisioner) *rule.Decision {
	const reason = protocol.BucketClaimRefused
	switch {
	case p.DeletionTimestamp != nil:
		return Refused(reason, "PavProvisioner %q is being deleted, and serves no new claims", p.Name)
	case !p.Spec.HasBuckets():
		return Refused(reason, "PavProvisioner %q has neither bucketCreation nor bucketAccessGrant, and so no buckets", p.Name)
	case p.Refusal() != "":
		return Refused(reason, "PavProvisioner %q cannot be used: %s", p.Name, p.Refusal())
	default:
		return nil
	}
}

// RefuseAccesses returns why a provisioner grants no new accesses to buckets, or nil.
func RefuseAccesses(p *pavv1.PavProvisioner) *rule.Decision {
	const reason = protocol.BucketAccessRefused
	switch {
	case p.DeletionTimestamp != nil:
		return Refused(reason, "PavProvisioner %q is being deleted, and grants no new accesses", p.Name)
	case p.Spec.BucketAccessGrant == nil:
		return Refused(reason, "PavProvisioner %q has no bucketAccessGrant, so that nobody gets access to its buckets", p.Name)
	case p.Refusal() != "":
		return Refused(reason, "PavProvisioner %q cannot be used: %s", p.Name, p.Refusal())
	default:
		return nil
	}
}
