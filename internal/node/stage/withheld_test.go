package stage

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func growing(offline bool) pavv1.PavVolumeStatus {
	return pavv1.PavVolumeStatus{Expansion: &pavv1.VolumeExpansionRecord{Offline: offline}}
}

// readBy is the status of a volume that one snapshot is made of, and then another one.
func readBy(unstaged ...bool) pavv1.PavVolumeStatus {
	var status pavv1.PavVolumeStatus
	for i, is := range unstaged {
		status.Readers = append(status.Readers, pavv1.Reader{Kind: "PavSnapshot", Name: string(rune('a' + i)), Unstaged: is})
	}
	return status
}

// clonedBy is the status of a volume that another one is created from.
func clonedBy(unstaged bool) pavv1.PavVolumeStatus {
	return pavv1.PavVolumeStatus{Readers: []pavv1.Reader{{Kind: "PavVolume", Name: "pvc-a", Unstaged: unstaged}}}
}

func TestWithheldTo(t *testing.T) {
	tests := map[string]struct {
		status pavv1.PavVolumeStatus
		want   string
	}{
		"nothing is to be done":                        {},
		"it grows while nodes have it":                 {growing(false), ""},
		"it grows while no node has it":                {growing(true), "grow"},
		"it is snapshotted while nodes have it":        {readBy(false), ""},
		"it is snapshotted while no node has it":       {readBy(true), "be snapshotted"},
		"it is cloned while nodes have it":             {clonedBy(false), ""},
		"it is cloned while no node has it":            {clonedBy(true), "be cloned"},
		"a snapshot does not wait, and a clone does":   {pavv1.PavVolumeStatus{Readers: append(readBy(false).Readers, clonedBy(true).Readers...)}, "be cloned"},
		"one of two snapshots waits":                   {readBy(false, true), "be snapshotted"},
		"it grows, and is snapshotted after that, too": {pavv1.PavVolumeStatus{Expansion: growing(true).Expansion, Readers: readBy(true).Readers}, "grow"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := withheldTo(&pavv1.PavVolume{Status: test.status}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	bucket := &pavv1.PavVolume{Spec: pavv1.PavVolumeSpec{BucketRef: &pavv1.VolumeBucketReference{Name: "b"}}}
	if got := withheldTo(bucket); got != "get access to its bucket" {
		t.Errorf("a bucket without access: got %q", got)
	}
	if bucket.Status.Bucket = (&pavv1.VolumeBucket{ID: "b"}); withheldTo(bucket) != "" {
		t.Error("a bucket with access is withheld")
	}
	if got := withheldTo(nil); got != "" {
		t.Errorf("a volume without a record: got %q", got)
	}
}

// withheldStage adds a volume that the controller agent withholds to the API server, and a PavStage that was just written.
func (n *testNode) withheldStage(t *testing.T, v Volume, spec pavv1.PavProvisionerSpec, status pavv1.PavVolumeStatus, changes ...func(*pavv1.PavVolume, *corev1.PersistentVolume)) *pavv1.PavStage {
	t.Helper()
	api := n.withVolumes(v, "pv")
	api.provisioner = &pavv1.PavProvisioner{Spec: spec}
	api.record = &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "record"}, Spec: pavv1.PavVolumeSpec{Provisioner: v.Driver}, Status: status}
	api.volumes["pv"].Annotations = map[string]string{provisionedBy: v.Driver}
	for _, change := range changes {
		change(api.record, api.volumes["pv"])
	}
	shared, _ := n.stager.names(v)
	stage := n.ledger(t, v, shared)
	raw, err := json.Marshal(api.volumes["pv"])
	must(t, err)
	stage.Spec.Volume.Raw = raw
	stage.Status.Phase, stage.Status.StagingPod = "", nil
	delete(n.API.Pods, "stage-1")
	return stage
}

// A volume that an administrator wrote is withheld by its record, too; not by that of another volume of its name.
func TestObserveWithheld_OfAStaticVolume(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	for handle, want := range map[string]bool{"handle": true, "other": false} {
		n := newNode(t)
		stage := n.withheldStage(t, v, pavv1.PavProvisionerSpec{VolumeExpansion: &pavv1.VolumeExpansion{}}, growing(true), func(record *pavv1.PavVolume, pv *corev1.PersistentVolume) {
			record.Spec.Static, record.Status.Handle, pv.Annotations = true, handle, nil
		})
		task := n.stager.newTask(Subject{Volume: v}, "")
		task.stage = stage
		o := observation{}
		must(t, task.observeWithheld(t.Context(), &o))
		if o.withheld != want {
			t.Errorf("a record of handle %q: got %t, want %t", handle, o.withheld, want)
		}
	}
}

// The volume is looked at again once the PavStage is written: the controller agent may have withheld it meanwhile.
func TestObserveWithheld(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	expands := pavv1.PavProvisionerSpec{VolumeExpansion: &pavv1.VolumeExpansion{}}
	snapshots := pavv1.PavProvisionerSpec{SnapshotCreation: &pavv1.SnapshotCreation{WhileStaged: pavv1.SnapshotWait}}
	// A snapshot that waits was requested before that.
	changed := pavv1.PavProvisionerSpec{SnapshotCreation: &pavv1.SnapshotCreation{WhileStaged: pavv1.SnapshotAllow}}
	clones := pavv1.PavProvisionerSpec{VolumeCreation: &pavv1.VolumeCreation{DataSources: []pavv1.DataSourceKind{pavv1.DataSourceClaim}}}
	tests := map[string]struct {
		spec   pavv1.PavProvisionerSpec
		status pavv1.PavVolumeStatus
		target string
		o      observation
		want   bool
	}{
		"it is to grow":                          {spec: expands, status: growing(true), want: true},
		"it grows online":                        {spec: expands, status: growing(false)},
		"it is to be snapshotted":                {spec: snapshots, status: readBy(true), want: true},
		"it is to be snapshotted as before":      {spec: changed, status: readBy(true), want: true},
		"it is snapshotted while nodes have it":  {spec: snapshots, status: readBy(false)},
		"it is to be cloned as before":           {spec: clones, status: clonedBy(true), want: true},
		"it is cloned while nodes have it":       {spec: clones, status: clonedBy(false)},
		"nothing is to be done":                  {spec: snapshots},
		"its provisioner does neither any more":  {status: readBy(true), want: true},
		"a validation pod runs":                  {spec: snapshots, status: readBy(true), o: observation{phase: pavv1.StageValidating}, want: true},
		"a staging pod may have run":             {spec: snapshots, status: readBy(true), o: observation{phase: pavv1.StageStaging, stagingIntended: true}},
		"the node has it":                        {spec: snapshots, status: readBy(true), o: observation{phase: pavv1.StageStaged}},
		"the node is about to be done with it":   {spec: snapshots, status: readBy(true), o: observation{phase: pavv1.StageUnstaging}},
		"clients have it while it is restaged":   {spec: snapshots, status: readBy(true), o: observation{restaging: true}},
		"the node has reserved it for a client":  {spec: snapshots, status: readBy(true), target: "/target"},
		"it is withheld before it is reserved":   {spec: snapshots, status: readBy(true), o: observation{claimOnly: true}, want: true},
		"another snapshot of it is to wait, too": {spec: snapshots, status: readBy(false, true), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			stage := n.withheldStage(t, v, test.spec, test.status)
			task := n.stager.newTask(Subject{Volume: v, Target: test.target}, "")
			task.stage = stage
			must(t, task.observeWithheld(t.Context(), &test.o))
			if test.o.withheld != test.want {
				t.Errorf("got %t, want %t", test.o.withheld, test.want)
			}
		})
	}
}

