package podrun

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const recordUID = types.UID("uid")

// world is an API server with a record, and what runs its pods.
type world struct {
	*Pods[*pavv1.PavSnapshot]
	kube   client.Client
	record *pavv1.PavSnapshot // as read
}

func newWorld(t *testing.T, status pavv1.PavSnapshotStatus, objects ...client.Object) *world {
	t.Helper()
	record := &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "b-1", UID: recordUID, Generation: 7}, Status: status}
	record.Spec.Provisioner = "p"
	kube := reconciletest.Client(t, append(objects, record)...)
	w := &world{kube: kube, record: record}
	w.read(t)
	writer := &ledger.Writer[*pavv1.PavSnapshot]{Client: kube, Expectations: &reconcile.Expectations{}, Now: func() time.Time { return noon }}
	w.Pods = &Pods[*pavv1.PavSnapshot]{
		Client: kube, Live: kube, Runner: &workflow.Runner{Client: kube}, Now: func() time.Time { return noon }, Index: reconcile.PodsBySnapshot,
		Slots: attempt.NewPool(queue.Limits{Overall: 1, PerProvisioner: 1}).Of("PavSnapshot", func(string) {}),
		Empty: func() *pavv1.PavSnapshot { return &pavv1.PavSnapshot{} },
		Owner: func(s *pavv1.PavSnapshot) attempt.Owner {
			return attempt.Owner{Name: s.Name, Provisioner: s.Spec.Provisioner, Namespace: s.Spec.SnapshotRef.Namespace}
		},
		Purpose: func(*pavv1.PavSnapshot) Purpose {
			return Purpose{Workflow: pavv1.WorkflowSnapshotCreation, Condition: pavv1.SnapshotCreated, Step: "Creating", Doing: "is creating the snapshot"}
		},
		Patch: func(ctx context.Context, record *pavv1.PavSnapshot, change func(*pavv1.PavSnapshot)) error {
			_, err := writer.Patch(ctx, record, change)
			return err
		},
	}
	return w
}

func (w *world) read(t *testing.T) {
	t.Helper()
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(w.record), w.record); err != nil {
		t.Fatal(err)
	}
}

// has reports whether a pod exists, and is not being deleted.
func (w *world) has(ctx context.Context, t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	live := &corev1.Pod{}
	err := w.kube.Get(ctx, client.ObjectKeyFromObject(pod), live)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil && live.DeletionTimestamp == nil
}

// pod returns a pod of a record with a UID.
func pod(name string, owner types.UID, number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: workflow.DefaultNamespace, Name: name, UID: types.UID("uid of " + name), Finalizers: []string{pavv1.PodFinalizer},
		Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowSnapshotCreation},
		Annotations:     map[string]string{pavv1.AttemptAnnotation: strconv.Itoa(number)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: "PavSnapshot", Name: "b-1", UID: owner, Controller: new(true)}},
	}}
}

func refTo(pod *corev1.Pod, uid types.UID) *pavv1.PodReference {
	return &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: uid}
}

