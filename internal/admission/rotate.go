package admission

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"crypto/x509"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// Lifetimes are the lifetimes of certificates, and how long before their expiry they are replaced.
type Lifetimes struct {
	// CA and Server are the lifetimes of the authority and of the certificate.
	CA, Server time.Duration

	// Ahead is how long before its expiry either is replaced. It is less than both.
	Ahead time.Duration
}

// DefaultLifetimes returns the lifetimes of an installation.
func DefaultLifetimes() Lifetimes {
	const day = 24 * time.Hour
	return Lifetimes{CA: 10 * 365 * day, Server: 365 * day, Ahead: 90 * day}
}

const (
	// skew is how far clocks may differ: certificates are valid from that time before their creation.
	skew = time.Hour

	// settle is how long API servers may take to trust a new authority before its first certificate is served.
	settle = 3 * time.Second

	// linger is how long a former authority is trusted after it was replaced: replicas may still serve its certificate.
	linger = time.Minute
)

// keys are the contents of the Secret: certificates and keys as PEM.
type keys map[string][]byte

// snapshot has everything that the renewal depends on.
type snapshot struct {
	secret keys
	bundle []byte // the CA bundle of the webhook's configuration
	now    time.Time

	// next are the next contents of the Secret, with a new authority since the time.
	next  keys
	since time.Time
}

// step is the step of a pass.
type step string

const (
	rest            step = "Rest"
	makeAuthority   step = "MakeAuthority"   // make next
	trustAuthority  step = "TrustAuthority"  // write the bundle
	useAuthority    step = "UseAuthority"    // write next into the Secret
	makeCertificate step = "MakeCertificate" // of the authority that there is
)

// plan is a step, with the bundle to write, or with how long there is nothing to do.
type plan struct {
	step   step
	bundle []byte
	after  time.Duration
}

// issuer makes certificates with cert-controller, and decides itself when. The rotator of cert-controller replaces
// authority and certificate in one write, and the bundle by the new authority alone: requests to a replica that still
// serves the former certificate would fail.
type issuer struct {
	lifetimes Lifetimes
	rotator   rotator.CertRotator
}

func newIssuer(namespace string, lifetimes Lifetimes) *issuer {
	return &issuer{lifetimes: lifetimes, rotator: rotator.CertRotator{
		CAName: "pav-webhook", CAOrganization: "pav", DNSName: dnsName(namespace),
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
}

// decide is pure. A new authority is trusted before it is used, and a former one for a while after, so that
// no request fails for a rotation.
func (i *issuer) decide(s snapshot) plan {
	if !i.hasAuthority(s) {
		return i.decideAuthority(s)
	}
	if !i.isGood(s.secret, keyServer, keyServerPair, s.now.Add(i.lifetimes.Ahead)) {
		return plan{step: makeCertificate}
	}
	issued := parse(s.secret[keyCA]).NotBefore.Add(skew)
	wanted := s.secret[keyCA]
	if s.now.Before(issued.Add(linger)) {
		wanted = append(slices.Clone(wanted), others(s.bundle, s.secret[keyCA], s.now)...)
	}
	if !bytes.Equal(s.bundle, wanted) {
		return plan{step: trustAuthority, bundle: wanted}
	}
	due := earliest(s.now, s.secret).Add(-i.lifetimes.Ahead)
	if end := issued.Add(linger); len(wanted) > len(s.secret[keyCA]) && end.Before(due) {
		due = end
	}
	return plan{step: rest, after: max(due.Sub(s.now), time.Second)}
}

// decideAuthority replaces the authority.
func (i *issuer) decideAuthority(s snapshot) plan {
	switch {
	case s.next == nil:
		return plan{step: makeAuthority}
	case !trusts(s.bundle, s.next[keyCA]):
		bundle := append(slices.Clone(s.next[keyCA]), others(s.bundle, s.next[keyCA], s.now)...)
		return plan{step: trustAuthority, bundle: bundle}
	}
	// Where nothing is served yet, nobody waits.
	if left := s.since.Add(settle).Sub(s.now); left > 0 && !expired(s.secret[keyServer], s.now) {
		return plan{step: rest, after: left}
	}
	return plan{step: useAuthority}
}

// hasAuthority reports whether the Secret has an authority that need not be replaced yet.
func (i *issuer) hasAuthority(s snapshot) bool {
	return i.isGood(s.secret, keyCA, keyCAKey, s.now.Add(i.lifetimes.Ahead))
}

// isGood reports whether the Secret has a certificate of its authority that will still be good at a time.
func (i *issuer) isGood(secret keys, certificate, key string, at time.Time) bool {
	name, usages := i.rotator.DNSName, i.rotator.ExtKeyUsages
	if certificate == keyCA {
		name, usages = i.rotator.CAName, nil
	}
	good, err := rotator.ValidCert(secret[keyCA], secret[certificate], secret[key], name, usages, at)
	return err == nil && good
}

// authority returns the contents of a Secret with a new authority and a certificate of it.
func (i *issuer) authority(now time.Time) (keys, error) {
	ca, err := i.rotator.CreateCACert(now.Add(-skew), now.Add(i.lifetimes.CA))
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	return i.certificate(keys{keyCA: ca.CertPEM, keyCAKey: ca.KeyPEM}, now)
}

// certificate returns the contents of a Secret with a new certificate of its authority.
func (i *issuer) certificate(secret keys, now time.Time) (keys, error) {
	ca, err := artifacts(secret)
	if err != nil {
		return nil, err
	}
	certificate, key, err := i.rotator.CreateCertPEM(ca, now.Add(-skew), now.Add(i.lifetimes.Server))
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	made := maps.Clone(secret)
	made[keyServer], made[keyServerPair] = certificate, key
	return made, nil
}

// others returns the certificates of a bundle that are not expired, without one of them.
func others(bundle, one []byte, now time.Time) []byte {
	var kept []byte
	for _, text := range blocks(bundle) {
		if !bytes.Equal(text, one) && !expired(text, now) {
			kept = append(kept, text...)
		}
	}
	return kept
}

// earliest returns when the first of the certificates of a Secret ends.
func earliest(now time.Time, secret keys) time.Time {
	end := time.Time{}
	for _, key := range []string{keyCA, keyServer} {
		certificate := parse(secret[key])
		if certificate == nil {
			return now
		}
		if end.IsZero() || certificate.NotAfter.Before(end) {
			end = certificate.NotAfter
		}
	}
	return end
}
