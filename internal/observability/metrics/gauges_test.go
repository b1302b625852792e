package metrics

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// store is a Store.
type store []any

// List implements Store.
func (s store) List() []any { return s }

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// volume returns a volume of p; condition, if it has one, has been false for so long.
func volume(phase pavv1.VolumePhase, condition string, since time.Duration, change func(*pavv1.PavVolumeStatus)) *pavv1.PavVolume {
	v := &pavv1.PavVolume{Spec: pavv1.PavVolumeSpec{Provisioner: "p"}, Status: pavv1.PavVolumeStatus{Phase: phase}}
	if condition != "" {
		v.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionFalse, LastTransitionTime: ago(since)}}
	}
	if change != nil {
		change(&v.Status)
	}
	return v
}

func fails(workflow string) func(*pavv1.PavVolumeStatus) {
	return func(s *pavv1.PavVolumeStatus) {
		s.Failure = &pavv1.WorkflowFailure{Workflow: workflow, Time: ago(time.Second)}
	}
}

func failsToDelete(s *pavv1.PavVolumeStatus) {
	s.DeletionFailure = &pavv1.WorkflowFailure{Workflow: "delete", Time: ago(time.Second)}
}

// export returns the series of a collector.
func export(t *testing.T, c *Gauges) map[string]float64 {
	t.Helper()
	if err := Agrees(c, Controller); err != nil {
		t.Error(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, pair := range m.GetLabel() {
				key += " " + pair.GetValue()
			}
			got[key] = m.GetGauge().GetValue()
		}
	}
	return got
}

func collector(volumes, provisioners []any) *Gauges {
	return &Gauges{
		Volumes: store(volumes), Snapshots: store{}, Buckets: store{}, Accesses: store{}, Provisioners: store(provisioners),
		Pods:  func() map[string]map[string]int { return nil },
		Leads: func() bool { return true }, Now: func() time.Time { return now },
	}
}

func TestVolumes(t *testing.T) {
	got := export(t, collector([]any{
		volume("", "", 0, nil),
		volume(pavv1.VolumePending, pavv1.VolumeProvisioned, time.Minute, nil),
		volume(pavv1.VolumePending, pavv1.VolumeProvisioned, time.Hour, fails("create")),
		volume(pavv1.VolumePending, pavv1.VolumeProvisioned, 2*time.Hour, fails("create")),
		volume(pavv1.VolumePending, "", 0, fails("validate")),
		volume(pavv1.VolumePending, pavv1.VolumeDeleted, 3*time.Minute, failsToDelete),
		volume(pavv1.VolumeReady, "", 0, nil),
		volume(pavv1.VolumeRetained, "", 0, nil),
		volume(pavv1.VolumeDeleting, pavv1.VolumeDeleted, 5*time.Minute, failsToDelete),
		volume(pavv1.VolumeDeleting, pavv1.VolumeDeleted, 7*time.Minute, nil),
	}, nil))
	want := map[string]float64{
		"pav_volumes Pending p": 6, "pav_volumes Ready p": 1, "pav_volumes Retained p": 1, "pav_volumes Deleting p": 2,
		"pav_volume_failing_seconds p create": 7200, "pav_volume_failing_seconds p validate": 1,
		"pav_volume_failing_seconds p revert": 180, "pav_volume_failing_seconds p delete": 300,
		"pav_volume_pending_seconds Pending p": 7200, "pav_volume_pending_seconds Deleting p": 420,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSnapshots(t *testing.T) {
	snapshot := func(phase pavv1.SnapshotPhase, condition string, since time.Duration, change func(*pavv1.PavSnapshotStatus)) *pavv1.PavSnapshot {
		s := &pavv1.PavSnapshot{Spec: pavv1.PavSnapshotSpec{Provisioner: "p"}, Status: pavv1.PavSnapshotStatus{Phase: phase}}
		if condition != "" {
			s.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionFalse, LastTransitionTime: ago(since)}}
		}
		if change != nil {
			change(&s.Status)
		}
		return s
	}
	fails := func(s *pavv1.PavSnapshotStatus) { s.Failure = &pavv1.WorkflowFailure{Time: ago(time.Second)} }
	failsToDelete := func(s *pavv1.PavSnapshotStatus) { s.DeletionFailure = &pavv1.WorkflowFailure{Time: ago(time.Second)} }
	c := collector(nil, nil)
	c.Snapshots = store{
		snapshot("", "", 0, nil),
		snapshot(pavv1.SnapshotPending, pavv1.SnapshotCreated, time.Minute, nil),
		snapshot(pavv1.SnapshotPending, pavv1.SnapshotCreated, time.Hour, fails),
		snapshot(pavv1.SnapshotPending, pavv1.SnapshotDeleted, 3*time.Minute, failsToDelete),
		snapshot(pavv1.SnapshotCut, pavv1.SnapshotCreated, 2*time.Minute, nil),
		snapshot(pavv1.SnapshotReady, "", 0, fails),
		snapshot(pavv1.SnapshotRetained, "", 0, nil),
		snapshot(pavv1.SnapshotDeleting, pavv1.SnapshotDeleted, 5*time.Minute, failsToDelete),
		snapshot(pavv1.SnapshotDeleting, pavv1.SnapshotDeleted, 7*time.Minute, nil),
	}
	want := map[string]float64{
		"pav_snapshots Pending p": 4, "pav_snapshots Cut p": 1, "pav_snapshots Ready p": 1, "pav_snapshots Retained p": 1, "pav_snapshots Deleting p": 2,
		"pav_snapshot_failing_seconds p create": 3600, "pav_snapshot_failing_seconds p revert": 180, "pav_snapshot_failing_seconds p delete": 300,
		"pav_snapshot_pending_seconds Pending p": 3600, "pav_snapshot_pending_seconds Cut p": 120, "pav_snapshot_pending_seconds Deleting p": 420,
	}
	if diff := cmp.Diff(want, export(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// isFalse returns conditions of which one is false since a time.
func isFalse(kind string, since time.Duration) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, LastTransitionTime: ago(since)}}
}