func TestFind(t *testing.T) {
	first, second, orphan := pod("first", recordUID, 1), pod("second", recordUID, 2), pod("old", "former", 1)
	lost := pod("second", recordUID, 2)
	lost.Spec.NodeName = "gone"
	for name, test := range map[string]struct {
		status        pavv1.PavSnapshotStatus
		pods          []client.Object
		found, orphan int
		nodeGone      bool
		want          error
	}{
		"no pods":                               {},
		"two of the record, and another's":      {status: pavv1.PavSnapshotStatus{Pods: 2, Pod: refTo(second, second.UID)}, pods: []client.Object{first, second, orphan}, found: 2, orphan: 1},
		"a pod that the record does not know":   {status: pavv1.PavSnapshotStatus{Pods: 1}, pods: []client.Object{first, second}, want: reconcile.ErrStale},
		"the recorded pod was removed":          {status: pavv1.PavSnapshotStatus{Pods: 2, Pod: refTo(second, second.UID)}, pods: []client.Object{first}, found: 1},
		"the node of the recorded pod is gone":  {status: pavv1.PavSnapshotStatus{Pods: 2, Pod: refTo(lost, lost.UID)}, pods: []client.Object{lost}, found: 1, nodeGone: true},
		"the recorded pod was not created":      {status: pavv1.PavSnapshotStatus{Pods: 2, Pod: refTo(second, "")}, pods: []client.Object{first}, found: 1},
		"another pod has the name of ours":      {status: pavv1.PavSnapshotStatus{Pods: 2, Pod: refTo(orphan, "x")}, pods: []client.Object{orphan}, orphan: 1},
		"a pod of a node is not the node's end": {status: pavv1.PavSnapshotStatus{Pods: 1}, pods: []client.Object{first}, found: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.status, test.pods...)
			got, err := w.Find(t.Context(), w.record)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err == nil && (len(got.Pods) != test.found || len(got.Orphans) != test.orphan || got.NodeGone != test.nodeGone) {
				t.Errorf("found %d pods and %d orphans, node gone: %t", len(got.Pods), len(got.Orphans), got.NodeGone)
			}
		})
	}
}

// The cache has lost sight of a pod that exists: nothing must be decided.
func TestFind_WhereTheCacheLacksTheRecordedPod_IsStale(t *testing.T) {
	created := pod("first", recordUID, 1)
	w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 1, Pod: refTo(created, created.UID)})
	behind := reconciletest.Client(t)
	full := w.kube
	if err := full.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	w.record.Status.Pod.UID = created.UID
	w.Client = behind
	if _, err := w.Find(t.Context(), w.record); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("got %v, want %v", err, reconcile.ErrStale)
	}
}

func TestIntend_RecordsThePodBeforeItIsCreated(t *testing.T) {
	w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 3})
	next := pod("next", recordUID, 4)
	if err := w.Intend(t.Context(), w.record, next, func(s *pavv1.PavSnapshot) { s.Status.Step = pavv1.SnapshotCreating }); err != nil {
		t.Fatal(err)
	}
	w.read(t)
	status := w.record.Status
	if status.Pods != 4 || status.Step != pavv1.SnapshotCreating || status.Pod == nil || status.Pod.Name != "next" || status.Pod.UID != "" || !status.Pod.Due.Time.Equal(noon) {
		t.Errorf("the status is %+v", status)
	}
	if c := meta.FindStatusCondition(status.Conditions, pavv1.SnapshotCreated); c == nil || c.Reason != attempt.ReasonQueued {
		t.Errorf("the condition is %+v", c)
	}
	if w.has(t.Context(), t, next) {
		t.Error("the pod exists")
	}
}

func TestCreate(t *testing.T) {
	prevented := errors.New("prevented")
	squatter := pod("next", "other", 1)
	for name, test := range map[string]struct {
		before []client.Object
		last   error
		change func(*pavv1.PavSnapshot) // by another leader
		want   error
		refuse bool
		exists bool
	}{
		"it is created and recorded":                {exists: true},
		"it is prevented in the last moment":        {last: prevented, want: prevented},
		"another pod has its name":                  {before: []client.Object{squatter}, refuse: true, exists: true},
		"another leader has removed it":             {change: func(s *pavv1.PavSnapshot) { s.Status.Pod = nil }, want: reconcile.ErrStale},
		"another leader has recorded another":       {change: func(s *pavv1.PavSnapshot) { s.Status.Pod.Name = "another" }, want: reconcile.ErrStale},
		"another leader has written something else": {change: func(s *pavv1.PavSnapshot) { s.Status.Attempt++ }, want: reconcile.ErrStale, exists: true},
		"another leader has recorded its failure": {change: func(s *pavv1.PavSnapshot) {
			s.Status.Pod, s.Status.Failure = nil, &pavv1.WorkflowFailure{PodNamespace: workflow.DefaultNamespace, PodName: "next"}
		}, want: reconcile.ErrStale, exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			next := pod("next", recordUID, 1)
			w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 1, Step: pavv1.SnapshotCreating, Pod: refTo(next, "")}, test.before...)
			if test.change != nil {
				newer := w.record.DeepCopy()
				test.change(newer)
				if err := w.kube.Status().Update(t.Context(), newer); err != nil {
					t.Fatal(err)
				}
			}
			next.UID = "" // the API server gives it one
			err := w.Create(t.Context(), w.record, next, 5, func(context.Context) error { return test.last })
			if test.refuse != podplan.IsRefusal(err) || !test.refuse && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if w.has(t.Context(), t, next) != test.exists {
				t.Errorf("the pod exists: %t", !test.exists)
			}
			w.read(t)
			recorded := w.record.Status.Pod != nil && w.record.Status.ProvisionerGeneration == 5
			if recorded != (err == nil) {
				t.Errorf("it is recorded that it was created: %t: %+v", recorded, w.record.Status)
			}
		})
	}
}

