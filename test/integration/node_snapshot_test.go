package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// sync requests that all stages of the node are written back, as the controller agent does, and waits for the answers.
func (n *node) sync(t *testing.T, at time.Time) {
	t.Helper()
	n.requestSync(t, at)
	n.wantSynced(t, at)
}

func (n *node) requestSync(t *testing.T, at time.Time) {
	t.Helper()
	for _, stage := range n.stages(t) {
		mustPatch(t, n.c, &stage, func(s *pavv1.PavStage) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, pavv1.SyncAnnotation, at.Format(pavv1.RetryFormat))
		})
	}
}

func (n *node) wantSynced(t *testing.T, at time.Time) {
	t.Helper()
	for _, stage := range n.stages(t) {
		exists(t, n.c, &stage, "is written back", func(s *pavv1.PavStage) bool {
			return s.Status.SyncedTime != nil && s.Status.SyncedTime.Equal(&metav1.MicroTime{Time: at}) && s.Status.SyncError == ""
		})
	}
}

// The node writes its volumes back when that is requested, once for each request, also if the agent was down.
func TestNode_Sync(t *testing.T) {
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		t.Run(scope, func(t *testing.T) {
			n := newNode(t, workers(t, nil), scopes[scope])
			agent := n.run(t)
			v := n.volume(t, "served-and-synced")
			client := clientOf(v, 1)
			n.stage(t, v)
			n.publish(t, v, client)
			began := time.Date(2026, 1, 1, 12, 0, 0, 1000, time.UTC)
			n.sync(t, began)
			n.sync(t, began.Add(time.Microsecond))
			agent.Stop(t)
			n.requestSync(t, began.Add(time.Hour))
			n.run(t)
			n.wantSynced(t, began.Add(time.Hour))
			n.wantRead(t, v, client)
			n.unpublish(t, v, client)
			n.unstage(t, v)
		})
	}
}

// snapshotsUnstaged makes snapshots of volumes that no node has staged.
func snapshotsUnstaged(p *pavv1.PavProvisioner) {
	p.Spec.SnapshotCreation = &pavv1.SnapshotCreation{PodTemplate: field(workerTemplate), WhileStaged: pavv1.SnapshotWait}
}

// A node stages a volume that is to be snapshotted while no node has it staged after that, and not before.
func TestNode_VolumeToBeSnapshottedUnstaged_IsStagedLater(t *testing.T) {
	n := newNode(t, workers(t, nil), snapshotsUnstaged)
	n.run(t)
	v := n.volume(t, "made-and-withheld", func(pv *corev1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, "pv.kubernetes.io/provisioned-by", n.provisioner)
	})
	record := mustCreate(t, n.c, &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Labels: map[string]string{pavv1.ProvisionerLabel: v.Driver}},
		Spec: pavv1.PavVolumeSpec{
			Provisioner: v.Driver, ReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: v.Name, UID: "u"},
			StorageClass: apiextensionsv1.JSON{Raw: []byte(`{}`)}, Claim: apiextensionsv1.JSON{Raw: []byte(`{}`)},
		},
	})
	t.Cleanup(func() { mustDeleteLasting(t, n.c, record) })
	read := func(readers ...pavv1.Reader) {
		t.Helper()
		record.Status.Readers = readers
		if err := n.c.Admin.Status().Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	read(pavv1.Reader{Kind: "PavSnapshot", Name: "snapshot-1", Unstaged: true})
	n.succeed(t, "the answer of the node", func(ctx context.Context) error {
		// With less time, the agent leaves itself none to answer before the call has ended.
		ctx, cancel := context.WithTimeout(ctx, 13*time.Second)
		defer cancel()
		err := n.Stage(ctx, v)
		if err != nil && strings.Contains(err.Error(), "is to be snapshotted while no node has it staged, and is staged after that") {
			return nil
		}
		return fmt.Errorf("staged: %w", err)
	})
	if stages := n.stages(t); len(stages) > 0 {
		t.Errorf("there are %d PavStages", len(stages))
	}
	read(pavv1.Reader{Kind: "PavSnapshot", Name: "snapshot-2"})
	n.stage(t, v)
	n.unstage(t, v)
}
