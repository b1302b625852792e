package stage

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestObserve_FindsAnotherPersistentVolumeInThePlaceOfTheStages(t *testing.T) {
	tests := map[string]struct {
		volumes   []string
		change    func(*volumesAPI, Volume)
		published bool
		claimOnly bool
		unasked   bool
		want      step
	}{
		"the same":                           {volumes: []string{"pv"}, want: stepDone},
		"none":                               {want: stepDone},
		"a duplicate":                        {volumes: []string{"pv", "duplicate"}, want: stepDone},
		"another one":                        {volumes: []string{"new"}, want: stepRevert},
		"another one, and a client":          {volumes: []string{"new"}, published: true, want: stepPVReplaced},
		"another one, and a client's stage":  {volumes: []string{"new"}, claimOnly: true, want: stepPVReplaced},
		"another one, but nobody asks":       {volumes: []string{"new"}, unasked: true, want: stepDone},
		"another one of the name":            {volumes: []string{"pv"}, change: renew, want: stepRevert},
		"another of the name, and a client":  {volumes: []string{"pv"}, change: renew, published: true, want: stepDone},
		"the old one has another handle now": {volumes: []string{"new", "pv"}, change: func(a *volumesAPI, _ Volume) { a.volumes["pv"].Spec.CSI.VolumeHandle = "other" }, want: stepRevert},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.staged(t)
			shared, _ := n.stager.names(v)
			a := n.withVolumes(v, test.volumes...)
			stage := n.ledger(t, v, shared)
			if test.change != nil {
				test.change(a, v)
			}
			if test.published {
				p := n.publicationFor(t, "a")
				must(t, n.stager.Publish(t.Context(), v, p))
				defer func() { must(t, n.stager.Unpublish(t.Context(), v, p.Target)) }()
			}
			if test.claimOnly {
				stage.Spec.Scope = pavv1.StagingScopePod
				client := n.ledger(t, v, "stage-client")
				client.Spec.Scope, client.Spec.Client = pavv1.StagingScopePod, &pavv1.StageClient{Target: "/target"}
			}
			task := n.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
			task.asked = !test.unasked
			o, err := task.observe(t.Context())
			must(t, err)
			if got := stageTable.decide(o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func renew(a *volumesAPI, v Volume) { a.volumes["pv"] = persistentVolume(v, "pv", "another") }

func TestRefuseDuplicate_NamesOnlyPersistentVolumesThatExist(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	a := n.withVolumes(v, "pv", "new")
	if err := n.stager.rejectDuplicatePV(t.Context(), v, "pv", "new"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `["new" "pv"]`) {
		t.Errorf("both are there: got %v, want ErrRefused", err)
	}
	delete(a.volumes, "pv")
	if err := n.stager.rejectDuplicatePV(t.Context(), v, "pv", "new"); !errors.Is(err, ErrBusy) || !errors.Is(err, errOutlived) || strings.Contains(err.Error(), "delete") {
		t.Errorf("the first has gone: got %v, want ErrBusy", err)
	}
}

// The rate limit for events of a claim must not be used up by repetitions.
func TestRefuseDuplicates_Repeatedly_IsReportedOnce(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	a := n.withVolumes(v, "pv", "new")
	a.volumes["pv"].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "claim-uid"}
	for range 30 {
		if err := n.stager.rejectDuplicatePVs(t.Context(), v, []string{"pv", "new"}); !errors.Is(err, ErrRefused) {
			t.Fatalf("got %v, want ErrRefused", err)
		}
	}
	if told := len(n.Events); told != 1 {
		t.Errorf("the claim got %d events, want 1", told)
	}
}

// For kubelet, both PersistentVolumes are one volume. So it only requests the target of the new one.
func TestPublish_OfASuccessor_StagesItAgain(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	shared, _ := n.stager.names(v)
	n.withVolumes(v, "new")
	n.ledger(t, v, shared).Status.StagingPod = nil // unstaging needs no pod
	p := n.publicationFor(t, "a")
	p.Target = strings.Replace(p.Target, "/pv/", "/new/", 1)
	// The test has no provisioner that could stage the volume.
	if err := n.stager.Publish(t.Context(), v, p); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `PavProvisioner "driver"`) {
		t.Errorf("got %v, want ErrRefused", err)
	}
	if n.API.Stages[shared] != nil {
		t.Error("the stage of the former persistent volume is left")
	}
	n.mustExist(t, shared, false)
}

// A recorded publication does not count as a client if it was never mounted, or if its mount is gone.
func TestStage_OfALeftStage_CountsOnlyClientsThatUseIt(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	shared, _ := n.stager.names(v)
	n.withVolumes(v)
	p := n.publicationFor(t, "a")
	must(t, n.Dirs.RecordPublication(t.Context(), shared, publication{Target: p.Target, Boot: pavdir.Boot{BootID: "boot"}}))
	if err := n.stager.Stage(t.Context(), v, Staging{Mode: p.Mode}); !errors.Is(err, ErrUnknownVolume) {
		t.Errorf("got %v, want to get as far as ErrUnknownVolume", err)
	}
	n.mustExist(t, shared, false)
}

// The access modes of a PersistentVolume can be changed while nodes have it.
func TestCheckOthers_FindsNodesThatHaveItUnderTheirOwnName(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	tests := map[string]struct {
		change func(other, want *pavv1.PavStage)
		want   error
	}{
		"another node has it":                 {change: func(_, _ *pavv1.PavStage) {}, want: ErrHeld},
		"this node has it":                    {change: func(other, _ *pavv1.PavStage) { other.Spec.NodeName = "node" }},
		"another node has a record of it":     {change: func(other, _ *pavv1.PavStage) { other.Status.Phase, other.Finalizers = pavv1.StageFailed, nil }},
		"another node has another volume":     {change: func(other, _ *pavv1.PavStage) { other.Spec.VolumeName = "other" }},
		"any node may have it":                {change: func(_, want *pavv1.PavStage) { want.Spec.Exclusive = false }},
		"it contends for the name, and loses": {change: func(other, want *pavv1.PavStage) { want.Name = other.Name }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.withVolumes(v, "pv")
			_, exclusive := n.stager.names(v)
			want := n.ledger(t, v, exclusive).DeepCopy()
			delete(n.API.Stages, exclusive)
			want.Spec.Exclusive, want.Labels = true, map[string]string{pavv1.VolumeLabel: workflow.Hash("pv")}
			other := n.ledger(t, v, "stage-of-other-node")
			other.Spec.NodeName = "other"
			test.change(other, want)
			free, err := n.stager.newTask(Subject{Volume: v}, "").checkOthers(t.Context(), want)
			if !errors.Is(err, test.want) || free != (test.want == nil) {
				t.Errorf("got %t, %v, want %v", free, err, test.want)
			}
		})
	}
}

func TestStage_OfAnExclusiveVolumeOnAnotherNode_LeavesNothing(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	a := n.withVolumes(v, "pv")
	a.provisioner = &pavv1.PavProvisioner{}
	a.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "claim-uid"}}
	a.claim.Spec.VolumeName = "pv"
	volume := a.volumes["pv"]
	volume.Annotations = map[string]string{provisionedBy: v.Driver}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "claim-uid"}
	n.ledger(t, v, "stage-of-other-node").Spec.NodeName = "other"
	if err := n.stager.Stage(t.Context(), v, Staging{Mode: corev1.PersistentVolumeFilesystem}); !errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	shared, exclusive := n.stager.names(v)
	n.mustExist(t, shared, false)
	n.mustExist(t, exclusive, false)
}
