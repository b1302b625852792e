package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
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
		"one of an access that is not wanted":                                   {requested(released, noRevocation, former(account(0, called("zero"), until(0)))), `account "zero" goes on working`},
		"one whose revocation pod was not created before the template was gone": {granted(noRevocation, revoking, intended), `account "ba-u-1"`},
		"credentials that all accesses share":                                   {granted(noRevocation, former(account(7, shared, until(0)))), ""},
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

// recorded has the record name the pod of stray, as a revocation pod.
func recorded(s *state) {
	s.record.Status.Step, s.record.Status.Pod = pavv1.AccessRevokingStep, &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "stray", UID: "stray"}
}

// While a revocation pod runs, another account may come first, or an administrator may remove one by hand. What the pod has revoked is the
// account that it was made for, which is 1.
func TestRecordRevoked_IsOfTheAccountOfThePod(t *testing.T) {
	revoked := stray(pavv1.WorkflowRevocation, ended(0))
	for name, test := range map[string]struct {
		former []pavv1.GrantedAccount
		want   []int32
	}{
		"it is the only one":                       {former: []pavv1.GrantedAccount{account(1, until(0))}},
		"another is due before it":                 {former: []pavv1.GrantedAccount{account(2, until(-time.Minute)), account(1, until(0))}, want: []int32{2}},
		"one of an attempt that failed was added":  {former: []pavv1.GrantedAccount{account(1, until(0)), account(2, neverGranted)}, want: []int32{2}},
		"someone has removed it from the record":   {former: []pavv1.GrantedAccount{account(2, until(0))}, want: []int32{2}},
		"someone has removed all from the record":  {},
		"the leader's clock is behind the other's": {former: []pavv1.GrantedAccount{account(1, until(time.Second))}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, granted(former(test.former...), revoked, recorded))
			w.pass(t)
			status := w.record(t).Status
			if status.Pod != nil || status.Step != "" {
				t.Errorf("the pod is still recorded, at %q", status.Step)
			}
			var left []int32
			for _, account := range status.Former {
				left = append(left, account.Number)
			}
			if !slices.Equal(left, test.want) {
				t.Errorf("the accounts %v are left, want %v", left, test.want)
			}
		})
	}
}