func TestBuckets(t *testing.T) {
	failure := &pavv1.WorkflowFailure{Time: ago(time.Second)}
	bucket := func(status pavv1.PavBucketStatus) *pavv1.PavBucket {
		return &pavv1.PavBucket{Spec: pavv1.PavBucketSpec{Provisioner: "p"}, Status: status}
	}
	access := func(status pavv1.PavBucketAccessStatus) *pavv1.PavBucketAccess {
		return &pavv1.PavBucketAccess{Spec: pavv1.PavBucketAccessSpec{Provisioner: "p"}, Status: status}
	}
	ends := func(in time.Duration) *pavv1.GrantedAccount {
		return &pavv1.GrantedAccount{ExpiresAt: new(metav1.NewTime(now.Add(in)))}
	}
	c := collector(nil, nil)
	c.Buckets = store{
		bucket(pavv1.PavBucketStatus{}),
		bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketPending, Failure: failure, Conditions: isFalse(pavv1.BucketCreated, time.Hour)}),
		bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketPending, DeletionFailure: failure, Conditions: isFalse(pavv1.BucketDeleted, time.Minute)}),
		bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketReady, Failure: failure, Conditions: isFalse(pavv1.BucketUpdated, 2*time.Minute)}),
		bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketDeleting, DeletionFailure: failure, Conditions: isFalse(pavv1.BucketDeleted, 3*time.Minute)}),
		bucket(pavv1.PavBucketStatus{Phase: pavv1.BucketRetained, Failure: failure}),
	}
	c.Accesses = store{
		access(pavv1.PavBucketAccessStatus{}),
		access(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessPending, Failure: failure, Conditions: isFalse(pavv1.AccessGranted, time.Hour)}),
		access(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessReady, Current: ends(time.Hour)}),
		access(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessReady, Current: ends(-time.Minute)}),
		access(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessRotating, Current: &pavv1.GrantedAccount{}, Failure: failure, Conditions: isFalse(pavv1.AccessRotated, time.Minute)}),
		access(pavv1.PavBucketAccessStatus{Phase: pavv1.AccessRevoking, RevocationFailure: failure, Conditions: isFalse(pavv1.AccessRevokedCondition, 2*time.Minute)}),
	}
	want := map[string]float64{
		"pav_buckets Pending p": 3, "pav_buckets Ready p": 1, "pav_buckets Deleting p": 1, "pav_buckets Retained p": 1,
		"pav_bucket_failing_seconds p create": 3600, "pav_bucket_failing_seconds p revert": 60, "pav_bucket_failing_seconds p update": 120, "pav_bucket_failing_seconds p delete": 180,
		"pav_bucket_accesses Pending p": 2, "pav_bucket_accesses Ready p": 2, "pav_bucket_accesses Rotating p": 1, "pav_bucket_accesses Revoking p": 1,
		"pav_bucket_access_failing_seconds p grant": 3600, "pav_bucket_access_failing_seconds p rotate": 60, "pav_bucket_access_failing_seconds p revoke": 120,
		"pav_bucket_access_expiry_seconds p": -60,
	}
	if diff := cmp.Diff(want, export(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProvisionersAndPods(t *testing.T) {
	c := collector(nil, []any{&pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: pavv1.PavProvisionerStatus{
		Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionFalse}},
	}}})
	c.Pods = func() map[string]map[string]int {
		return map[string]map[string]int{"p": {PodsRunning: 1, PodsBlocked: 2, PodsWaiting: 3}}
	}
	want := map[string]float64{
		"pav_provisioner_condition Accepted p": 1, "pav_provisioner_condition Ready p": 0,
		"pav_workflow_pods p running": 1, "pav_workflow_pods p blocked": 2, "pav_workflow_pods p waiting": 3,
	}
	if diff := cmp.Diff(want, export(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Leads = func() bool { return false }
	if got := export(t, c); len(got) > 0 {
		t.Errorf("a replica that does not lead exports %v", got)
	}
}

// TestGauges_AreAllThatTheTableHas is for those that the agent exports and the table lacks, and the reverse.
func TestGauges_AreAllThatTheTableHas(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	(&Gauges{}).Describe(descs)
	close(descs)
	var got []string
	for desc := range descs {
		got = append(got, desc.String())
	}
	var want []string
	for _, m := range Table() {
		if m.Type == Gauge && slices.Contains(m.Agents, Controller) {
			want = append(want, m.Desc().String())
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ranPod returns a pod that ran for a second, a minute ago.
func ranPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Minute)}}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: ago(time.Minute), FinishedAt: ago(time.Minute - time.Second)},
	}}}
	return pod
}