func TestCheckNotCreated(t *testing.T) {
	created := pod("first", recordUID, 1)
	for name, test := range map[string]struct {
		recorded *pavv1.PodReference
		pods     []client.Object
		want     error
	}{
		"no pod is recorded":                    {},
		"it was not created":                    {recorded: refTo(created, "")},
		"it was created, and the cache is late": {recorded: refTo(created, ""), pods: []client.Object{created}, want: reconcile.ErrStale},
		"its UID is recorded":                   {recorded: refTo(created, created.UID), pods: []client.Object{created}},
		"another's pod has its name":            {recorded: refTo(created, ""), pods: []client.Object{pod("first", "other", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 1, Pod: test.recorded}, test.pods...)
			if err := w.CheckNotCreated(t.Context(), w.record, nil); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// Of the pods that are over, the last one that failed stays for people to look at, until the next one is recorded.
func TestSweep(t *testing.T) {
	over := func(p *corev1.Pod) *corev1.Pod {
		p.Status.Phase = corev1.PodFailed
		return p
	}
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowSnapshotCreation, PodNamespace: workflow.DefaultNamespace, PodName: "failed"}
	for name, test := range map[string]struct {
		status pavv1.PavSnapshotStatus
		stays  map[string]bool
	}{
		"the failure is the last":         {pavv1.PavSnapshotStatus{Pods: 3, Failure: failure}, map[string]bool{"failed": true}},
		"the next pod runs":               {pavv1.PavSnapshotStatus{Pods: 3, Failure: failure, Pod: refTo(pod("next", "", 0), "uid of next")}, map[string]bool{"next": true}},
		"nothing is recorded of the pods": {pavv1.PavSnapshotStatus{Pods: 3}, map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{over(pod("failed", recordUID, 1)), over(pod("earlier", recordUID, 2)), pod("next", recordUID, 3), over(pod("orphan", "former", 1))}
			w := newWorld(t, test.status, objects...)
			found, err := w.Find(t.Context(), w.record)
			if err == nil {
				err = w.Sweep(t.Context(), w.record, found)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				p, _ := object.(*corev1.Pod)
				if stays := w.has(t.Context(), t, p); stays != test.stays[p.Name] {
					t.Errorf("%s stays: %t", p.Name, stays)
				}
			}
		})
	}
}

// Pods that an earlier agent has started keep their slots.
func TestAdopt_OnlyOnce_AndOnlyWhatWasCreated(t *testing.T) {
	w := newWorld(t, pavv1.PavSnapshotStatus{})
	calls := 0
	all := func() ([]*pavv1.PavSnapshot, error) {
		calls++
		if calls == 1 {
			return nil, errors.New("the cache does not answer")
		}
		intended, started := w.record.DeepCopy(), w.record.DeepCopy()
		intended.Name, intended.Status.Pod = "intended", refTo(pod("a", "", 0), "")
		started.Name, started.Status.Pod = "started", refTo(pod("b", "", 0), "uid")
		return []*pavv1.PavSnapshot{intended, started}, nil
	}
	if err := w.Adopt(all); err == nil {
		t.Error("adopted although the cache does not answer")
	}
	for range 2 {
		if err := w.Adopt(all); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 {
		t.Errorf("asked %d times", calls)
	}
	if w.Slots.Acquire(attempt.Owner{Name: "other", Provisioner: "p"}) {
		t.Error("the pod that was started has no slot")
	}
	w.Slots.Release("other")
	w.Slots.Release("started")
	if !w.Slots.Acquire(attempt.Owner{Name: "third", Provisioner: "p"}) {
		t.Error("the pod that was not created has a slot")
	}
}

// A pod whose work is yet to be recorded is stopped, and keeps its finalizer.
func TestSweep_OfPodsWhoseWorkIsNotRecorded(t *testing.T) {
	over := pod("over", recordUID, 1)
	over.Status.Phase = corev1.PodFailed
	runs, settled := pod("runs", recordUID, 2), pod("settled", recordUID, 3)
	w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 3}, over, runs, settled)
	w.Unsettled = func(_ *pavv1.PavSnapshot, pod *corev1.Pod, _ bool) bool { return pod.Name != "settled" }
	found, err := w.Find(t.Context(), w.record)
	if err == nil {
		err = w.Sweep(t.Context(), w.record, found)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*corev1.Pod{over, runs} {
		live := &corev1.Pod{}
		if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil || len(live.Finalizers) == 0 {
			t.Errorf("%s is let go: %v", p.Name, err)
		}
	}
	if !w.has(t.Context(), t, over) || w.has(t.Context(), t, runs) || w.has(t.Context(), t, settled) {
		t.Error("the pod that is over is stopped, or one of the others is not")
	}
}

// What a pod may have made is told of before the pod goes, if its record is gone.
func TestForget_TellsOfPodsThatMayHaveMadeSomething(t *testing.T) {
	over := func(p *corev1.Pod) *corev1.Pod {
		p.Status.Phase, p.Spec.NodeName = corev1.PodFailed, "node"
		return p
	}
	recorded, orphan, runs, letGo, unbound := over(pod("recorded", recordUID, 1)), over(pod("orphan", "former", 1)), pod("runs", "former", 2), over(pod("let-go", "former", 3)), over(pod("unbound", "former", 4))
	letGo.Finalizers, unbound.Spec.NodeName = nil, ""
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		lost  bool
		stale bool
	}{
		"it is over":                       {pod: orphan, lost: true},
		"it runs":                          {pod: runs},
		"it was let go":                    {pod: letGo},
		"it never ran":                     {pod: unbound},
		"its record is there, as it seems": {pod: recorded, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 1}, test.pod)
			var lost []string
			w.Lost = func(ctx context.Context, pod *corev1.Pod) error {
				if !w.has(ctx, t, pod) {
					t.Error("the pod is gone already")
				}
				lost = append(lost, pod.Name)
				return nil
			}
			if err := w.Forget(t.Context(), "b-1"); errors.Is(err, reconcile.ErrStale) != test.stale || err != nil && !test.stale {
				t.Fatal(err)
			}
			if (len(lost) > 0) != test.lost {
				t.Errorf("told of %q", lost)
			}
		})
	}
}

func TestCheckSeen(t *testing.T) {
	labelled := func(p *corev1.Pod) *corev1.Pod {
		p.Labels[pavv1.ProvisionerLabel] = "p"
		return p
	}
	seen, unseen, others := labelled(pod("seen", recordUID, 1)), labelled(pod("unseen", recordUID, 2)), labelled(pod("others", "other", 1))
	deletion := labelled(pod("deletion", recordUID, 3))
	deletion.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowSnapshotDeletion
	for name, test := range map[string]struct {
		pods []client.Object
		want error
	}{
		"none":                    {},
		"those that were seen":    {pods: []client.Object{seen, others, deletion}},
		"one that was not seen":   {pods: []client.Object{seen, unseen}, want: reconcile.ErrStale},
		"one of another workflow": {pods: []client.Object{deletion}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pavv1.PavSnapshotStatus{Pods: 3}, test.pods...)
			if err := w.CheckSeen(t.Context(), w.record, []corev1.Pod{*seen}, pavv1.WorkflowSnapshotCreation); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
