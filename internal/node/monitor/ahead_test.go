package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

var provisionedAt = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// provisioned returns a volume that was provisioned for a pod on node "node", and its claim.
func provisioned(t *testing.T, change func(*pavv1.PavVolume, *corev1.PersistentVolumeClaim)) *pavv1.PavVolume {
	t.Helper()
	volume := &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "u", Labels: map[string]string{"a": "b"}},
		Spec:       pavv1.PavVolumeSpec{Provisioner: "driver", ReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
		Status: pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady, Handle: "handle", Conditions: []metav1.Condition{{
			Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(provisionedAt), Message: "done",
		}}},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Annotations: map[string]string{protocol.SelectedNode: "node", "other": "text"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	change(volume, claim)
	if volume.Spec.Claim.Raw == nil {
		raw, err := json.Marshal(claim)
		must(t, err)
		volume.Spec.Claim.Raw = raw
	}
	return volume
}

func TestIsDueAhead(t *testing.T) {
	type change = func(*pavv1.PavVolume, *corev1.PersistentVolumeClaim)
	tests := map[string]struct {
		change change
		after  time.Duration // since it was provisioned
		want   bool
	}{
		"just provisioned": {func(*pavv1.PavVolume, *corev1.PersistentVolumeClaim) {}, time.Second, true},
		"for one pod": {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes[0] = corev1.ReadWriteOncePod
		}, time.Second, true},
		"long ago":                     {func(*pavv1.PavVolume, *corev1.PersistentVolumeClaim) {}, time.Minute, false},
		"not provisioned":              {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.Status.Phase = pavv1.VolumePending }, time.Second, false},
		"being deleted":                {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.DeletionTimestamp = new(metav1.Now()) }, time.Second, false},
		"its storage is being deleted": {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.Status.Phase = pavv1.VolumeDeleting }, time.Second, false},
		"without a handle":             {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.Status.Handle = "" }, time.Second, false},
		"without a condition":          {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.Status.Conditions = nil }, time.Second, false},
		"for another node": {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) {
			c.Annotations[protocol.SelectedNode] = "other"
		}, time.Second, false},
		"for no node":      {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, time.Second, false},
		"not bound":        {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }, time.Second, false},
		"bound to another": {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }, time.Second, false},
		"of many nodes": {func(_ *pavv1.PavVolume, c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteMany)
		}, time.Second, false},
		"a copy that is no claim": {func(v *pavv1.PavVolume, _ *corev1.PersistentVolumeClaim) { v.Spec.Claim.Raw = []byte(`"text"`) }, time.Second, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := provisioned(t, test.change)
			now := provisionedAt.Add(test.after)
			if got := isDueAhead(volume, "node", now); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
			if got := expectedOf(volume); test.want && got != volumeA {
				t.Errorf("got %+v, want %+v", got, volumeA)
			}
			trimmed, err := trimVolume(volume.DeepCopy())
			must(t, err)
			kept, ok := trimmed.(*pavv1.PavVolume)
			if !ok || isDueAhead(kept, "node", now) != test.want || kept.Name != volume.Name || kept.Spec.Provisioner != "driver" || kept.Status.Handle != volume.Status.Handle {
				t.Errorf("what the cache keeps of it differs: %+v", trimmed)
			}
			if kept.Labels != nil || kept.Spec.ReclaimPolicy != "" {
				t.Errorf("the cache keeps more than is needed: %+v", kept)
			}
		})
	}
}

// volumeA is the volume that provisioned returns.
var volumeA = staging.Expected{Volume: staging.Volume{Driver: "driver", Handle: "handle"}, Name: "pv"}

// aheadName is the name of the stage of the volume that provisioned returns.
func aheadName() string {
	_, name := podplan.StageNames("driver", "handle", "node")
	return name
}

