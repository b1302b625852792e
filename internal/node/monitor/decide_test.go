package monitor

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecide(t *testing.T) {
	// staged is a healthy stage, changed.
	staged := func(change func(*snapshot)) snapshot {
		o := snapshot{phase: pavv1.StageStaged, thisBoot: true, attached: true, volume: answers, stagingPod: workflow.Running, restageable: true, outcomeHeld: true}
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    snapshot
		want decision
	}{
		"an unstaging does not wait for kubelet": {
			o: snapshot{phase: pavv1.StageUnstaging, thisBoot: true}, want: decision{unstage: true}},
		"nor does one of an earlier boot": {
			o: snapshot{phase: pavv1.StageUnstaging}, want: decision{unstage: true}},
		"nor one of a stage that only claims the volume": {
			o: snapshot{phase: pavv1.StageUnstaging, thisBoot: true, claimOnly: true}, want: decision{unstage: true}},
		"a stage of an earlier boot waits for kubelet": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached = false, false }), want: decision{}},
		"its staging pod is released when it is over: kubelet's call may never come": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached, o.stagingPod = false, false, workflow.Failed }), want: decision{release: true}},
		"staging waits for kubelet": {
			o: snapshot{phase: pavv1.StageStaging, thisBoot: true}, want: decision{}},
		"all is well": {o: staged(func(*snapshot) {}), want: decision{}},
		"a staging pod that has completed is no fault, and goes": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Succeeded }), want: decision{release: true}},
		"one that has completed and gone is none either": {
			o: staged(func(o *snapshot) { o.stagingPod, o.outcomeHeld = workflow.Absent, false }), want: decision{}},
		"a pod that is being stopped is waited for": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Stopping }), want: decision{}},
		"a pod that has failed under a volume that responds is reported, and nothing more": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Failed }), want: decision{loss: lossEnded, release: true}},
		"its end stays on record when it is gone": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.outcomeHeld, o.degraded = workflow.Absent, false, lossEnded }),
			want: decision{loss: lossEnded}},
		"a dead volume is staged again": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Failed, dead }), want: decision{loss: lossDead, release: true, restage: true}},
		"again if that did not succeed, or the agent ended in between": {
			o: staged(func(o *snapshot) {
				o.stagingPod, o.volume, o.outcomeHeld, o.degraded = workflow.Failed, dead, false, lossDead
			}),
			want: decision{loss: lossDead, restage: true}},
		"where the staging pod has gone, a daemon that it started elsewhere may answer soon": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.outcomeHeld = workflow.Absent, dead, false }),
			want: decision{loss: lossDead}},
		"also where it has completed": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Succeeded, dead }),
			want: decision{loss: lossDead, release: true}},
		"but not after a while, where it has gone": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Absent, dead, true }),
			want: decision{loss: lossDead, restage: true}},
		"nor where it has completed": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Succeeded, dead, true }),
			want: decision{loss: lossDead, release: true, restage: true}},
		"a dead volume whose staging pod runs may answer soon": {
			o: staged(func(o *snapshot) { o.volume = dead }), want: decision{loss: lossDead}},
		"but not after a while, where it runs": {
			o: staged(func(o *snapshot) { o.volume, o.confirmed = dead, true }), want: decision{loss: lossDead, restage: true}},
		"a dead volume waits for the end of a pod that is being stopped": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Stopping, dead, true }), want: decision{loss: lossDead}},
		"nothing is staged again that was so a short while ago": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.early = workflow.Failed, dead, true }),
			want: decision{loss: lossDead, release: true}},
		"nothing is staged again where the provisioner forbids it": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.restageable = workflow.Failed, dead, false }),
			want: decision{loss: lossDead, release: true}},
		"nothing is staged again on a node that goes down": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.shutdown = workflow.Failed, dead, true }),
			want: decision{loss: lossDead, release: true}},
		"a volume that hangs is reported, and nothing more": {
			o: staged(func(o *snapshot) { o.volume = silent }), want: decision{loss: lossSilent}},
		"also where its staging pod has ended": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Failed, silent }), want: decision{loss: lossSilent, release: true}},
		"one that answers again is well": {
			o: staged(func(o *snapshot) { o.degraded = lossSilent }), want: decision{}},
		"nothing changes where nobody could look": {
			o: staged(func(o *snapshot) { o.volume, o.degraded = unseen, lossSilent }), want: decision{loss: lossSilent}},
		"a volume that someone has unmounted is reported": {
			o: staged(func(o *snapshot) { o.attached, o.volume = false, unseen }), want: decision{loss: lossDetached}},
		"a mount that was exchanged after it was served is withdrawn": {
			o: staged(func(o *snapshot) { o.exchanged = true }), want: decision{withdraw: true}},
		"also one that hangs": {
			o: staged(func(o *snapshot) { o.exchanged, o.volume = true, silent }), want: decision{loss: lossSilent, withdraw: true}},
		"but a dead one is staged again": {
			o: staged(func(o *snapshot) { o.exchanged, o.volume, o.confirmed = true, dead, true }), want: decision{loss: lossDead, restage: true}},
		"what is being staged again goes on, whatever is seen of it": {
			o:    snapshot{phase: pavv1.StageUnstaging, restaging: true, degraded: lossDead, thisBoot: true},
			want: decision{loss: lossDead, restage: true}},
		"but not after a reboot, with which its clients have gone": {
			o: snapshot{phase: pavv1.StageStaging, restaging: true, degraded: lossDead}, want: decision{loss: lossDead}},
		"what is staged is gone with the boot, and kubelet will call": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached, o.volume = false, false, unseen }), want: decision{}},
		"a stage that but claims the volume has nothing to lose": {
			o: staged(func(o *snapshot) { o.claimOnly, o.attached, o.stagingPod = true, false, workflow.Absent }), want: decision{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decide(test.o); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestDecide_NeverRestagesWhileTheOldVolumeMayBeWritten goes through all combinations.
func TestDecide_NeverRestagesWhileTheOldVolumeMayBeWritten(t *testing.T) {
	for o := range combinations() {
		v := decide(o)
		wrong := func(what string) { t.Errorf("%s: %+v: %+v", what, o, v) }
		over := o.stagingPod == workflow.Succeeded || o.stagingPod == workflow.Failed
		if v.restage && !o.restaging && (o.volume != dead || !o.attached || !o.restageable || !o.thisBoot || o.claimOnly) {
			wrong("staged again although the volume is not known to be dead")
		}
		if v.restage && !o.restaging && v.loss == lossNone {
			wrong("staged again without a word")
		}
		if v.restage && !o.restaging && o.stagingPod != workflow.Failed && !o.confirmed {
			wrong("staged again although a daemon may live")
		}
		if v.restage && !o.restaging && o.early {
			wrong("staged again too soon")
		}
		if v.withdraw && (v.restage || v.unstage || !o.attached || o.phase != pavv1.StageStaged) {
			wrong("withdrawn although it is not served")
		}
		if v.release && (!over || !o.outcomeHeld) {
			wrong("a pod is let go that has not ended")
		}
		if v.release && o.thisBoot && o.stagingPod == workflow.Failed && v.loss == lossNone {
			wrong("a pod is let go whose end is not on record")
		}
		o.degraded, o.outcomeHeld = v.loss, o.outcomeHeld && !v.release
		if again := decide(o); again.loss != v.loss || again.release || again.restage != v.restage {
			t.Errorf("a second look decides otherwise: %+v: %+v, then %+v", o, v, again)
		}
	}
}

func combinations() func(yield func(snapshot) bool) {
	phases := []pavv1.StagePhase{"", pavv1.StageValidating, pavv1.StageStaging, pavv1.StageStaged, pavv1.StageUnstaging, pavv1.StageFailed}
	losses := []loss{lossNone, lossEnded, lossDead, lossSilent, lossDetached}
	pods := []workflow.State{workflow.Absent, workflow.Running, workflow.Stopping, workflow.Succeeded, workflow.Failed}
	return func(yield func(snapshot) bool) {
		for bits := range 1 << 10 {
			is := func(bit int) bool { return bits>>bit&1 == 1 }
			o := snapshot{
				restaging: is(0), claimOnly: is(1), thisBoot: is(2), attached: is(3), outcomeHeld: is(4),
				shutdown: is(5), confirmed: is(6), restageable: is(7), early: is(8), exchanged: is(9),
			}
			for _, o.phase = range phases {
				for _, o.degraded = range losses {
					for _, o.stagingPod = range pods {
						for _, o.volume = range []answer{unseen, answers, silent, dead} {
							if !yield(o) {
								return
							}
						}
					}
				}
			}
		}
	}
}