// A node that was too late removes its PavStage again, without a pod, and stages the volume once it may.
func TestStage_WithheldVolume_GivesWay(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	for want, test := range map[string]struct {
		spec   pavv1.PavProvisionerSpec
		status pavv1.PavVolumeStatus
	}{
		"is to grow while no node has it staged":           {pavv1.PavProvisionerSpec{VolumeExpansion: &pavv1.VolumeExpansion{}}, growing(true)},
		"is to be cloned while no node has it staged":      {pavv1.PavProvisionerSpec{SnapshotCreation: &pavv1.SnapshotCreation{}}, clonedBy(true)},
		"is to be snapshotted while no node has it staged": {pavv1.PavProvisionerSpec{SnapshotCreation: &pavv1.SnapshotCreation{}}, readBy(true)},
	} {
		t.Run(want, func(t *testing.T) {
			n := newNode(t)
			n.withheldStage(t, v, test.spec, test.status)
			err := n.stager.newTask(Subject{Volume: v}, "").run(t.Context(), stageTable)
			if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %v that says %q", err, ErrBusy, want)
			}
			if len(n.API.Stages) > 0 || len(n.API.Pods) > 0 {
				t.Errorf("left are %d PavStages and %d pods", len(n.API.Stages), len(n.API.Pods))
			}
		})
	}
}