func TestMonitor_StagesAhead_NotWhatIsNotNeededAnyMore(t *testing.T) {
	for name, prepare := range map[string]func(*testNode){
		"kubelet has called":  func(n *testNode) { n.callEnded(aheadName()) },
		"long ago":            func(n *testNode) { n.now = func() time.Time { return time.Now().Add(time.Minute) } },
		"many are being made": func(n *testNode) { n.aheadNow = aheadAtOnce },
		"something is left":   func(n *testNode) { n.listed[aheadName()] = true },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.stageAhead = func(context.Context, staging.Expected) error {
				t.Error("the volume is staged")
				return nil
			}
			n.expect(volumeA)
			prepare(n)
			must(t, n.check(t.Context(), aheadName()))
			n.wg.Wait()
			if len(n.expected)+len(n.ahead) != 0 {
				t.Errorf("it is remembered: %v, %v", n.expected, n.ahead)
			}
		})
	}
}

func TestMonitor_StagesAhead_OncePerVolume(t *testing.T) {
	n := newNode(t)
	var got []staging.Expected
	n.stageAhead = func(_ context.Context, e staging.Expected) error {
		got = append(got, e)
		return nil
	}
	n.expect(volumeA)
	for range 2 {
		must(t, n.check(t.Context(), aheadName()))
		n.wg.Wait()
	}
	if want := volumeA; len(got) != 1 || got[0] != want {
		t.Errorf("staged ahead: %v, want once %v", got, want)
	}
	if len(n.expected)+len(n.ahead)+n.aheadNow != 0 {
		t.Errorf("it is remembered, although there is no stage: %v, %v, %d", n.expected, n.ahead, n.aheadNow)
	}
}

// An attempt may end before its PavStage is gone, but after the directory is. Kubelet knows nothing of it.
func TestMonitor_StagingAheadThatWasNotReverted_IsContinued(t *testing.T) {
	n := newNode(t)
	name := aheadName()
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Name, stage.Status.Phase = name, pavv1.StageUnstaging
		n.API.Stages[name] = stage
	})
	must(t, n.Dirs.Remove(t.Context(), "stage-a"))
	n.stageAhead = func(context.Context, staging.Expected) error { return errors.New("the API server is away") }
	continued := ""
	n.unstage = func(_ context.Context, of staging.Subject, _ func(context.Context) (bool, error)) error {
		continued = of.Handle
		return nil
	}
	n.expect(volumeA)
	for range 2 {
		must(t, n.check(t.Context(), name))
		n.wg.Wait()
		n.recheckNow(name) // The pause after the failure is over.
	}
	if continued != "handle" {
		t.Errorf("its PavStage is left")
	}
}

func TestMonitor_VolumeStagedAhead_IsUnstagedSoon_IfNothingComesForIt(t *testing.T) {
	tests := map[string]struct {
		passed  time.Duration // since the volume was staged
		called  bool          // kubelet has called meanwhile
		awaited bool          // the pod waits for another volume
		want    bool          // it is unstaged
	}{
		"at once":                        {0, false, false, false},
		"a little later":                 {aheadGrace + time.Second, false, false, true},
		"kubelet has called for it":      {aheadGrace + time.Second, true, false, false},
		"it has called, long ago":        {2 * time.Hour, true, false, true},
		"the pod waits for another":      {aheadGrace + time.Second, false, true, false},
		"the pod waits for another long": {awaitedFor + time.Second, false, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.PutStage(t, func(*pavv1.PavStage) {})
			must(t, os.MkdirAll(n.Dirs.Volume("stage-a"), 0o755))
			n.ahead["stage-a"] = volumeA
			n.awaited = func(_ context.Context, e staging.Expected) (bool, error) {
				if e != volumeA {
					t.Errorf("asked about %+v", e)
				}
				return test.awaited, nil
			}
			unstaged := false
			n.unstage = func(ctx context.Context, _ staging.Subject, idle func(context.Context) (bool, error)) (err error) {
				unstaged, err = idle(ctx)
				return err
			}
			n.restages(nil)
			if test.called {
				n.callEnded("stage-a")
			}
			n.look(t)
			n.now = func() time.Time { return time.Now().Add(test.passed) }
			n.look(t)
			if unstaged != test.want {
				t.Errorf("unstaged: got %t, want %t", unstaged, test.want)
			}
		})
	}
}
