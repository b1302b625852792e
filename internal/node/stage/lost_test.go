package stage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// recordOf returns the path of the record of a stage.
func (n *testNode) recordOf(stage string) string {
	return filepath.Join(filepath.Dir(n.Dirs.Volume(stage)), "stage.json")
}

// losses are the ways in which a record can be lost.
func losses() map[string]func(*testing.T, *testNode, string) {
	return map[string]func(*testing.T, *testNode, string){
		"missing": func(t *testing.T, n *testNode, stage string) {
			t.Helper()
			must(t, os.Remove(n.recordOf(stage)))
		},
		"torn": func(t *testing.T, n *testNode, stage string) {
			t.Helper()
			must(t, os.WriteFile(n.recordOf(stage), []byte(`{"driver":"dr`), 0o600))
		},
	}
}

func TestPublish_WithoutARecord_IsRetried_AndTheMonitorRestoresIt(t *testing.T) {
	for name, lose := range losses() {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.staged(t)
			stage, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, stage)
			lose(t, n, stage)
			p := n.publicationFor(t, "a")
			if err := n.stager.Publish(t.Context(), v, p); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), stage) {
				t.Errorf("got %v, want ErrBusy", err)
			}
			if !n.ended[stage] {
				t.Error("nothing is told of the end of the call")
			}
			must(t, n.stager.RestoreRecord(t.Context(), n.API.Stages[stage]))
			must(t, n.stager.Publish(t.Context(), v, p))
			n.mustBeMounted(t, p.Target, true)
			must(t, n.stager.Unpublish(t.Context(), v, p.Target))
		})
	}
}

func TestRestoreRecord_ExcludesCalls_AndStagesThatAreNotStaged(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	stage, _ := n.stager.names(v)
	found := n.ledger(t, v, stage).DeepCopy()
	must(t, os.Remove(n.recordOf(stage)))
	release, err := n.stager.Lock(Subject{Volume: v})
	must(t, err)
	must(t, n.stager.RestoreRecord(t.Context(), found))
	release()
	n.API.Stages[stage].Status.Phase = pavv1.StageUnstaging
	must(t, n.stager.RestoreRecord(t.Context(), found))
	if record, err := n.Dirs.Recorded(t.Context(), stage); err != nil || record != nil {
		t.Errorf("got %v, %v, want no record", record, err)
	}
}

func TestStage_WhereTheVolumeIsStaged_RestoresTheRecord(t *testing.T) {
	for name, lose := range losses() {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.staged(t)
			stage, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, stage)
			lose(t, n, stage)
			must(t, n.stager.Stage(t.Context(), v, Staging{Mode: corev1.PersistentVolumeFilesystem}))
			record, err := n.Dirs.Recorded(t.Context(), stage)
			must(t, err)
			if record == nil || record.VolumeName != "pv" || record.Handle != v.Handle || record.BootID != "boot" {
				t.Errorf("got %+v", record)
			}
		})
	}
}

func TestUnpublish_WithoutARecord_Continues(t *testing.T) {
	for name, lose := range losses() {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.staged(t)
			stage, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, stage)
			p := n.publicationFor(t, "a")
			must(t, n.stager.Publish(t.Context(), v, p))
			lose(t, n, stage)
			must(t, n.stager.Unpublish(t.Context(), v, p.Target))
			if _, err := os.Lstat(p.Target); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the target is left: %v", err)
			}
		})
	}
}

func TestUnpublish_WithoutARecord_FindsTheClientsStageInTheLedger(t *testing.T) {
	for name, lose := range losses() {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.staged(t)
			stage, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			target := n.publicationFor(t, "a").Target
			client := n.ledger(t, v, n.stager.clientName(v, target))
			client.Spec.Scope, client.Spec.Client = pavv1.StagingScopePod, &pavv1.StageClient{Target: target}
			client.Status.Phase, client.Status.StagingPod = pavv1.StageUnstaging, nil // unstaging needs no pod
			lose(t, n, stage)
			must(t, n.stager.Unpublish(t.Context(), v, target))
			if len(n.API.Stages) > 0 {
				t.Errorf("the client's PavStage is left: %v", n.API.Stages)
			}
		})
	}
}

func TestATornRecord_DoesNotStopWhatOtherVolumesNeed(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	n.withVolumes(v, "pv")
	must(t, n.Dirs.Prepare(t.Context(), "stage-other"))
	must(t, os.WriteFile(n.recordOf("stage-other"), nil, 0o600))
	p := n.publicationFor(t, "a")
	p.Single = true
	must(t, n.stager.Publish(t.Context(), v, p))
	must(t, n.stager.Unpublish(t.Context(), v, p.Target))

	// The torn record may belong to another client of the volume. Then the API server has the PavStage of that client.
	client := n.ledger(t, v, "stage-other")
	client.Spec.Scope, client.Spec.Client = pavv1.StagingScopePod, &pavv1.StageClient{Target: "/other"}
	if err := n.stager.Publish(t.Context(), v, p); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
}

func TestMonitor_DirectoryWithATornRecord_IsRemovedUnlessUsed(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	stage, _ := n.stager.names(v)
	n.withVolumes(v)
	p := n.publicationFor(t, "a")
	must(t, n.stager.Publish(t.Context(), v, p))
	losses()["torn"](t, n, stage)
	if err := n.stager.RemoveUnknown(t.Context(), stage); !errors.Is(err, ErrBusy) {
		t.Errorf("while a client has the volume: got %v, want ErrBusy", err)
	}
	n.mustBeMounted(t, n.Dirs.Volume(stage), true)
	must(t, n.stager.unpublish(t.Context(), v, p.Target))
	must(t, n.stager.RemoveUnknown(t.Context(), stage))
	if exists, err := n.Dirs.Exists(t.Context(), stage); err != nil || exists {
		t.Errorf("the directory exists: %t, %v", exists, err)
	}
}

// Between the monitor's check of an unknown directory and its removal, kubelet may request the volume.
func TestRemoveUnknown_OfAStageThatACallHasMade_LeavesIt(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	n.withVolumes(v)
	for _, of := range []Subject{{Volume: v}, {Volume: v, Target: "/target"}} {
		for _, name := range n.stager.namesOf(of) {
			must(t, n.Dirs.Prepare(t.Context(), name))
			release, err := n.stager.Lock(of)
			must(t, err)
			if err := n.stager.RemoveUnknown(t.Context(), name); !errors.Is(err, ErrBusy) {
				t.Errorf("during the call: got %v, want ErrBusy", err)
			}
			release()
			n.ledger(t, v, name)
			must(t, n.stager.RemoveUnknown(t.Context(), name))
			delete(n.API.Stages, name)
			n.mustExist(t, name, true)
			must(t, n.stager.RemoveUnknown(t.Context(), name))
			n.mustExist(t, name, false)
		}
	}
	v = n.staged(t)
	name, _ := n.stager.names(v)
	must(t, n.stager.RemoveUnknown(t.Context(), name))
	n.mustExist(t, name, true)
}

func (n *testNode) mustExist(t *testing.T, stage string, want bool) {
	t.Helper()
	exists, err := n.Dirs.Exists(t.Context(), stage)
	must(t, err)
	if exists != want {
		t.Errorf("the directory of %s exists: %t", stage, exists)
	}
}
