package access

import (
	"strings"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func noRevocation(s *state) { s.provisioner.Spec.BucketAccessRevoke = nil }

func shared(a *pavv1.GrantedAccount) { a.Shared = true }

// An account that a grant pod has made goes on working where the definition revokes nothing. That is told once for each account, on the
// record and on the object that asked for access.
func TestRecordRevoked_TellsWhatGoesOnWorking(t *testing.T) {
	for name, test := range map[string]struct {
		state state
		want  string // in the events, or "" for none
	}{
		"an account that was replaced": {granted(noRevocation, former(account(7, called("seven"), until(0)))), `account "seven" goes on working`},
		"one of an attempt that failed": {granted(noRevocation, former(account(7, neverGranted))),
			`account "ba-u-7", which an attempt that failed may have made, goes on working`},
		"one of an access that is not wanted": {requested(released, noRevocation, former(account(0, called("zero"), until(0)))), `account "zero" goes on working`},
		"credentials that all accesses share": {granted(noRevocation, former(account(7, shared, until(0)))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.state)
			w.pass(t)
			if former := w.record(t).Status.Former; len(former) > 0 {
				t.Errorf("left are %+v", former)
			}
			events := 0
			for len(w.events.Events) > 0 {
				if text := <-w.events.Events; strings.Contains(text, "AccountLeft") && strings.Contains(text, "Warning") && strings.Contains(text, test.want) {
					events++
				}
			}
			if want := 2; test.want != "" && events != want || test.want == "" && events > 0 {
				t.Errorf("%d events", events)
			}
			for range 2 {
				if test.state.record.Spec.Released {
					break // the record is gone
				}
				w.pass(t)
			}
			if w.told("goes on working") {
				t.Error("it is told again")
			}
		})
	}
}

// The definition may have changed while a revocation pod ran, which has revoked the account.
func TestLeaves_AfterARevocationPod(t *testing.T) {
	s := granted(revoking, thePod(ended(0)), noRevocation)
	if s.leaves() {
		t.Error("the account that a pod has revoked goes on working")
	}
}
