package admission

import (
	"bytes"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world simulates the Secret, the webhook configuration and the leader's memory.
type world struct {
	snapshot
	issuer *issuer
}

// settle executes all steps that are due. It returns them, and the time until the next step.
func (w *world) settle(t *testing.T) (steps []step, after time.Duration) {
	t.Helper()
	for range 10 {
		p := w.issuer.decide(w.snapshot)
		if p.step == rest {
			return steps, p.after
		}
		steps = append(steps, p.step)
		var err error
		switch p.step {
		case rest:
		case makeAuthority:
			w.next, err = w.issuer.authority(w.now)
			w.since = w.now
		case trustAuthority:
			w.bundle = p.bundle
		case useAuthority:
			w.secret, w.next = w.next, nil
		case makeCertificate:
			w.secret, err = w.issuer.certificate(w.secret, w.now)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.checkTrust(t)
	}
	t.Fatalf("the steps do not end: %v", steps)
	return nil, 0
}

// checkTrust checks the invariant: after every step, the served certificate is trusted.
func (w *world) checkTrust(t *testing.T) {
	t.Helper()
	served := parse(w.secret[keyServer])
	if served == nil {
		return
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.bundle)
	_, err := served.Verify(x509.VerifyOptions{DNSName: "webhook.pav.svc", Roots: roots, CurrentTime: w.now})
	if err != nil {
		t.Errorf("at %s, the certificate is not trusted: %v", w.now, err)
	}
}

func TestRenewal(t *testing.T) {
	lifetimes := Lifetimes{CA: 1000 * time.Hour, Server: 100 * time.Hour, Ahead: 10 * time.Hour}
	start := time.Now().Truncate(time.Second)
	w := &world{issuer: newIssuer("pav", lifetimes), snapshot: snapshot{now: start}}
	pass := func(now time.Time, after time.Duration, want ...step) {
		t.Helper()
		w.now = now
		got, rests := w.settle(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s after the start (-want +got):\n%s", now.Sub(start), diff)
		}
		if rests != after {
			t.Errorf("%s after the start: rests %s, want %s", now.Sub(start), rests, after)
		}
	}
	pass(start, 90*time.Hour, makeAuthority, trustAuthority, useAuthority)
	pass(start, 90*time.Hour)

	first := w.secret
	pass(start.Add(90*time.Hour+time.Second), 90*time.Hour, makeCertificate)
	if !bytes.Equal(first[keyCA], w.secret[keyCA]) || bytes.Equal(first[keyServer], w.secret[keyServer]) {
		t.Error("the authority was replaced, or the certificate was not")
	}

	w.bundle = nil // someone has edited the configuration
	pass(start.Add(91*time.Hour), 89*time.Hour+time.Second, trustAuthority)

	renewal := start.Add(990*time.Hour + time.Second)
	w.secret, _ = w.issuer.certificate(w.secret, renewal.Add(-50*time.Hour))
	pass(renewal, settle, makeAuthority, trustAuthority)
	if n := len(blocks(w.bundle)); n != 2 {
		t.Errorf("%d authorities are trusted before the new one is used, want 2", n)
	}
	pass(renewal.Add(settle), linger-settle, useAuthority)
	pass(renewal.Add(linger), 90*time.Hour-linger, trustAuthority)
	if n := len(blocks(w.bundle)); n != 1 {
		t.Errorf("%d authorities are trusted in the end, want 1", n)
	}

	w.secret = keys{} // as an administrator does after a key was stolen
	pass(renewal.Add(time.Hour), linger, makeAuthority, trustAuthority, useAuthority)
	pass(renewal.Add(time.Hour+linger), 90*time.Hour-linger, trustAuthority)
	if n := len(blocks(w.bundle)); n != 1 {
		t.Errorf("%d authorities are trusted, want 1", n)
	}
}

func TestRenewal_OfWhatCannotBeRead(t *testing.T) {
	w := &world{issuer: newIssuer("pav", DefaultLifetimes()), snapshot: snapshot{now: time.Now()}}
	w.settle(t)
	for name, spoil := range map[string]func(secret keys){
		"no key":         func(secret keys) { delete(secret, keyServerPair) },
		"another's key":  func(secret keys) { secret[keyServerPair] = secret[keyCAKey] },
		"no certificate": func(secret keys) { secret[keyServer] = []byte("certificate") },
		"another authority": func(secret keys) {
			other, _ := w.issuer.authority(w.now)
			secret[keyCA], secret[keyCAKey] = other[keyCA], other[keyCAKey]
		},
		"no authority": func(secret keys) { delete(secret, keyCA) },
	} {
		t.Run(name, func(t *testing.T) {
			copied := maps.Clone(w.secret)
			spoil(copied)
			spoiled := &world{issuer: w.issuer, snapshot: snapshot{now: w.now, secret: copied, bundle: w.bundle}}
			if p := spoiled.issuer.decide(spoiled.snapshot); p.step != makeCertificate && p.step != makeAuthority {
				t.Errorf("got step %s", p.step)
			}
		})
	}
}