// BenchmarkScrape measures what a scrape of the gauges and of a full set of counters costs: 1,000
// provisioners with 10 volumes each, of which one fails, and three workflows that have run.
func BenchmarkScrape(b *testing.B) {
	var volumes, provisioners []any
	workflows := NewWorkflows(func(string) bool { return true }, time.Now)
	for i := range 10_000 {
		v := volume(pavv1.VolumeReady, "", 0, nil)
		if i%10 == 0 {
			v = volume(pavv1.VolumePending, pavv1.VolumeProvisioned, time.Minute, fails("create"))
		}
		v.Name, v.Spec.Provisioner = fmt.Sprintf("pvc-%d", i), fmt.Sprintf("provisioner-%d", i/10)
		volumes = append(volumes, v)
	}
	for i := range 1_000 {
		name := fmt.Sprintf("provisioner-%d", i)
		provisioners = append(provisioners, &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: pavv1.PavProvisionerStatus{
			Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionTrue}},
		}})
	}
	gauges := collector(volumes, provisioners)
	gather := func(b *testing.B, collectors ...prometheus.Collector) {
		b.Helper()
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors...)
		b.ReportAllocs()
		series := 0
		for b.Loop() {
			families, err := registry.Gather()
			if err != nil {
				b.Fatal(err)
			}
			series = 0
			for _, family := range families {
				series += len(family.GetMetric())
			}
		}
		b.ReportMetric(float64(series), "series")
	}
	b.Run("gauges", func(b *testing.B) { gather(b, gauges) })
	for _, p := range provisioners {
		for _, workflow := range []string{"validate", "create", "delete"} {
			workflows.Failed(Pod{Provisioner: p.(*pavv1.PavProvisioner).Name, Workflow: workflow, Pod: ranPod()}, &pavv1.WorkflowFailure{})
		}
	}
	b.Run("all", func(b *testing.B) { gather(b, gauges, workflows) })
}
