package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A claim is deleted while the pod that creates its volume is held.
func TestClaimDeletedDuringCreation(t *testing.T) {
	t.Parallel()
	for kind, step := range map[string]pavv1.VolumeStep{pavv1.WorkflowValidation: pavv1.StepValidating, pavv1.WorkflowCreation: pavv1.StepCreating} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, "mind-"+kind)
			l.hold(t, kind)
			claim := l.claim(t, "data")
			l.runningPod(t, kind, claim)
			if kind == pavv1.WorkflowCreation {
				l.awaitEffects(t, claim, "create")
			}
			awaitStep(t, claim, step)
			remove(t, claim) // Nothing holds a claim.
			l.unhook(t, kind)
			awaitNoVolume(t, claim)
			l.wantReverted(t, claim)
		})
	}
}

// wantReverted fails the test unless nothing was created for a claim, or one creation reverted.
func (l *ledger) wantReverted(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	if l.wantEffects(claim) != nil {
		must(t, l.wantEffects(claim, "create", "delete"))
	}
}

func TestClaimDeletedWhileReverting(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "mind-reverting")
	l.hook(t, "create", "exit 3")
	l.hold(t, "delete")
	claim := l.claim(t, "data")
	l.runningPod(t, pavv1.WorkflowDeletion, claim)
	awaitStep(t, claim, pavv1.StepReverting)
	remove(t, claim)
	l.unhook(t, "create", "delete")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

func TestClaimDeletedBetweenAttempts(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "mind-between")
	l.hook(t, "validate", "exit 1")
	claim := l.claim(t, "data")
	awaitVolume(t, claim, "waits for its fourth attempt", func(v *pavv1.PavVolume) bool {
		return v.Status.Attempt >= 3 && v.Status.Step == "" // for four seconds, or longer later
	})
	removeClaim(t, claim)
	must(t, l.wantEffects(claim))
}

func TestClaimDeletedWhileThePodFitsNoNode(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "mind-waiting", with("create spec", "nodeSelector: {e2e-nowhere: 'yes'}"))
	claim := l.claim(t, "data")
	awaitStep(t, claim, pavv1.StepCreating)
	l.awaitCause(t, pavv1.WorkflowCreation, claim)
	wantClaimEventSoon(t, claim, time.Now(), "", "not scheduled")
	removeClaim(t, claim)
	must(t, l.wantEffects(claim)) // Nothing of it ever ran, so that there is nothing to revert.
}

func TestClaimDeletedWhenBound(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "mind-unused")
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// A claim of the same name is another claim, and gets another volume.
func TestClaimReplacedWhileCreating(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "mind-replaced")
	l.hold(t, "create")
	first := l.claim(t, "data")
	l.runningPod(t, pavv1.WorkflowCreation, first)
	l.awaitEffects(t, first, "create")
	remove(t, first)
	second := l.claim(t, "data")
	l.unhook(t, "create")
	pv := awaitBound(t, second)
	if pv.Spec.ClaimRef.UID != second.UID {
		t.Errorf("the volume of the second claim is bound to %+v", pv.Spec.ClaimRef)
	}
	awaitNoVolume(t, first)
	l.wantReverted(t, first)
	removeClaim(t, second)
	must(t, l.wantEffects(second, "create", "delete"))
}
