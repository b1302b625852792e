package monitor

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecide(t *testing.T) {
	// staged returns the snapshot of a healthy stage, with a change.
	staged := func(change func(*snapshot)) snapshot {
		o := snapshot{phase: pavv1.StageStaged, thisBoot: true, attached: true, volume: answers, stagingPod: workflow.Running, restageable: true, outcomeHeld: true}
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    snapshot
		want decision
	}{
		"unstaging: go on without kubelet": {
			o: snapshot{phase: pavv1.StageUnstaging, thisBoot: true}, want: decision{unstage: true}},
		"unstaging of an earlier boot: go on without kubelet": {
			o: snapshot{phase: pavv1.StageUnstaging}, want: decision{unstage: true}},
		"unstaging of a reserved volume: go on without kubelet": {
			o: snapshot{phase: pavv1.StageUnstaging, thisBoot: true, claimOnly: true}, want: decision{unstage: true}},
		"failed attempt is not released yet: go on without kubelet": {
			o: snapshot{phase: pavv1.StageFailed, protected: true, thisBoot: true}, want: decision{unstage: true}},
		"failed attempt of an earlier boot is not released yet: go on without kubelet": {
			o: snapshot{phase: pavv1.StageFailed, protected: true}, want: decision{unstage: true}},
		"record of a failed attempt: nothing": {
			o: snapshot{phase: pavv1.StageFailed, thisBoot: true}, want: decision{}},
		"staged before the node restarted: wait for kubelet": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached = false, false }), want: decision{}},
		"staged before the node restarted, staging pod failed: release it": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached, o.stagingPod = false, false, workflow.Failed }), want: decision{release: true}},
		"staging: wait for kubelet": {
			o: snapshot{phase: pavv1.StageStaging, thisBoot: true}, want: decision{}},
		"staging, deleted pod failed, kubelet made no call for long: release it": {
			o: snapshot{phase: pavv1.StageStaging, thisBoot: true, stagingPod: workflow.Failed, outcomeHeld: true, abandoned: true}, want: decision{release: true}},
		"staging, deleted pod still runs, kubelet made no call for long: wait": {
			o: snapshot{phase: pavv1.StageStaging, thisBoot: true, stagingPod: workflow.Stopping, outcomeHeld: true, abandoned: true}, want: decision{}},
		"staging, pod failed: leave it to kubelet's call": {
			o: snapshot{phase: pavv1.StageStaging, thisBoot: true, stagingPod: workflow.Failed, outcomeHeld: true}, want: decision{}},
		"volume answers: nothing": {o: staged(func(*snapshot) {}), want: decision{}},
		"account was replaced: stop the staging pod": {
			o: staged(func(o *snapshot) { o.outdated = true }), want: decision{stop: true}},
		"account was replaced, staging pod is being deleted: wait": {
			o: staged(func(o *snapshot) { o.outdated, o.stagingPod = true, workflow.Stopping }), want: decision{}},
		"account was replaced, staging pod completed: no daemon to stop": {
			o: staged(func(o *snapshot) { o.outdated, o.stagingPod = true, workflow.Succeeded }), want: decision{release: true}},
		"account was replaced, restaged too recently: wait": {
			o: staged(func(o *snapshot) { o.outdated, o.early = true, true }), want: decision{}},
		"account was replaced, recovery forbids to restage: nothing": {
			o: staged(func(o *snapshot) { o.outdated, o.restageable = true, false }), want: decision{}},
		"account was replaced, volume does not answer: it may be writing": {
			o: staged(func(o *snapshot) { o.outdated, o.volume = true, silent }), want: decision{loss: lossSilent}},
		"account was replaced, volume is dead: restage": {
			o:    staged(func(o *snapshot) { o.outdated, o.volume, o.confirmed = true, dead, true }),
			want: decision{loss: lossDead, restage: true}},
		"staging pod completed: release it": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Succeeded }), want: decision{release: true}},
		"staging pod completed and is gone: nothing": {
			o: staged(func(o *snapshot) { o.stagingPod, o.outcomeHeld = workflow.Absent, false }), want: decision{}},
		"staging pod is being deleted: wait": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Stopping }), want: decision{}},
		"staging pod failed, volume answers: report and release it": {
			o: staged(func(o *snapshot) { o.stagingPod = workflow.Failed }), want: decision{loss: lossEnded, release: true}},
		"failed staging pod is gone, volume answers: keep the report": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.outcomeHeld, o.degraded = workflow.Absent, false, lossEnded }),
			want: decision{loss: lossEnded}},
		"dead volume, staging pod failed: restage": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Failed, dead }), want: decision{loss: lossDead, release: true, restage: true}},
		"dead volume is reported, staging pod is released: restage": {
			o: staged(func(o *snapshot) {
				o.stagingPod, o.volume, o.outcomeHeld, o.degraded = workflow.Failed, dead, false, lossDead
			}),
			want: decision{loss: lossDead, restage: true}},
		"dead volume, staging pod is gone, not confirmed: wait": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.outcomeHeld = workflow.Absent, dead, false }),
			want: decision{loss: lossDead}},
		"dead volume, staging pod completed, not confirmed: wait": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Succeeded, dead }),
			want: decision{loss: lossDead, release: true}},
		"dead volume, staging pod is gone, confirmed: restage": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Absent, dead, true }),
			want: decision{loss: lossDead, restage: true}},
		"dead volume, staging pod completed, confirmed: restage": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Succeeded, dead, true }),
			want: decision{loss: lossDead, release: true, restage: true}},
		"dead volume, staging pod runs, not confirmed: wait": {
			o: staged(func(o *snapshot) { o.volume = dead }), want: decision{loss: lossDead}},
		"dead volume, staging pod runs, confirmed: restage": {
			o: staged(func(o *snapshot) { o.volume, o.confirmed = dead, true }), want: decision{loss: lossDead, restage: true}},
		"dead volume, staging pod is being deleted: wait": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume, o.confirmed = workflow.Stopping, dead, true }), want: decision{loss: lossDead}},
		"dead volume was restaged a short time ago: wait": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.early = workflow.Failed, dead, true }),
			want: decision{loss: lossDead, release: true}},
		"dead volume, recovery None: only report": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.restageable = workflow.Failed, dead, false }),
			want: decision{loss: lossDead, release: true}},
		"dead volume, node shuts down: only report": {
			o:    staged(func(o *snapshot) { o.stagingPod, o.volume, o.shutdown = workflow.Failed, dead, true }),
			want: decision{loss: lossDead, release: true}},
		"volume does not answer: only report": {
			o: staged(func(o *snapshot) { o.volume = silent }), want: decision{loss: lossSilent}},
		"volume does not answer, staging pod failed: report, and release it": {
			o: staged(func(o *snapshot) { o.stagingPod, o.volume = workflow.Failed, silent }), want: decision{loss: lossSilent, release: true}},
		"volume answers again: clear the report": {
			o: staged(func(o *snapshot) { o.degraded = lossSilent }), want: decision{}},
		"volume was not probed: keep the report": {
			o: staged(func(o *snapshot) { o.volume, o.degraded = unseen, lossSilent }), want: decision{loss: lossSilent}},
		"volume was unmounted: report": {
			o: staged(func(o *snapshot) { o.attached, o.volume = false, unseen }), want: decision{loss: lossDetached}},
		"mount was replaced after it was published: withdraw it": {
			o: staged(func(o *snapshot) { o.exchanged = true }), want: decision{withdraw: true}},
		"mount was replaced and does not answer: withdraw it": {
			o: staged(func(o *snapshot) { o.exchanged, o.volume = true, silent }), want: decision{loss: lossSilent, withdraw: true}},
		"mount was replaced and is dead: restage": {
			o: staged(func(o *snapshot) { o.exchanged, o.volume, o.confirmed = true, dead, true }), want: decision{loss: lossDead, restage: true}},
		"volume is being restaged: go on": {
			o:    snapshot{phase: pavv1.StageUnstaging, restaging: true, degraded: lossDead, thisBoot: true},
			want: decision{loss: lossDead, restage: true}},
		"volume was being restaged before the node restarted: wait for kubelet": {
			o: snapshot{phase: pavv1.StageStaging, restaging: true, degraded: lossDead}, want: decision{loss: lossDead}},
		"mounts are gone since the node restarted: wait for kubelet": {
			o: staged(func(o *snapshot) { o.thisBoot, o.attached, o.volume = false, false, unseen }), want: decision{}},
		"volume is only reserved: nothing": {
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

// TestDecide_NeverRestagesWhileTheOldVolumeMayBeWritten checks all combinations.
func TestDecide_NeverRestagesWhileTheOldVolumeMayBeWritten(t *testing.T) {
	for o := range combinations() {
		v := decide(o)
		wrong := func(what string) { t.Errorf("%s: %+v: %+v", what, o, v) }
		over := o.stagingPod == workflow.Succeeded || o.stagingPod == workflow.Failed
		if v.restage && !o.restaging && (o.volume != dead || !o.attached || !o.restageable || !o.thisBoot || o.claimOnly) {
			wrong("restaged although the volume is not known to be dead")
		}
		if v.restage && !o.restaging && v.loss == lossNone {
			wrong("restaged without a report")
		}
		if v.restage && !o.restaging && o.stagingPod != workflow.Failed && !o.confirmed {
			wrong("restaged although a daemon may run")
		}
		if v.restage && !o.restaging && o.early {
			wrong("restaged too soon")
		}
		if v.withdraw && (v.restage || v.unstage || !o.attached || o.phase != pavv1.StageStaged) {
			wrong("withdrawn although it is not published")
		}
		if v.stop && (!o.outdated || o.stagingPod != workflow.Running || o.volume == silent || !o.restageable || o.phase != pavv1.StageStaged) {
			wrong("a staging pod is stopped that should run")
		}
		if v.release && (!over || !o.outcomeHeld) {
			wrong("a pod is released that has not ended")
		}
		if v.release && o.thisBoot && o.stagingPod == workflow.Failed && v.loss == lossNone {
			wrong("a pod is released whose end is not recorded")
		}
		o.degraded, o.outcomeHeld = v.loss, o.outcomeHeld && !v.release
		if again := decide(o); again.loss != v.loss || again.release || again.restage != v.restage {
			t.Errorf("a second decision differs: %+v: %+v, then %+v", o, v, again)
		}
	}
}

func combinations() func(yield func(snapshot) bool) {
	phases := []pavv1.StagePhase{"", pavv1.StageValidating, pavv1.StageStaging, pavv1.StageStaged, pavv1.StageUnstaging, pavv1.StageFailed}
	losses := []loss{lossNone, lossEnded, lossDead, lossSilent, lossDetached}
	pods := []workflow.State{workflow.Absent, workflow.Running, workflow.Stopping, workflow.Succeeded, workflow.Failed}
	return func(yield func(snapshot) bool) {
		for bits := range 1 << 11 {
			is := func(bit int) bool { return bits>>bit&1 == 1 }
			o := snapshot{
				restaging: is(0), claimOnly: is(1), thisBoot: is(2), attached: is(3), outcomeHeld: is(4),
				shutdown: is(5), confirmed: is(6), restageable: is(7), early: is(8), exchanged: is(9), outdated: is(10),
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
